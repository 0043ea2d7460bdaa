"""Text in files: encodings that are kept as they are, and what is no text at all."""

from __future__ import annotations

from ...api.errors import ToolError
from ...api.record import Record

HEAD_BYTES = 8_192
"""How much of a file its kind is told from."""

_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_UTF32_MARK = b"\xff\xfe\0\0"
_IMAGES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
_BINARIES = {
    b"%PDF-": "a PDF document",
    b"PK\x03\x04": "a ZIP archive (or a format made of one, such as docx, xlsx, jar or whl)",
    b"\x1f\x8b": "a gzip file",
    b"\x7fELF": "a program",
    b"SQLite format 3\0": "an SQLite database",
}


class Codec(Record):
    """How the bytes of a file become text and back, without loss."""

    name: str
    errors: str = "strict"
    mark: bytes = b""

    def decode(self, data: bytes) -> str:
        """The text, without a byte order mark."""
        return data[len(self.mark) :].decode(self.name, self.errors)

    def encode(self, text: str, path: str) -> bytes:
        """The bytes, with the byte order mark.

        Raises:
            ToolError: where the encoding of the file has no such characters.
        """
        try:
            return self.mark + text.encode(self.name, self.errors)
        except UnicodeEncodeError as error:
            raise ToolError(
                f"{text[error.start]!a} cannot be written to {path!r} in its encoding, {self.name}. "
                "Write the text without it."
            ) from None


UTF8 = Codec(name="utf-8")


def utf16_codec(head: bytes) -> Codec | None:
    """The codec of a file that starts with the byte order mark of UTF-16."""
    mark = head[:2]
    if mark not in _UTF16_MARKS or head.startswith(_UTF32_MARK):
        return None
    return Codec(name=_UTF16_MARKS[mark], mark=mark)


def has_utf8_mark(head: bytes) -> bool:
    """Whether a file starts with a byte order mark of UTF-8."""
    return head.startswith(_UTF8_MARK)


def codecs_of(data: bytes) -> list[Codec]:
    """The codecs that a text file may be meant in, the likeliest first; each keeps every byte."""
    utf16 = utf16_codec(data)
    if utf16 is not None:
        candidates = [utf16]
    elif has_utf8_mark(data):
        candidates = [Codec(name="utf-8", mark=_UTF8_MARK)]
    else:
        candidates = [UTF8]
    try:
        candidates[0].decode(data)
    except UnicodeDecodeError:
        return [Codec(name="utf-8", errors="surrogateescape"), Codec(name="latin-1")]
    return candidates


def image_type(head: bytes) -> str:
    """The media type of an image that models can see, or an empty string."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _IMAGES.items() if head.startswith(magic)), "")


def binary_kind(head: bytes) -> str:
    """What a file is if it is no text, with its article; an empty string for text."""
    if image_type(head):
        return "an image"
    for magic, kind in _BINARIES.items():
        if head.startswith(magic):
            return kind
    return "a binary file" if b"\0" in head and utf16_codec(head) is None else ""


def refuse_binary(path: str, head: bytes, size: int) -> None:
    """Raise where a file is no text.

    Raises:
        ToolError: naming what it is.
    """
    kind = binary_kind(head)
    if kind:
        raise ToolError(
            f"{path!r} is {kind} of {size:,} bytes, not text. Use a program that knows the format, or another file."
        )


def count_lines(text: str) -> int:
    """The number of lines; a last one without a line end counts."""
    return text.count("\n") + (not text.endswith("\n") and text != "")
