"""What holds for every edit: nothing goes that was not named, all or nothing, and in a bounded time."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from marvin_core import EditFailed, FilePatch, Hunk, KnownFiles, ToolError, edit_files, is_patch, read_patch
from marvin_core.guard.files.sandbox import SandboxPaths
from marvin_core.kit.editing.document import Document
from marvin_core.kit.editing.likeness import folded
from marvin_core.kit.editing.locating import Locator
from tests.tools_coding.support import files_below

LINE = st.sampled_from(
    ["a", "b", "  a", "\tb", "a ", "", "  ", "“c”", '"c"', "é", "e\u0301", "x = 1", "    x = 1", "..."]
)
LINES = st.lists(LINE, max_size=12)
ENDS = st.sampled_from(["\n", "\r\n"])


def bare(line: str) -> str:
    """What leniency leaves of a line."""
    return "".join(folded(line.strip("\r")).split())


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> SandboxPaths:
    return SandboxPaths(tmp_path_factory.mktemp("properties"))


@settings(deadline=None)
@given(LINES, LINES, LINES, ENDS, st.booleans(), st.booleans())
def test_no_edit_removes_lines_that_it_did_not_name(
    before: list[str], old: list[str], new: list[str], end: str, closed: bool, by_lines: bool
) -> None:
    """The lines that go are those of the old text, but for blanks, punctuation and composition; all others stay."""
    raw = end.join(before) + (end if closed and before else "")
    hunk = Hunk(
        old="".join(f"{line}\n" for line in old) if by_lines else "\n".join(old),
        new="".join(f"{line}\n" for line in new) if by_lines else "\n".join(new),
        by_lines=by_lines,
    )
    assume(hunk.old)
    document = Document(raw)
    try:
        match = Locator(document).find(hunk)
    except ToolError:
        return
    after = document.replaced(match.spans)
    at = 0
    for span in match.spans:
        assert document.text[at : span.start] in Document(after).text
        at = span.end
    gone = [line for span in match.spans for line in document.text[span.start : span.end].split("\n")]
    named = [bare(line) for line in old]
    assert all(not bare(line) or bare(line) in named for line in gone)
    first, last = match.spans[0].start, match.spans[-1].end
    assert Document(after).text.startswith(document.text[:first])
    assert Document(after).text.endswith(document.text[last:])


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=8), st.data())
def test_a_diff_of_two_texts_makes_one_of_the_other(
    paths: SandboxPaths, before: list[str], data: st.DataObject
) -> None:
    from marvin_core import unified_diff

    after = list(before)
    place = data.draw(st.integers(0, len(after)))
    after[place : place + data.draw(st.integers(0, 2))] = data.draw(st.lists(st.sampled_from(["x", "y"]), max_size=2))
    old, new = ("".join(f"{line}\n" for line in lines) for lines in (before, after))
    assume(old != new)
    assume(new)
    diff = unified_diff("f.txt", old, new)
    paths.replace("f.txt", old.encode())
    edit_files(paths, read_patch(diff))
    with paths.open("f.txt") as file:
        assert file.read().decode() == new


@settings(deadline=None)
@given(st.lists(st.sampled_from([*"ab \n+-@*<>=\r", "*** Update File: f.txt\n", "*** Begin Patch\n", "*** End Patch",
                                 "<<<<<<< SEARCH\n", "=======\n", ">>>>>>> REPLACE\n", "--- a/f.txt\n+++ b/f.txt\n",
                                 "@@ -1 +1 @@\n", "```\n"]), max_size=25).map("".join))  # fmt: skip
def test_any_text_is_a_patch_or_gets_a_reason(text: str) -> None:
    is_patch(text)
    said = ""
    try:
        assert read_patch(text, "f.txt")
    except ToolError as error:
        said = str(error)
    assert not said or said.endswith("Nothing was changed.")


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "c", "zz"]), min_size=1, max_size=4), st.integers(0, 3))
def test_several_files_are_changed_or_none(paths: SandboxPaths, olds: list[str], wrong: int) -> None:
    for name in "0123":
        paths.replace(name, b"a\nb\nc\n")
    patches = [FilePatch(path=str(i), hunks=(Hunk(old=old, new="new"),)) for i, old in enumerate(olds)]
    before = files_below(paths.root)
    try:
        done = edit_files(paths, patches, known=KnownFiles({}))
    except EditFailed:
        assert "zz" in olds
        assert files_below(paths.root) == before
    else:
        assert len(done) == len(olds)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "count"),
    [
        (", ".join(str(number) for number in range(20)), 20_000),
        ("ACGT" * 20, 20_000),
        ("x", 300_000),
        ("", 300_000),
        ("x" * 2_000_000, 1),
        ("“x” é", 100_000),
    ],
)
def test_what_is_not_there_is_told_in_a_bounded_time(tmp_path: Path, line: str, count: int) -> None:
    """The limit is that of the test itself; a search that compares all lines with all takes many minutes."""
    paths = SandboxPaths(tmp_path)
    paths.replace("f", f"{line}\n".encode() * count)
    many = "\n".join([line] * (500 if count > 1 else 2) + ["zzz"])
    for old in (line[:-3] + "zzz", f"{line}\n{line}\nzzz\n", many, "zzz\n...\n" * 20):
        with pytest.raises(EditFailed) as raised:
            edit_files(paths, [FilePatch(path="f", hunks=(Hunk(old=old, new="x\n...\n"),))])
        assert len(str(raised.value)) < 20_000


@pytest.mark.timeout(60)  # a fraction of a second; minutes where each line of the one is counted in all of the other
def test_many_lines_are_looked_for_in_many_lines_at_once() -> None:
    lines = [f"line number {number}" for number in range(100_000)]
    wanted = [f"  {line} " for line in lines[40_000:60_000]]
    with pytest.raises(ToolError, match="does not occur"):
        Locator(Document("\n".join(lines))).find(Hunk(old="\n".join([*wanted, "another"]), new="x"))
    found = Locator(Document("\n".join(lines))).find(Hunk(old="\n".join(wanted), new="  x"))
    assert found.how == "indentation"


def test_an_empty_text_is_nowhere_in_a_file_that_other_changes_are_for(tmp_path: Path) -> None:
    """It would be everywhere, or be all of the file."""
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    files, known = SandboxPaths(tmp_path), KnownFiles({})
    known.note(str(tmp_path / "a.txt"), (tmp_path / "a.txt").stat(), b"one\ntwo\n")
    first, nothing = Hunk(old="one", new="1"), Hunk(old="", new="# end")
    for hunks in ((first, nothing), (nothing, first), (first, nothing.replace(every=True))):
        apart = [FilePatch(path="a.txt", hunks=(one,)) for one in hunks]
        for patches in ([FilePatch(path="a.txt", hunks=hunks)], apart):
            with pytest.raises(ToolError):
                edit_files(files, patches, known=known)
            assert files_below(tmp_path) == {"a.txt": b"one\ntwo\n"}


def test_a_file_is_made_and_then_changed_by_one_call(tmp_path: Path) -> None:
    made, changed = Hunk(old="", new="one\n"), Hunk(old="one", new="two")
    edit_files(SandboxPaths(tmp_path), [FilePatch(path="a.txt", hunks=(one,)) for one in (made, changed)])
    assert files_below(tmp_path) == {"a.txt": b"two\n"}
