"""Sub-commands of packs that cannot be used cost their pack no more than themselves, and are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer

from marvin_core.plugins.sub_commands import sub_commands, take_over
from tests.support.installing import Place

BAD = """
import typer
from marvin_core import hookimpl, tool

@tool(access=["read"])
async def wave() -> str:
    "Wave."
    return "waved"

@hookimpl
def marvin_register_tools():
    return [wave]

@hookimpl
def marvin_extend_cli(app):
    @app.command()
    def water(plants: 'Plants'):
        "Water the plants."

    @app.command()
    def harvest():
        typer.echo("harvested")
"""


def good() -> None:
    """Nothing is wrong with it."""


def bad(plants: int | str) -> None:
    """Typer makes no option of it."""


def test_what_cannot_be_used_is_told_with_the_function_and_its_place() -> None:
    app, group, nameless = typer.Typer(), typer.Typer(), typer.Typer()
    app.command()(good)
    app.command("worse")(bad)
    group.command("inner")(good)
    group.command("broken")(bad)
    app.add_typer(group, name="group")
    nameless.command("loose")(bad)
    nameless.command("sound")(good)
    app.add_typer(nameless)
    found = sub_commands(app)
    assert {name for name, one in found.items() if one.fault} == {"worse", "group", "loose"}
    assert {name for name, one in found.items() if not one.fault} == {"good", "sound"}
    place = f"(in bad, {__file__}, line {bad.__code__.co_firstlineno})"
    assert all(one.fault.endswith(place) for one in found.values() if one.fault)


def test_only_what_can_be_used_is_taken_over() -> None:
    added, app = typer.Typer(), typer.Typer()
    for function in (good, bad):
        added.command()(function)
    assert set(take_over(added, ["good", "bad"], app)) == {"bad"}
    application: Any = app
    assert [info.callback for info in application.registered_commands] == [good]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.slow
def test_a_pack_with_a_bad_annotation_keeps_its_tools_and_its_other_sub_commands(place: Place) -> None:
    source = place.install("marvin-garden", BAD, pack="garden")
    listed = place.marvin("packs", "list")
    assert listed.code == 1
    assert "garden  marvin-garden 1.0, 1 tool, 2 sub-commands\n" in listed.out
    assert "  problem: the sub-command water cannot be used: NameError: name 'Plants' is not defined" in listed.out
    assert f"(in water, {source}, line " in listed.out
    assert place.marvin("harvest").out == "harvested\n"
    watered = place.marvin("water")
    assert watered.code == 1
    assert watered.err.startswith("marvin: The sub-command water of marvin-garden cannot be used: NameError: ")


@pytest.mark.slow
def test_who_asks_for_something_of_a_pack_that_is_left_out_is_told_so_and_nothing_else(place: Place) -> None:
    sound = BAD.replace("'Plants'", "int")
    source = place.install("marvin-garden", sound, pack="garden")
    assert place.marvin("tools", "call", "wave").out == "waved\n"
    source.write_text("import nothing_has_this_name\n" + sound)
    reason = "garden, of marvin-garden, was left out: ModuleNotFoundError: No module named 'nothing_has_this_name'"
    asked = (
        (["water"], f"marvin: There is no sub-command water: {reason}.\n"),
        (["tools", "call", "wave"], f"marvin: The tool wave is not available here: {reason}. Do it another way.\n"),
        (["tools", "show", "wave"], f"marvin: The tool wave is not available here: {reason}. Do it another way.\n"),
        (["--tools", "coding,wave", "tools", "list"], f"marvin: There is no tool 'wave': {reason}.\n"),
    )
    for words, told in asked:
        ended = place.marvin(*words)
        assert ended.code != 0
        *starts, last = ended.err.splitlines(keepends=True)
        assert last == told
        assert all(line.startswith("marvin: pack garden of marvin-garden was left out: ") for line in starts)


TELLING = """
import sys
from marvin_core import PackSettings, hookimpl

@hookimpl
def marvin_register_settings():
    return PackSettings(secrets={"TELLER_KEY": "its key"})

@hookimpl
def marvin_extend_cli(app):
    import typer

    @app.command()
    def tell(context: typer.Context, fail: bool = False):
        key = context.obj.secret("TELLER_KEY")
        print("printed", key)
        print("also", key, file=sys.stderr)
        sys.stdout.writelines([f"written {key}\\n"])
        typer.echo(f"echoed {key}")
        if fail:
            raise RuntimeError(f"refused {key}")
"""


@pytest.mark.slow
def test_what_a_sub_command_prints_and_raises_tells_no_secret(place: Place) -> None:
    place.install("marvin-teller", TELLING)
    ended = place.marvin("tell", "--fail", TELLER_KEY="the-key-on-the-back")
    hidden = "[redacted]"
    assert (ended.code, ended.out) == (1, f"printed {hidden}\nwritten {hidden}\nechoed {hidden}\n"), ended.err
    assert ended.err.startswith(f"also {hidden}\nTraceback")
    assert ended.err.endswith(
        f"\nmarvin: the sub-command tell of marvin-teller failed: RuntimeError: refused {hidden}\n"
    )
    assert "the-key-on-the-back" not in ended.err
