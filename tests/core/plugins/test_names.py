"""Names that several packs bring: ours are safe, the user chooses among others, and who loses one loses no more."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import Command, ToolSpec
from marvin_core.api.session import SessionControl
from marvin_core.plugins.model import Owned, Pack
from marvin_core.plugins.names import Names
from marvin_core.tools.sets import SETS
from tests.support.engine import spec
from tests.support.installing import MARVIN, Place, tool_pack


def pack(name: str, *, own: bool = False) -> Pack:
    return Pack(name=name, distribution=f"dist-{name}", version="1.0", module=name, own=own)


OURS, ONE, TWO = pack("files", own=True), pack("one"), pack("two")
PACKS = (OURS, ONE, TWO)


def tools(*brought: tuple[Pack, str, str]) -> list[Owned[ToolSpec]]:
    return [(owner.key, spec(name, group=group)) for owner, name, group in brought]


def offered(names: Names, *brought: tuple[Pack, str, str]) -> dict[str, str]:
    return {found.name: key for key, found in names.tools(tools(*brought))}


def test_a_name_of_ours_stays_ours_whatever_the_user_prefers() -> None:
    names = Names((ONE, OURS), prefer=("one",))
    found = offered(names, (ONE, "read", "one"), (OURS, "read", "shell"))
    assert found == {"read": OURS.key, "one_read": ONE.key}
    assert names.refused == {
        ONE.key: ["tool read of dist-one is available as one_read: dist-files already provides one with that name."]
    }
    assert names.contests() == [], "there is nothing to choose"


def test_a_sub_command_of_ours_stays_ours_whatever_the_user_prefers() -> None:
    names = Names((ONE, OURS), prefer=("one",))
    assert names.winners("sub-command", [(ONE.key, "tk"), (OURS.key, "tk")]) == {"tk": OURS.key}
    assert names.refused == {
        ONE.key: ["sub-command tk of dist-one was refused: dist-files already provides one with that name."]
    }


@pytest.mark.parametrize("word", ["shell", "coding", "all"])
def test_no_other_tool_has_the_name_of_a_group_or_a_set_of_ours(word: str) -> None:
    """`--tools shell` would choose it as well."""
    found = offered(Names(PACKS, ()), (OURS, "run", "shell"), (ONE, word, "one"))
    assert found == {"run": OURS.key, f"one_{word}": ONE.key}


@pytest.mark.parametrize("word", ["shell", "run", "coding"])
def test_no_other_group_has_a_word_of_ours(word: str) -> None:
    names = Names(PACKS, ())
    (_, other) = names.tools(tools((OURS, "run", "shell"), (ONE, "wave", word)))
    assert other[1].group == "one"
    assert names.refused[ONE.key] == [f"its group {word} is called one: that name is used by Marvin's own tools"]


@pytest.mark.parametrize(
    ("prefer", "winner"), [((), ONE), (("two",), TWO), (("dist-two", "one"), TWO), (("one",), ONE)]
)
def test_among_others_the_user_chooses(prefer: tuple[str, ...], winner: Pack) -> None:
    names = Names(PACKS, prefer)
    found = offered(names, (ONE, "wave", "one"), (TWO, "wave", "two"))
    loser = TWO if winner is ONE else ONE
    assert found == {"wave": winner.key, f"{loser.name}_wave": loser.key}
    assert bool(names.contests()) is not bool(prefer), "what the user chose is not asked again"
    assert bool(names.settled) is bool(prefer)


def test_a_contest_says_how_to_choose() -> None:
    names = Names(PACKS, ())
    offered(names, *((owner, f"tool{n}", owner.name) for owner in (ONE, TWO) for n in range(7)))
    (line,) = names.contests()
    assert line.startswith("packs one and two both provide tool tool0, tool tool1, ")
    assert "tool tool4, ...; that of one is used." in line
    assert "config set packs.prefer '[two]'" in line


def test_the_tool_under_another_name_is_still_found_in_its_module() -> None:
    (_, (_, other)) = Names(PACKS, ()).tools(tools((ONE, "wave", "one"), (TWO, "wave", "two")))
    assert (other.name, other.function) == ("two_wave", "wave")


def test_a_name_that_is_taken_twice_is_refused() -> None:
    names = Names(PACKS, ())
    found = offered(names, (ONE, "wave", "one"), (ONE, "wave", "one"), (ONE, "two_wave", "one"), (TWO, "wave", "two"))
    assert found == {"wave": ONE.key, "two_wave": ONE.key}
    assert names.refused[ONE.key] == ["tool wave of dist-one was refused: it provides that name twice."]
    assert (
        "tool wave of dist-two was refused: dist-one already provides one with that name" in names.refused[TWO.key][0]
    )


def test_a_name_that_would_be_too_long_is_refused() -> None:
    found = offered(Names(PACKS, ()), (ONE, "w" * 62, "one"), (TWO, "w" * 62, "two"))
    assert found == {"w" * 62: ONE.key}


NAMES = st.sampled_from(
    ["read", "run", "wave", "shell", "coding", "one_wave", "two_wave", "one_read", "two_run", "w" * 62]
)
BROUGHT = st.lists(
    st.tuples(st.sampled_from(PACKS), NAMES, st.sampled_from(["", "shell", "one", "all", "run"])), max_size=12
)


@given(BROUGHT, st.permutations(PACKS), st.sampled_from([(), ("one",), ("two",), ("files", "two", "one")]))
def test_whatever_packs_bring(brought: list[tuple[Pack, str, str]], order: list[Pack], prefer: tuple[str, ...]) -> None:
    """Ours keep their names, no other has a word of ours, no two have one name, and what is not offered is told."""
    names = Names(order, prefer)
    found = names.tools(tools(*brought))
    own = {name for owner, name, _ in brought if owner is OURS}
    words = {*SETS, *own, *(group for owner, _, group in brought if owner is OURS)}
    assert {one.name for key, one in found if key == OURS.key} == own
    others = [one for key, one in found if key != OURS.key]
    assert not {one.name for one in others} & words
    assert not {one.group for one in others} & words
    assert len({one.name for _, one in found}) == len(found)
    told = [line for lines in (*names.refused.values(), *names.settled.values()) for line in lines]
    for owner, name, _ in brought:
        offered_as = {one.name for key, one in found if key == owner.key and name in (one.name, one.function)}
        assert offered_as or any(line.startswith(f"tool {name} of dist-{owner.name} was refused") for line in told)


async def nothing(session: SessionControl, rest: str) -> None:
    """Do nothing."""


def command(owner: Pack, name: str) -> Owned[Command]:
    return owner.key, Command(name=name, help="", run=nothing)


def test_a_taken_command_has_its_packs_name_before_it() -> None:
    names = Names(PACKS, ())
    registered = [command(OURS, "usage"), command(ONE, "usage"), command(ONE, "moon"), command(TWO, "help")]
    found = [one.name for one in names.commands(registered, {"usage", "help"})]
    assert found == ["usage", "one_usage", "moon", "two_help"]
    assert names.refused[TWO.key] == ["command help of dist-two is available as two_help: Marvin uses that name."]


TWO_SUB_COMMANDS = """
from marvin_core import hookimpl

