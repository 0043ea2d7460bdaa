"""Pictures on terminals that report support for them: the query, and the data to send."""

from __future__ import annotations

import os
import re
import stat
from base64 import b64encode
from collections.abc import Iterator, Sequence
from math import ceil
from pathlib import Path
from typing import Literal, TypeAlias

from ...api.messages import Picture, Shown

Drawing: TypeAlias = Literal["kitty", "iterm", ""]
"""The protocol by which a terminal accepts pictures, if any."""
QUERY = "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b]1337;ReportCellSize\x07\x1b[c"
"""Queries both protocols. Terminals of every kind answer the last query, so its answer ends the input."""
ANSWERS = re.compile(r"\x1b_G[^\x1b]*\x1b\\|\x1b\]1337;ReportCellSize=[^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[\?[\d;]*c")
"""The answers of terminals; all other input was typed."""
LAST_ANSWER = re.compile(r"\x1b\[\?[\d;]*c")
DEAF = ("tmux", "screen", "linux", "dumb")
"""Terminals (TERM) that are not queried: some use the query as their title, or show it."""
_LARGEST = 2_000_000
"""The maximum size of a drawn picture in bytes: the terminal receives all of them, perhaps over a slow line."""
_ROWS = 16
_INDENT = 5
_CHUNK = 4_096
_PNG = b"\x89PNG\r\n\x1a\n"
_OTHERS = (b"\xff\xd8\xff", b"GIF87a", b"GIF89a")


def drawing_of(answer: str) -> Drawing:
    """The result of an answer to `QUERY`."""
    if re.search(r"\x1b_Gi=31;OK\x1b", answer):
        return "kitty"
    return "iterm" if "ReportCellSize=" in answer else ""


def paths_of(show: Sequence[Shown]) -> list[str]:
    """The picture files among the items that a tool shows."""
    return [item.path for item in show if isinstance(item, Picture) and item.path]


def picture_rows(path: Path, drawing: Drawing, width: int, height: int) -> str:
    """The sequence that draws a picture in new rows; empty if the terminal or the file does not permit it. Blocks.

    Args:
        width: the columns of the window.
        height: its rows. A picture takes half of them at most.
    """
    data = _read(path)
    is_png = data.startswith(_PNG) and len(data) > len(_PNG) + 16
    if not (is_png or (drawing == "iterm" and data.startswith(_OTHERS))):
        return ""
    most = max(1, min(_ROWS, height // 2))
    columns, rows = _cells(data, max(1, width - _INDENT), most) if is_png else (0, most)
    sequences = _kitty(data, columns, rows) if drawing == "kitty" else _iterm(data, columns, rows)
    up = f"\x1b[{rows - 1}A" if rows > 1 else ""
    down = f"\x1b[{rows - 1}B" if rows > 1 else ""
    # First the rows, so that the window scrolls before anything is drawn in them.
    return "\n" * (rows - 1) + f"{up}\x1b[{_INDENT}C\x1b7{sequences}\x1b8\r{down}"


def _read(path: Path) -> bytes:
    """The content of a file that may be a picture; empty for any other, and for one that is too large."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe would be waited for
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return b""
            data = file.read(_LARGEST + 1)
    except (OSError, ValueError):
        return b""
    return data if len(data) <= _LARGEST else b""


def _cells(png: bytes, most_columns: int, most_rows: int) -> tuple[int, int]:
    """The columns and rows of a PNG at its size, scaled down to fit. A cell is assumed to be twice as high as wide."""
    wide, high = int.from_bytes(png[16:20]) or 1, int.from_bytes(png[20:24]) or 1
    rows = min(most_rows, max(1, ceil(high / 16)))
    columns = max(1, round(wide * rows * 2 / high))
    if columns > most_columns:
        columns, rows = most_columns, min(most_rows, max(1, ceil(most_columns * high / wide / 2)))
    return columns, rows


def _kitty(data: bytes, columns: int, rows: int) -> str:
    text = b64encode(data).decode()
    pieces = [text[begin : begin + _CHUNK] for begin in range(0, len(text), _CHUNK)]
    return "".join(_pieces(pieces, f"a=T,f=100,q=2,C=1,c={columns},r={rows},"))


def _pieces(pieces: Sequence[str], keys: str) -> Iterator[str]:
    for number, piece in enumerate(pieces, 1):
        yield f"\x1b_G{keys}m={int(number < len(pieces))};{piece}\x1b\\"
        keys = "q=2,"


def _iterm(data: bytes, columns: int, rows: int) -> str:
    width = f"width={columns};" if columns else ""
    head = f"inline=1;size={len(data)};{width}height={rows};preserveAspectRatio=1"
    return f"\x1b]1337;File={head}:{b64encode(data).decode()}\x07"
