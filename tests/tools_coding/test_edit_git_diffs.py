"""Diffs of several files that git made: apply_patch leaves what git has, whatever names and lines they hold."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from marvin_tools_coding.files.edit import apply_patch
from tests.tools_coding.support import Project, files_below

NAMES = ["a.txt", "b c.txt", "é/ü.txt", "a/a.txt", "b/b.txt", 'q"uote.txt', "tab\tname.txt", "-dash.txt", "--- a.txt"]
LINES = ["a", "", "  x", " ", "-- sql", "++ inc", "--- y", "+++ z", "@@ -1 +1 @@", "diff --git a/x b/x", "```", "<<EOF"]
MARKERS = ["\\ No newline", "*** Begin Patch", "*** End Patch", "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"]
OTHERS = ["rename from a", "new mode 100755", "form\x0cfeed", "u\u2028v", "é’"]


@st.composite
def texts(draw: st.DrawFn, end: str) -> str:
    lines = draw(st.lists(st.sampled_from([*LINES, *MARKERS, *OTHERS]), max_size=12))
    closed = draw(st.booleans())
    return end.join(lines) + (end if lines and closed else "")


@st.composite
def changed(draw: st.DrawFn, text: str, end: str) -> str:
    """The text with some other lines."""
    lines = text.split(end)
    place = draw(st.integers(0, len(lines)))
    lines[place : place + draw(st.integers(0, 2))] = draw(st.lists(st.sampled_from(LINES), max_size=3))
    return end.join(lines)


@st.composite
def trees(draw: st.DrawFn) -> tuple[dict[str, str], dict[str, str]]:
    """Files, and the same with some changed, moved, deleted and new.

    Their lines end alike: git takes a new file for a moved one where it is like that, and lines that change keep the
    ends of those beside them.
    """
    end = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    names = draw(st.permutations(NAMES))
    before = {name: draw(texts(end)) for name in names[:3]}
    after = {
        names[0]: draw(changed(before[names[0]], end)),
        names[3]: draw(changed(before[names[1]], end)),
        names[4]: draw(texts(end)),
    }
    return before, after


def put(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("diffs") / "project")


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@example(tree=({"a.txt": "a"}, {"a.txt": "a\r\na"}), context=0, moves="-M30")  # no line has an end to follow
@given(tree=trees(), context=st.sampled_from([0, 1, 3]), moves=st.sampled_from(["-M30", "--no-renames"]))
def test_a_diff_of_several_files_leaves_what_git_has(
    shared: Project, tree: tuple[dict[str, str], dict[str, str]], context: int, moves: str
) -> None:
    before, after = tree
    root = shared.root
    diff = shared.root.parent / "change.diff"
    shared.state.clear()  # the files of an earlier example are others
    shutil.rmtree(root)
    root.mkdir()
    shared.git("init", "-q")
    shared.git("config", "core.autocrlf", "false")
    put(root, before)
    shared.git("add", "-A")
    shared.git("commit", "-qm", "before")
    for name in before:
        (root / name).unlink()
    put(root, after)
    shared.git("add", "-A")
    shared.git("diff", "--cached", "--text", moves, f"-U{context}", f"--output={diff}")
    expected = files_below(root)
    shared.git("reset", "-q", "--hard")
    text = diff.read_bytes().decode()
    if text:
        shared.call(apply_patch, patch=text)
    assert files_below(root) == expected
