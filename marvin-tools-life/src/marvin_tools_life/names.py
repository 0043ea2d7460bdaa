"""Normalization of names that people give."""

from __future__ import annotations

import unicodedata


def folded(name: str) -> str:
    """A normalized name, to compare names: without case, with single spaces, and with accents in one form.

    An accent may be part of a letter or a combining character: keyboards write the former, file systems the latter.
    """
    return " ".join(unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold()).split())
