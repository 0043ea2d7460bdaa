"""Texts as people see them: a model reads what a page hides in characters that show nothing, and does as it says."""

from __future__ import annotations

import re

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\ufff9-\ufffb"
    # Tags, each of which stands for a letter, and selectors of variants, of which a run stands for bytes.
    "\U000e0000-\U000e01ef]|[\ufe00-\ufe0f]{2,}"
)


def seen(text: str) -> str:
    """A text without controls, marks of direction and letters that nobody sees; lines and tabs stay."""
    return _UNSEEN.sub("", text)
