"""Removes invisible characters from texts: pages hide instructions to models in them."""

from __future__ import annotations

import re

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\ufff9-\ufffb"
    # Tag characters, each of which stands for a letter, and variation selectors, of which a run encodes bytes.
    "\U000e0000-\U000e01ef]|[\ufe00-\ufe0f]{2,}"
)


def seen(text: str) -> str:
    """A text without control, bidirectional and invisible characters; line breaks and tabs stay."""
    return _UNSEEN.sub("", text)
