"""Names that people give to things, and how they are found again."""

from __future__ import annotations

import unicodedata


def folded(name: str) -> str:
    """A name by which it is found again: in any case, with any spaces, and however its accents are written.

    An accent may be a letter's own or a sign behind it: keyboards write the one, file systems the other.
    """
    return " ".join(unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold()).split())