@hookimpl
def marvin_extend_cli(app):
    import typer

    @app.callback()
    def everything():
        print("this is mine now")

    @app.command()
    def doctor():
        print("no doctor")

    @app.command()
    def bark(name: str = "you"):
        print(f"{WHO} barks at {name}")

    unnamed = typer.Typer()

    @unnamed.command()
    def growl():
        print(f"{WHO} growls")

    @unnamed.command()
    def howl():
        print(f"{WHO} howls")

    app.add_typer(unnamed)

WHO = "@WHO@"
"""


@pytest.mark.slow
def test_a_taken_sub_command_costs_its_pack_that_one_only(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.install("acme-dog", TWO_SUB_COMMANDS.replace("@WHO@", "a dog"))
    place.install("wolf", TWO_SUB_COMMANDS.replace("@WHO@", "a wolf").replace("def growl", "def snarl"))
    assert place.marvin("bark", "--name", "Ada").out == "a dog barks at Ada\n"
    assert place.marvin("snarl").out == "a wolf growls\n"
    assert place.marvin("howl").out == "a dog howls\n"
    listed = place.marvin("packs", "list")
    assert "sub-command doctor of acme-dog was refused: marvin-core already provides one with that name." in listed.out
    assert "sub-command bark of wolf was refused: acme-dog already provides one with that name." in listed.out
    assert "mine now" not in listed.out
    assert place.marvin("bark", MARVIN_PACKS="wolf").out == "a wolf barks at you\n"


@pytest.mark.slow
def test_a_sub_command_of_a_pack_that_broke_is_no_prompt(tmp_path: Path) -> None:
    place = Place(tmp_path)
    source = place.install("acme-dog", TWO_SUB_COMMANDS)
    assert place.marvin("packs", "list").code == 1  # it has a name that is ours
    source.write_text("1 / 0\n")
    barked = place.marvin("bark")
    assert (barked.code, barked.out) == (1, "")
    assert "was left out: ZeroDivisionError: division by zero" in barked.err


@pytest.mark.slow
def test_a_clash_is_told_at_the_start_until_the_user_has_chosen(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.install("aa-first", tool_pack("greet", "first"))
    place.install("bb-second", tool_pack("greet", "second"))
    told = place.marvin("tools", "call", "greet")
    assert told.out == "first\n"
    assert told.err.startswith(
        "marvin: packs aa_first and bb_second both provide tool greet; that of aa_first is used. "
    )
    assert place.marvin("tools", "call", "bb_second_greet").out == "second\n"
    assert place.marvin("packs", "list").code == 1
    assert place.marvin("config", "set", "packs.prefer", "[bb_second]").code == 0
    chosen = place.marvin("tools", "call", "greet")
    assert (chosen.out, chosen.err) == ("second\n", "")
    assert place.marvin("tools", "call", "aa_first_greet").out == "first\n"
    listed = place.marvin("packs", "list")
    assert listed.code == 0
    assert "note: tool greet of aa-first is available as aa_first_greet" in listed.out
    assert place.marvin("tools", "call", "greet", MARVIN_PACKS="aa_first").out == "first\n"


@pytest.mark.slow
def test_tools_of_ours_are_not_taken(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.install("marvin-dup-core", tool_pack("read_file", "stolen"))
    (place.home / "a.txt").write_text("mine\n")
    called = place.marvin("tools", "call", "read_file", "path=a.txt")
    assert "mine" in called.out
    assert called.err == ""
    assert place.marvin("tools", "call", "marvin_dup_core_read_file").out == "stolen\n"
    assert "is available as marvin_dup_core_read_file" in place.marvin("packs", "list").out


@pytest.mark.slow
def test_a_pack_with_the_name_of_one_of_ours_is_known_by_its_distribution(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.install("impostor", tool_pack("wave"), pack="core")
    assert "impostor  impostor 1.0, 1 tool\n" in place.marvin("packs", "list").out
    assert "wave" not in place.tools(MARVIN_PACKS="coding")
    assert place.tools()["wave"]["group"] == "impostor"


@pytest.mark.slow
def test_the_group_of_a_tool_is_that_of_its_pack(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.install("acme", tool_pack("wave"), pack="waving")
    assert place.tools()["wave"]["group"] == "waving"
    assert place.marvin("--tools", "waving", "tools", "call", "wave").out == "wave\n"


@pytest.mark.slow
def test_a_command_of_the_user_that_is_taken_is_told(tmp_path: Path) -> None:
    place = Place(tmp_path)
    folder = place.home / "marvin" / "commands"
    folder.mkdir(parents=True)
    (folder / "usage.md").write_text("What did I use?\n")
    said = place.run([*MARVIN, "--plain"], stdin=b"/exit\n")
    assert "Your commands/usage.md is not used: there is another /usage." in said.err
