"""Encodings of text files, which are preserved, and the detection of binary files."""

from __future__ import annotations

from ...api.errors import ToolError
from ...api.record import Record

HEAD_BYTES = 8_192
"""The size of the sample for the detection of the file type."""

_DECLARED_IN = 1_024
_DECLARATION = (
    rb"(?:[^\n]*\n)?[^\n]*?coding[:=][ \t]*([-\w.]{1,40})"  # Python (PEP 263), Emacs, Vim
    rb"|\s*<\?xml[^>]{0,100}?encoding\s*=\s*[\"']([-\w.:]{1,40})"
    rb"|@charset \"([-\w.:]{1,40})\""
)
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_UTF32_MARKS = (b"\xff\xfe\0\0", b"\0\0\xfe\xff")
_NULS = 0.8
"""The minimum share of NUL bytes in every other byte of a Western text in UTF-16."""
_IMAGES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
_TAR_AT = 257
_BINARIES = {
    b"%PDF-": "a PDF document",
    b"PK\x03\x04": "a ZIP archive (or a format made of one, such as docx, xlsx, jar or whl)",
    b"\x1f\x8b": "a gzip file",
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ\0": "an xz file",
    b"\x28\xb5\x2f\xfd": "a zstd file",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!\x1a\x07": "a RAR archive",
    b"\x7fELF": "a program",
    b"SQLite format 3\0": "an SQLite database",
}
_IMAGE_SIGNS, _BINARY_SIGNS = (b"RIFF", *_IMAGES), tuple(_BINARIES)


class Codec(Record):
    """Decodes and encodes the bytes of a file without loss."""

    name: str
    errors: str = "strict"
    mark: bytes = b""

    def decode(self, data: bytes) -> str:
        """The text, without a byte order mark."""
        return data[len(self.mark) :].decode(self.name, self.errors)

    def encode(self, text: str, path: str) -> bytes:
        """The bytes, with the byte order mark.

        Raises:
            ToolError: the encoding of the file lacks a character.
        """
        try:
            return self.mark + text.encode(self.name, self.errors)
        except UnicodeEncodeError as error:
            raise ToolError(
                f"{text[error.start]!r} cannot be written to {path!r} in its encoding, {self.name}. "
                "Write the text without it."
            ) from None


UTF8 = Codec(name="utf-8")


def utf16_codec(head: bytes) -> Codec | None:
    """The codec of a file with the byte order mark of UTF-16."""
    mark = head[:2]
    if mark not in _UTF16_MARKS or head.startswith(_UTF32_MARKS[0]):
        return None
    return Codec(name=_UTF16_MARKS[mark], mark=mark)


def has_utf8_mark(head: bytes) -> bool:
    """Whether a file starts with the byte order mark of UTF-8."""
    return head.startswith(_UTF8_MARK)


def codec_of(data: bytes) -> Codec | None:
    """The codec of a text file, which preserves every byte. None if it is uncertain.

    It is the declared one, else that of the byte order mark, else UTF-8, else one detected from the whole content.
    """
    wide = utf16_codec(data)
    candidates = [wide] if wide is not None else [_declared(data), _utf8(data)]
    for codec in candidates:
        if codec is not None and _keeps(codec, data):
            return codec
    if wide is not None:
        return None
    from .old_encodings import detected

    name = detected(data)
    return Codec(name=name) if name and _keeps(Codec(name=name), data) else None


def _utf8(data: bytes) -> Codec:
    return Codec(name="utf-8", mark=_UTF8_MARK) if has_utf8_mark(data) else UTF8


def _declared(data: bytes) -> Codec | None:
    """The encoding that a file declares in its first lines."""
    if has_utf8_mark(data):
        return None
    head = data[:_DECLARED_IN]
    if not any(word in head for word in (b"coding", b"charset")):
        return None
    import codecs
    import re

    found = re.match(_DECLARATION, head)
    if found is None:
        return None
    try:
        name = codecs.lookup((found[1] or found[2] or found[3]).decode("ascii")).name
    except (LookupError, UnicodeDecodeError):
        return None
    return None if name.startswith(("utf-8", "utf-16", "utf-32", "utf-7", "ascii")) else Codec(name=name)


def _keeps(codec: Codec, data: bytes) -> bool:
    """Whether a file decodes with a codec and encodes to the same bytes."""
    try:
        return codec.mark + codec.decode(data).encode(codec.name, codec.errors) == data
    except (UnicodeError, LookupError, AttributeError, TypeError):  # some names are not those of text encodings
        return False


def image_type(head: bytes) -> str:
    """The media type of an image that models can see, or an empty string."""
    if not head.startswith(_IMAGE_SIGNS):
        return ""
    if head[:4] == b"RIFF":
        return "image/webp" if head[8:12] == b"WEBP" else ""
    return next(kind for magic, kind in _IMAGES.items() if head.startswith(magic))


def binary_kind(head: bytes) -> str:
    """The type of a binary file, with its article; an empty string for text."""
    if image_type(head):
        return "an image"
    if head.startswith(_BINARY_SIGNS):
        return next(kind for magic, kind in _BINARIES.items() if head.startswith(magic))
    if head.startswith(b"ustar", _TAR_AT):
        return "a tar archive"
    if b"\0" not in head or utf16_codec(head) is not None:
        return ""
    wide = _perhaps_wide(head)
    return f"a binary file (perhaps text: iconv -f {wide} -t UTF-8 shows it)" if wide else "a binary file"


def _perhaps_wide(head: bytes) -> str:
    """The encoding with NUL bytes in which a file may be text. Tables of small numbers look the same."""
    if head.startswith(_UTF32_MARKS):
        return "UTF-32"
    halves = head[0::2], head[1::2]
    for name, (text, nuls) in (("UTF-16LE", halves), ("UTF-16BE", halves[::-1])):
        if text and 0 not in text and nuls.count(0) >= _NULS * len(nuls):
            return name
    return ""


def refuse_binary(path: str, head: bytes, size: int) -> None:
    """Raise if a file is not text.

    Raises:
        ToolError: the file is not text; the message names its type.
    """
    kind = binary_kind(head)
    if kind:
        raise ToolError(
            f"{path!r} is {kind} of {size:,} bytes, not text. Use a program that knows the format, or another file."
        )


def count_lines(text: str) -> int:
    """The number of lines; a last one without a line end counts."""
    return text.count("\n") + (not text.endswith("\n") and text != "")
