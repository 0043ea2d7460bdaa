"""Edits of hostile sizes: each ended after minutes once, and ends within a fraction of a second of work."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from marvin_core import FilePatch, Hunk, ToolError, edit_files, read_patch
from marvin_core.guard.files.sandbox import SandboxPaths
from marvin_core.kit.editing.document import Document
from marvin_core.kit.editing.locating import PLACES, Locator

BLOCK = "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n"
LIMIT = 20
"""Seconds of work; the square of the sizes below takes minutes."""


@contextmanager
def bounded() -> Iterator[None]:
    start = time.process_time()
    yield
    assert time.process_time() - start < LIMIT


@pytest.fixture
def paths(tmp_path: Path) -> SandboxPaths:
    return SandboxPaths(tmp_path)


@pytest.mark.parametrize(
    "above",
    ["x" + " " * 200_000 + "y", "x" + "`*: " * 50_000 + "y.x", "file:" * 200_000 + "y.x", "#*` >-" * 20_000],
    ids=["blanks", "decoration", "labels", "marks"],
)
def test_a_long_line_above_a_block_is_no_path(above: str) -> None:
    with bounded():
        assert [patch.path for patch in read_patch(f"{above}\n{BLOCK}", "a.txt")] == ["a.txt"]


def numbered(count: int, form: Callable[[int], str] = "line number {}\n".format) -> str:
    return "".join(map(form, range(count)))


LINES = numbered(50_000)
MARKS = "\u0301\u0327" * 200_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "hunks"),
    [
        (LINES, [Hunk(old=numbered(4_000, "line nomber {}\n".format), new="x")]),
        (LINES, [Hunk(old=f"line {i}\n", new="x\n", by_lines=True, in_order=True) for i in range(500)]),
        (
            LINES,
            [
                Hunk(old=f"line number {i}\n", new="x\n", by_lines=True, headings=(f"no line {i}",), in_order=True)
                for i in range(500)
            ],
        ),
        (LINES, [Hunk(old="line\n", new="x\n", by_lines=True, headings=("line number", "line number", "line"))]),
        (f"a{MARKS}", [Hunk(old="a\u0301\u0301x", new="x")]),
        ("plain ’ text\n", [Hunk(old=f"b{MARKS}", new="x")]),
    ],
    ids=["a long text", "many hunks", "many headings", "common headings", "marks in the file", "marks in the text"],
)
def test_what_is_missing_is_said_soon(paths: SandboxPaths, content: str, hunks: list[Hunk]) -> None:
    paths.replace("a.txt", content.encode())
    with bounded(), pytest.raises(ToolError):
        edit_files(paths, [FilePatch(path="a.txt", hunks=tuple(hunks))])


@pytest.mark.slow
def test_every_place_of_a_file_with_both_line_ends() -> None:
    document = Document("a\r\nb\n" * 50_000)
    with bounded():
        match = Locator(document).find(Hunk(old="b\na", new="b\nc\na", every=True))
        assert len(match.spans) == 49_999
        assert document.replaced(match.spans).startswith("a\r\nb\nc\na\r\nb\n")


CLASSES = numbered(3 * PLACES, "class C{}:\n    def f(self):\n        return 0\n\n".format)
LAST = 3 * PLACES - 1


@pytest.mark.parametrize("indentation", ["        ", "    "], ids=["exact", "lenient"])
@pytest.mark.parametrize(
    "told",
    [{"headings": (f"class C{LAST}:",)}, {"headings": (f"class C{LAST}:", "def f")}, {"line": 4 * LAST + 3}],
    ids=["heading", "two headings", "line"],
)
def test_the_place_that_is_told_is_found_behind_many_others(indentation: str, told: dict[str, Any]) -> None:
    hunk = Hunk(old=f"{indentation}return 0\n", new=f"{indentation}return 1\n", by_lines=True, in_order=True)
    document = Document(CLASSES)
    match = Locator(document).find(hunk.replace(**told))
    assert document.line_at(match.spans[0].start) == 4 * LAST + 3


def test_the_end_of_the_file_is_found_behind_many_others() -> None:
    document = Document("end\n" * (3 * PLACES))
    match = Locator(document).find(Hunk(old="end\n", new="END\n", by_lines=True, at_end=True))
    assert match.end == len(document.text)


@pytest.mark.parametrize("text", ["", "a", "a\n", "a\nb", "\n", "a\n\n", "a\r\nb\r\n", "a\rb\r"])
def test_lines_are_counted_as_newlines_are(text: str) -> None:
    document = Document(text)
    for position in range(len(document.text) + 1):
        assert document.line_at(position) == document.text.count("\n", 0, position) + 1


@pytest.mark.parametrize("seed", range(6))
def test_whether_indentation_fits_is_the_same_in_every_process(seed: int) -> None:
    """Two lines as deep as each other, but not in the file: the order of a set, which Python varies, decided."""
    program = "from marvin_core.kit.editing.likeness import Indentation\n"
    program += "print(Indentation([' \\ta', '    b'], ['  a', '   b']).fits)"
    argv = [sys.executable, "-P", "-c", program]
    said = subprocess.run(argv, env={**os.environ, "PYTHONHASHSEED": str(seed)}, capture_output=True, check=True)
    assert said.stdout == b"False\n"
