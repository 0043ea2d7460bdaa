"""Pictures for terminals that draw them: what is asked and answered, what is sent, what is not drawn."""

from __future__ import annotations

import os
import re
import struct
import zlib
from base64 import b64decode
from pathlib import Path

import pytest

from marvin_core.api.messages import Link, Picture, Shown
from marvin_core.ui.drawing.pictures import ANSWERS, LAST_ANSWER, drawing_of, paths_of, picture_rows

KITTY = "\x1b_Gi=31;OK\x1b\\"
ITERM = "\x1b]1337;ReportCellSize=17.0;8.0\x07"
DONE = "\x1b[?62;22;4c"


def png(width: int, height: int, more: bytes = b"") -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    rows = zlib.compress(b"".join(b"\0" + bytes(width) for _ in range(height)))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"teXt", more) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("answer", "drawing"),
    [
        (KITTY + DONE, "kitty"),
        (ITERM + DONE, "iterm"),
        (KITTY + ITERM + DONE, "kitty"),
        (DONE, ""),
        ("", ""),
        ("\x1b_Gi=31;EINVAL: no\x1b\\" + DONE, ""),
        ("somebody types OK", ""),
    ],
)
def test_only_an_answer_says_what_a_terminal_draws(answer: str, drawing: str) -> None:
    assert drawing_of(answer) == drawing


def test_what_is_typed_meanwhile_is_told_from_the_answer() -> None:
    assert ANSWERS.sub("", f"he{KITTY}l{ITERM}lo{DONE}\x1b[A") == "hello\x1b[A"
    assert LAST_ANSWER.search(KITTY + ITERM) is None


def test_kitty_gets_a_png_in_pieces_within_rows_of_its_own(tmp_path: Path) -> None:
    data = png(200, 100, os.urandom(9_000))
    (tmp_path / "a.png").write_bytes(data)
    sent = picture_rows(tmp_path / "a.png", "kitty", 80, 24)
    assert sent.startswith("\n" * 6 + "\x1b[6A\x1b[5C\x1b7\x1b_Ga=T,f=100,q=2,C=1,c=28,r=7,m=1;")
    assert sent.endswith("\x1b\\\x1b8\r\x1b[6B")
    pieces = re.findall(r"\x1b_G[^;]*m=(\d);([^\x1b]*)\x1b", sent)
    assert b64decode("".join(piece for _, piece in pieces)) == data
    assert [more for more, _ in pieces] == ["1"] * (len(pieces) - 1) + ["0"]
    assert max(len(piece) for _, piece in pieces) <= 4_096


@pytest.mark.parametrize(("width", "height"), [(1, 1), (4_000, 10), (10, 4_000), (3_000, 2_000)])
@pytest.mark.parametrize("window", [(20, 6), (80, 24), (200, 60)])
def test_a_picture_fits_into_the_window(tmp_path: Path, width: int, height: int, window: tuple[int, int]) -> None:
    (tmp_path / "a.png").write_bytes(png(8, 8)[:16] + struct.pack(">II", width, height) + b"\\8\0\0\0\0")
    sent = picture_rows(tmp_path / "a.png", "kitty", *window)
    found = re.search(r"c=(\d+),r=(\d+)", sent)
    assert found is not None
    assert 1 <= int(found[1]) <= window[0] - 5
    assert 1 <= int(found[2]) <= window[1] // 2
    assert sent.count("\n") == int(found[2]) - 1


def test_iterm_gets_other_kinds_too(tmp_path: Path) -> None:
    photo = tmp_path / "a.jpg"
    photo.write_bytes(b"\xff\xd8\xff\xe0 a photo")
    assert "]1337;File=inline=1;size=12;height=12;preserveAspectRatio=1:" in picture_rows(photo, "iterm", 80, 24)
    assert picture_rows(photo, "kitty", 80, 24) == ""


def test_what_is_no_picture_is_not_sent(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "text").write_text("\x1b[2Jno picture")
    (tmp_path / "large.png").write_bytes(png(8, 8) + bytes(2_000_000))
    for name in ("pipe", "text", "large.png", "missing", ".", "a\0b"):
        for drawing in ("kitty", "iterm"):
            assert picture_rows(tmp_path / name, drawing, 80, 24) == "", name


def test_only_files_are_drawn() -> None:
    shown: list[Shown] = [Picture(path=""), Link(url="a.png"), Picture(path="b.png", alt="B")]
    assert paths_of(shown) == ["b.png"]
