"""What packs see of the engines for files; the tests of the coding pack's tools go into the depth of each."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

from marvin_core import (
    EditedPlace,
    EditFailed,
    FilePatch,
    Hunk,
    SearchQuery,
    TextSource,
    ToolContext,
    ToolError,
    append_to_file,
    edit_files,
    find_files,
    folder_tree,
    real_place,
    search_files,
    write_text_file,
)
from tests.tools_coding.support import Project

T = TypeVar("T")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "project")
    made.write("notes/a.md", "one\ntwo\n")
    made.write("notes/b.md", "two\r\nthree\r\n")
    made.write("notes/old/c.txt", "two\n")
    made.write(".gitignore", "*.log\n")
    made.write("notes/x.log", "two\n")
    return made


def as_context(project: Project) -> ToolContext:
    """The engines use the paths and the processes of a context, and nothing else of it."""
    return cast("ToolContext", project)


def wait(project: Project, work: Coroutine[Any, Any, T]) -> T:
    async def run() -> T:
        try:
            return await work
        finally:
            await project.processes.close()

    return asyncio.run(run())


def test_one_place_is_replaced_and_the_change_told(project: Project) -> None:
    (change,) = edit_files(project.paths, [replacing("notes/b.md", "two\nthree", "2\n3\n4")])
    assert (project.root / "notes/b.md").read_bytes() == b"2\r\n3\r\n4\r\n"
    assert change.places == (EditedPlace(line=1, removed=2, added=3),)
    assert change.diff.startswith("--- a/notes/b.md\n+++ b/notes/b.md\n@@ -1,2 +1,3 @@\n-two")
    with pytest.raises(EditFailed, match=r"does not occur in 'notes/b\.md'; nothing was changed"):
        edit_files(project.paths, [replacing("notes/b.md", "two", "2")])


def replacing(path: str, old: str, new: str) -> FilePatch:
    return FilePatch(path=path, hunks=(Hunk(old=old, new=new),))


def test_an_error_names_no_tool_of_any_pack(project: Project) -> None:
    project.write("twice.txt", "x\ny\nx\n")
    for old in ("x", "nothing of it", "yx\nx", "1\tx\n2\ty"):
        with pytest.raises(ToolError) as raised:
            edit_files(project.paths, [replacing("twice.txt", old, "z")])
        assert "_" not in str(raised.value)
        assert "nothing was changed" in str(raised.value)


def test_texts_are_appended_and_written(project: Project) -> None:
    added = append_to_file(project.paths, "notes/b.md", "four\n")
    assert (added.size, added.total, added.mixes_line_ends, added.joins_line) == (5, 17, True, False)
    assert append_to_file(project.paths, "notes/a.md", "three").joins_line is False
    assert append_to_file(project.paths, "notes/a.md", "!").joins_line is True
    with pytest.raises(ToolError) as raised:
        append_to_file(project.paths, "notes/none.md", "x")
    assert isinstance(raised.value.__cause__, FileNotFoundError)
    written = write_text_file(project.paths, "new/d.md", "ä\n", create_only=True)
    assert (written.size, written.old_size, written.diff) == (
        3,
        None,
        "--- a/new/d.md\n+++ b/new/d.md\n@@ -0,0 +1,1 @@\n+ä\n",
    )
    with pytest.raises(ToolError) as raised:
        write_text_file(project.paths, "new/d.md", "x", create_only=True)
    assert isinstance(raised.value.__cause__, FileExistsError)
    replaced = write_text_file(project.paths, "new/d.md", "b\n")
    assert (replaced.old_size, "-ä\n+b\n" in replaced.diff) == (3, True)


def test_files_are_found_by_their_names(project: Project) -> None:
    def names(pattern: str, start: str = ".", *, anywhere: bool = False) -> list[str]:
        project.processes = project._runner()
        found = wait(project, find_files(as_context(project), pattern, start, anywhere=anywhere))
        return sorted(file.path for file in found)

    assert names("notes/*.md") == names("*.md", "notes") == ["notes/a.md", "notes/b.md"]
    assert names("*.txt") == []
    assert names("*.txt", anywhere=True) == names("**/*.txt") == ["notes/old/c.txt"]
    assert names("**/*.log") == []
    for pattern in ("", "../*", "/etc/*"):
        with pytest.raises(ToolError):
            names(pattern)


@pytest.mark.parametrize("programs", [("git",), ("git", "rg")])
def test_lines_are_found_by_an_expression(tmp_path: Path, project: Project, programs: tuple[str, ...]) -> None:
    if not all(map(shutil.which, programs)):
        pytest.skip("needs rg (ripgrep)")
    searcher = Project(project.root, programs)
    found = wait(
        searcher, search_files(as_context(searcher), SearchQuery(pattern="^two$", files="*.md", context_lines=1))
    )
    assert [(line.path, line.number, line.is_match) for line in found.lines] == [
        ("notes/a.md", 1, False), ("notes/a.md", 2, True), ("notes/b.md", 1, True), ("notes/b.md", 2, False),
    ]  # fmt: skip
    assert (found.matches, found.has_more, found.has_files) == (2, False, True)
    assert found.text() == "notes/a.md-1- one\nnotes/a.md:2: two\n--\nnotes/b.md:1: two\nnotes/b.md-2- three"


def test_what_is_not_found_is_told_apart(project: Project) -> None:
    def search(**query: Any) -> tuple[int, bool, bool]:
        project.processes = project._runner()
        found = wait(project, search_files(as_context(project), SearchQuery(**query)))
        return found.matches, found.has_more, found.has_files

    assert search(pattern="nowhere") == (0, False, True)
    assert search(pattern="two", files="*.rs") == (0, False, False)
    assert search(pattern="two", most=1) == (1, True, True)
    with pytest.raises(ToolError, match="is not a valid regular expression"):
        search(pattern="(")


def test_a_folder_is_shown_as_a_tree(project: Project) -> None:
    found = wait(project, folder_tree(as_context(project), "notes", depth=2))
    assert found.lines == ("old/", "  c.txt", "a.md", "b.md")
    assert (found.entries, found.is_cut) == (4, False)


def test_lines_of_a_file_are_read(project: Project) -> None:
    project.write("wide.txt", "ä\nb\nc\n".encode("utf-16"))

    async def read(path: str, first: int, last: int | None) -> tuple[tuple[str, ...], int | None]:
        with project.paths.open(path) as file:
            section = await TextSource(path, file).section(first, last, limit=1_000)
            return section.lines, section.total

    assert asyncio.run(read("wide.txt", 1, 2)) == (("ä", "b"), 3)
    assert asyncio.run(read("notes/b.md", 2, None)) == (("three",), 2)
    project.write("image.png", b"\x89PNG\r\n\x1a\n\0\0")
    with pytest.raises(ToolError, match=r"'image\.png' is an image of 10 bytes, not text"):
        asyncio.run(read("image.png", 1, None))


def test_links_are_resolved_and_confined(project: Project, tmp_path: Path) -> None:
    (project.root / "link").symlink_to("notes")
    (project.root / "out").symlink_to(tmp_path)
    assert real_place(as_context(project), "link/a.md") == "notes/a.md"
    with pytest.raises(ToolError):
        real_place(as_context(project), "out")
