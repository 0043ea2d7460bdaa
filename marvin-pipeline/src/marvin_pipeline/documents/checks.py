"""Checks whether an agent wrote a real document."""

from __future__ import annotations

LEAST = 1_000
"""Bytes of a document at least, without surrounding white space. Shorter ones are notes or fragments."""


def why_no_document(data: bytes | None) -> str:
    """What is wrong with the content of a document file, in a few words; empty for a valid document.

    Args:
        data: the content; None if there is no file, or a link or a folder in its place.
    """
    if data is None:
        return "no file was written there"
    size = len(data.strip())
    if size < LEAST:
        return f"the file has {size:,} bytes, but a document needs at least {LEAST:,}"
    if b"\0" in data:
        return "the file is not text"
    try:
        data.decode()
    except UnicodeDecodeError as error:
        # A truncated read may end inside a character.
        if len(data) - error.start > _CHARACTER:
            return "the file is not UTF-8 text"
    return ""


_CHARACTER = 4
