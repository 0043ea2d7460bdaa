"""The context for the files of another folder: it reads there, is held to that, and writes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from marvin_core import (
    FileWrite,
    PathRefused,
    SearchQuery,
    TextSource,
    ToolContext,
    find_files,
    search_files,
    tool,
)
from marvin_core.testing import ToolRunner


@tool(access=["read"])
async def read_there(context: ToolContext, folder: str, path: str) -> str:
    """Read a file of another folder."""
    reading = context.reading(Path(folder))
    reading.progress("reading")
    with reading.paths.open(path) as file:
        section = await TextSource(path, file).section(limit=10_000)
    return section.plain()


@tool(access=["read"])
async def look_there(context: ToolContext, folder: str) -> str:
    """Search another folder, and tell where programs start."""
    reading = context.reading(Path(folder))
    files = [file.path for file in await find_files(reading, "**/*")]
    found = await search_files(reading, SearchQuery(pattern="needle"))
    ran = await reading.processes.run(["pwd"])
    reading.state["seen"] = files
    same = reading.state is context.state and reading.session.id == context.session.id
    return f"{sorted(files)} {found.text()} {ran.output.decode().strip()} {same} {context.paths.root}"


WRITES: dict[str, Callable[[ToolContext], object]] = {
    "replace": lambda context: context.paths.replace("a.txt", b"x"),
    "create": lambda context: context.paths.replace("new.txt", b"x", create_only=True),
    "append": lambda context: context.paths.append("a.txt", b"x"),
    "remove": lambda context: context.paths.remove("a.txt"),
    "together": lambda context: context.paths.write_together([FileWrite(path="b.txt", data=b"x")]),
    "real_file": lambda context: context.paths.real_file("a.txt", writing=True).__enter__(),
}


@tool(access=["read", "write"])
async def write_there(context: ToolContext, folder: str, how: str) -> str:
    """Try to write to another folder."""
    try:
        WRITES[how](context.reading(Path(folder)))
    except PathRefused as refused:
        return f"refused: {refused}"
    return "written"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A folder that is not the working directory."""
    folder = tmp_path / "other"
    (folder / "inner").mkdir(parents=True)
    (folder / "a.txt").write_text("a needle\n")
    (folder / "inner/b.txt").write_text("b\n")
    (folder / "out").symlink_to("/etc/passwd")
    return folder


def test_it_reads_there_and_tells_how_far_it_is(marvin_tools: ToolRunner, other: Path) -> None:
    outcome = marvin_tools.call(read_there, folder=str(other), path="a.txt")
    assert outcome.text.strip() == "a needle"
    assert outcome.progress == ("reading",)


@pytest.mark.parametrize("path", ["../work/x", "out", "/etc/passwd", "nothing"])
def test_it_is_held_to_the_folder(marvin_tools: ToolRunner, other: Path, path: str) -> None:
    """I4."""
    outcome = marvin_tools.call(read_there, folder=str(other), path=path)
    assert outcome.is_error
    assert "root:" not in outcome.text


def test_the_kit_searches_there_and_all_else_is_that_of_the_call(marvin_tools: ToolRunner, other: Path) -> None:
    text = marvin_tools.call(look_there, folder=str(other)).text
    work = marvin_tools.working_dir
    assert text == f"['a.txt', 'inner/b.txt'] a.txt:1: a needle {work} True {work}"


@pytest.mark.parametrize("how", WRITES)
def test_nothing_is_written_there(marvin_tools: ToolRunner, other: Path, how: str) -> None:
    before = {path: path.read_bytes() for path in other.rglob("*.txt")}
    assert marvin_tools.call(write_there, folder=str(other), how=how).text.startswith("refused: ")
    assert {path: path.read_bytes() for path in other.rglob("*.txt")} == before


@pytest.mark.parametrize("folder", ["nowhere", "a.txt"])
def test_what_is_no_folder_is_told(marvin_tools: ToolRunner, other: Path, folder: str) -> None:
    outcome = marvin_tools.call(read_there, folder=str(other / folder), path="x")
    assert outcome.is_error
    assert "is not a folder" in outcome.text
