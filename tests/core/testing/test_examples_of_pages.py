"""The examples of the pages for packs do what the pages say."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from marvin_core import Hook, Table, ToolContext, tool
from marvin_core.testing import PackRunner, ToolRunner

DOCS = Path(__file__).parents[3] / "docs"


def example(page: str, holds: str) -> dict[str, Any]:
    """What the example of a page defines that holds a text."""
    blocks = (DOCS / page).read_text(encoding="utf-8").split("```python")[1:]
    (code,) = [block.partition("\n")[2].partition("```")[0] for block in blocks if holds in block.partition("```")[0]]
    module = sys.modules["example"] = ModuleType("example")  # the kit finds the pack of a tool by its module
    exec(compile(code, page, "exec", dont_inherit=True), vars(module))
    return vars(module)


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


def test_habits_of_models(marvin_tools: ToolRunner) -> None:
    pages = example("how-to/declare-tools.md", "acme_pages")["acme_pages"]
    assert marvin_tools.call(pages, offset=3, limit=2, explanation="to read").text == "Pages 3 to 4"
    assert marvin_tools.call(pages, first=3, start=3, end=5).text == "Pages 3 to 5"
    assert "Leave out reverse" in marvin_tools.call(pages, reverse=True).text


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


def test_a_sub_command_that_imports_typer_only_where_it_is_run(marvin_pack: PackRunner) -> None:
    assert "typer" not in example("extend/sub-commands.md", "run.config.working_dir")
    plugin = sys.modules["example"]
    outcome = marvin_pack.cli(plugin, "place")
    assert (outcome.code, outcome.out) == (0, f"{marvin_pack.working_dir}\n"), outcome.err


@pytest.mark.parametrize("page", ["extend/hooks.md", "explanation/packs.md"])
def test_a_page_with_a_table_of_the_methods_of_hooks_has_all(page: str) -> None:
    methods = [name for name in vars(Hook) if not name.startswith("_") and callable(getattr(Hook, name))]
    text = (DOCS / page).read_text(encoding="utf-8")
    assert [name for name in methods if f"\n| `{name}` |" not in text] == []


def test_the_list_that_lasts_is_kept_whole(marvin_tools: ToolRunner) -> None:
    listed = example("how-to/declare-tools.md", "shopping_list")["shopping_list"]
    outcome = marvin_tools.call(listed, items=["tea", "milk"])
    assert (outcome.text, outcome.lasting) == ("2 things noted.", "tea\nmilk")
