"""The examples of the pages for packs do what the pages say."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from marvin_core import Table, ToolContext, tool
from marvin_core.testing import ToolRunner

DOCS = Path(__file__).parents[3] / "docs"


def example(page: str, holds: str) -> dict[str, Any]:
    """What the example of a page defines that holds a text."""
    blocks = (DOCS / page).read_text(encoding="utf-8").split("```python")[1:]
    (code,) = [block.partition("\n")[2].partition("```")[0] for block in blocks if holds in block.partition("```")[0]]
    names: dict[str, Any] = {"__name__": __name__}
    exec(compile(code, page, "exec", dont_inherit=True), names)
    return names


def test_what_people_are_shown(marvin_tools: ToolRunner) -> None:
    for name, size in (("small.txt", 3), ("large.txt", 30)):
        (marvin_tools.working_dir / name).write_text("x" * size)
    outcome = marvin_tools.call(example("how-to/declare-tools.md", "largest_files")["largest_files"])
    assert outcome.text == "30 large.txt\n3 small.txt"
    table, picture, link = outcome.show
    assert isinstance(table, Table)
    assert table.rows == (("large.txt", 30), ("small.txt", 3))
    assert (picture.type, link.type) == ("picture", "link")
    assert [update.fraction for update in outcome.updates] == [0.0, 0.5]
    assert outcome.undo is not None


def test_a_database_of_the_working_directory(marvin_tools: ToolRunner) -> None:
    add_note = example("how-to/declare-tools.md", "notes.db")["add_note"]

    @tool(access=["write"])
    async def note(context: ToolContext, text: str) -> str:
        """Add a note."""
        add_note(context, text)
        return "done"

    for text in ("one", "two"):
        assert marvin_tools.call(note, text=text).text == "done"
    database = sqlite3.connect(marvin_tools.working_dir / "notes.db")
    assert database.execute("select text from notes").fetchall() == [("one",), ("two",)]
    database.close()


def test_the_number_of_the_interface() -> None:
    example("explanation/stability.md", "marvin_core.API")
