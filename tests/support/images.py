"""The smallest images of each type that models see."""

from __future__ import annotations

import struct
import zlib


def png(width: int = 1, height: int = 1) -> bytes:
    """Black, without a palette."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(bytes((width + 1) * min(height, 100)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def jpeg(width: int = 1, height: int = 1) -> bytes:
    """The segments of a picture, without tables for its pixels."""
    frame = b"\xff\xc0\0\x0b\x08" + struct.pack(">HH", height, width) + b"\x01\x01\x11\0"
    return b"\xff\xd8\xff\xe0\0\x10JFIF" + bytes(10) + frame + b"\xff\xda\0\x08\x01\x01\0\0\x3f\0\x2a\xff\xd9"


def gif(width: int = 1, height: int = 1) -> bytes:
    """One frame."""
    frame = b",\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0"
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\x80\0\0\0\0\0\xff\xff\xff" + frame + b";"


def webp(width: int = 1, height: int = 1) -> bytes:
    """Without loss."""
    data = b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14) + b"\x88\x88\x08"
    chunk = b"VP8L" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk
