"""Whether an agent wrote a document, or only something in its place."""

from __future__ import annotations

LEAST = 1_000
"""Bytes that a document has at least, blanks around it not counted. What is shorter are notes or a beginning."""


def why_no_document(data: bytes | None) -> str:
    """What is wrong with the content of a file that should be a document, in a few words; empty for a document.

    Args:
        data: the content; None where there is no file, or a link or a folder in its place.
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
        # A document that is longer than what is read may be cut in the middle of a character.
        if len(data) - error.start > _CHARACTER:
            return "the file is not UTF-8 text"
    return ""


_CHARACTER = 4
