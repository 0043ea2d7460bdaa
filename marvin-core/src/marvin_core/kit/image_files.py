"""Checks images before a model gets them: services refuse each request of a conversation with an invalid one."""

from __future__ import annotations

import struct

from .files.encodings import image_type

_MOST_PIXELS = 8_000
"""The maximum width and height that all services take."""
_CUT = "it is cut off or damaged"
_PNG_HEADER = 24
_GIF_HEADER = 10
_GIF_END = 64
"""The bytes at the end of a GIF among which the last one is; some programs add to it."""
_WEBP_HEADERS = {b"VP8 ": 30, b"VP8L": 25, b"VP8X": 30}
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""The markers of JPEG with the size of the picture."""
_ALONE = (0x01, *range(0xD0, 0xD9))
"""The markers without a length."""


def image_flaw(data: bytes) -> str:
    """Why services refuse an image of a type that `image_type` knows; an empty string if it is complete.

    Its pixels are not decoded.
    """
    kind = image_type(data[:16])
    size = {"image/png": _png, "image/jpeg": _jpeg, "image/gif": _gif, "image/webp": _webp}[kind](data)
    if size is None or not all(size):
        return _CUT
    width, height = size
    if max(size) > _MOST_PIXELS:
        return f"it has {width:,} x {height:,} pixels, and services take {_MOST_PIXELS:,} in each direction"
    return ""


def _png(data: bytes) -> tuple[int, int] | None:
    """https://www.w3.org/TR/png-3/#5DataRep"""
    if len(data) < _PNG_HEADER or data[12:16] != b"IHDR":
        return None
    at = 8
    while at + 12 <= len(data):
        length, name = struct.unpack(">I4s", data[at : at + 8])
        at += 12 + length
        if name == b"IEND":
            width, height = struct.unpack(">II", data[16:_PNG_HEADER])
            return (width, height) if width and height else None
    return None


def _jpeg(data: bytes) -> tuple[int, int] | None:
    """https://www.w3.org/Graphics/JPEG/itu-t81.pdf, annex B"""
    at = 2
    size = None
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF or marker in _ALONE:
            at += 1 if marker == 0xFF else 2
            continue
        if marker in _FRAMES and at + 9 <= len(data):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            size = (width, height)
        if marker == 0xDA:  # the pixels, up to the end
            return size if size and data.rfind(b"\xff\xd9") > at else None
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None


def _gif(data: bytes) -> tuple[int, int] | None:
    """https://www.w3.org/Graphics/GIF/spec-gif89a.txt"""
    if len(data) < _GIF_HEADER or b"\0;" not in data[-_GIF_END:]:
        return None
    width, height = struct.unpack("<HH", data[6:_GIF_HEADER])
    return (width, height) if width and height else None


def _webp(data: bytes) -> tuple[int, int] | None:
    """https://developers.google.com/speed/webp/docs/riff_container"""
    chunk = data[12:16]
    least = _WEBP_HEADERS.get(chunk)
    if least is None or len(data) < max(least, 8 + int.from_bytes(data[4:8], "little")):
        return None
    if chunk == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if chunk == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = struct.unpack("<HH", data[26:30])
    return width & 0x3FFF, height & 0x3FFF
