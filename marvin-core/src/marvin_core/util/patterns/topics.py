"""The form of the topics of ntfy: https://docs.ntfy.sh/publish/#picking-a-topic-name."""

from __future__ import annotations

import re

_TOPIC = r"[-_A-Za-z0-9]{1,64}"


def is_topic(text: str) -> bool:
    """Whether a text can be the name of a topic: up to 64 letters of a to z, digits, `-` and `_`."""
    return re.fullmatch(_TOPIC, text) is not None


def refused_topic(text: str) -> str:
    """The sentence that says of a text that it cannot be the name of a topic, and what can."""
    shown = text if len(text) <= 80 else f"{text[:80]}…"
    return f"{shown!r} is not a valid topic. Use up to 64 letters, digits, '-' and '_', without spaces."
