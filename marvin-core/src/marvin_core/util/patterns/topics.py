"""The format of ntfy topics: https://docs.ntfy.sh/publish/#picking-a-topic-name."""

from __future__ import annotations

import re

_TOPIC = r"[-_A-Za-z0-9]{1,64}"


def is_topic(text: str) -> bool:
    """Whether a text is a valid topic: up to 64 characters from a to z, A to Z, 0 to 9, `-` and `_`."""
    return re.fullmatch(_TOPIC, text) is not None


def refused_topic(text: str) -> str:
    """The sentence that says that a text is not a valid topic, and what a valid one is."""
    shown = text if len(text) <= 80 else f"{text[:80]}…"
    return f"{shown!r} is not a valid topic. Use up to 64 letters, digits, '-' and '_', without spaces."
