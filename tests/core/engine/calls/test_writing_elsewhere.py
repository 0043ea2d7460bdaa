"""The context for writing the files of another folder: held to it, and put back as those of the working directory."""

from __future__ import annotations

from pathlib import Path

from marvin_core import PathRefused, ToolContext, edit_files, read_patch, tool
from marvin_core.testing import ToolRunner


@tool(access=["write"])
async def write_elsewhere(context: ToolContext, folder: str, path: str, text: str) -> str:
    """Write a file of another folder."""
    writing = context.writing(Path(folder))
    try:
        writing.paths.replace(path, text.encode())
    except PathRefused as refused:
        return f"refused: {refused}"
    writing.progress("written")
    return str(writing.paths.root)


@tool(access=["write"])
async def make_elsewhere(context: ToolContext, folder: str, path: str) -> str:
    """Make a folder in another folder."""
    return str(context.writing(Path(folder)).paths.make_folder(path))


@tool(access=["write"])
async def remove_elsewhere(context: ToolContext, folder: str, path: str) -> str:
    """Remove a folder of another folder."""
    context.writing(Path(folder)).paths.remove_folder(path)
    return "removed"


@tool(access=["write"])
async def try_a_patch(context: ToolContext, patch: str) -> str:
    """Tell what a patch would do."""
    (done,) = edit_files(context.paths, read_patch(patch), dry_run=True)
    return done.diff


def test_files_of_another_folder_are_written_and_put_back(marvin_tools: ToolRunner) -> None:
    folder = marvin_tools.home / "Things"
    said = marvin_tools.call(write_elsewhere, folder=str(folder), path="a/b.txt", text="one")
    assert said.text == str(folder.resolve())
    assert said.progress == ("written",)
    assert (folder / "a/b.txt").read_text() == "one"
    marvin_tools.call(write_elsewhere, folder=str(folder), path="a/b.txt", text="two")
    marvin_tools.take_back()
    assert (folder / "a/b.txt").read_text() == "one"
    marvin_tools.take_back()
    assert not (folder / "a/b.txt").exists()


def test_nothing_outside_of_that_folder_is_written(marvin_tools: ToolRunner) -> None:
    """I4: neither by its name nor by a link."""
    folder = marvin_tools.home / "Things"
    folder.mkdir()
    (folder / "out").symlink_to(marvin_tools.working_dir)
    for path in ("../x.txt", "out/x.txt", str(marvin_tools.working_dir / "x.txt")):
        assert marvin_tools.call(write_elsewhere, folder=str(folder), path=path, text="x").text.startswith("refused")
        assert marvin_tools.call(make_elsewhere, folder=str(folder), path=f"{path}/y").is_error
    assert list(marvin_tools.working_dir.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(marvin_tools: ToolRunner) -> None:
    (marvin_tools.home / "Things").write_text("a file")
    said = marvin_tools.call(write_elsewhere, folder=str(marvin_tools.home / "Things"), path="x", text="x")
    assert said.is_error
    assert "Things cannot be created" in said.text


def test_folders_are_made_and_empty_ones_removed(marvin_tools: ToolRunner) -> None:
    folder = marvin_tools.home / "Things"
    assert marvin_tools.call(make_elsewhere, folder=str(folder), path="a/b").text == "True"
    assert (folder / "a/b").is_dir()
    assert marvin_tools.call(make_elsewhere, folder=str(folder), path="a/b").text == "False"
    assert "not empty" in marvin_tools.call(remove_elsewhere, folder=str(folder), path="a").text
    assert marvin_tools.call(remove_elsewhere, folder=str(folder), path="a/b").text == "removed"
    assert [path.name for path in folder.iterdir()] == ["a"]
    (folder / "note").write_text("x")
    for path in ("note", "note/x", ".git/x"):
        assert marvin_tools.call(make_elsewhere, folder=str(folder), path=path).is_error


def test_a_patch_that_is_only_tried_writes_nothing(marvin_tools: ToolRunner) -> None:
    file = marvin_tools.working_dir / "a.txt"
    file.write_text("one\ntwo\n")
    said = marvin_tools.call(try_a_patch, patch="--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+ONE\n")
    assert "+ONE" in said.text
    assert file.read_text() == "one\ntwo\n"
