"""Packs as strangers write them: what they bring, and that a bad one stops nobody else."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.support.installing import Ended, Place, tool_pack

pytestmark = pytest.mark.xdist_group("crowd")  # on one worker, so that the packs below are loaded once

GROUP_PLUGIN = """
from marvin_core import ToolGroup, hookimpl

@hookimpl
def marvin_register_tools():
    return [ToolGroup(name="dice", module="acme_dice_tools", tools=("roll", "reroll"))]
"""
GROUP_TOOLS = """
from typing import Annotated

from marvin_core import Field, tool

@tool(access=["state"], timeout=7)
async def roll(sides: Annotated[int, Field(ge=2), "Faces on each die"] = 6) -> str:
    '''Roll a die.'''
    return f"rolled 1 of {sides}"

@tool
async def reroll() -> str:
    '''Roll again.'''
    return "again"
"""
BELL_TOOLS = """
from marvin_core import tool

@tool
async def ring() -> str:
    '''Ring the bell.'''
    return "ding"
"""
RAISES_AT_IMPORT = "raise RuntimeError('no such luck')\n"
EXITS_AT_IMPORT = "import sys\nsys.exit('not on this machine')\n"
JUNK_AFTER_A_TOOL = """
from marvin_core import hookimpl, tool

@tool
async def left_behind() -> str:
    '''Never offered, since its pack fails.'''
    return ""

@hookimpl
def marvin_register_tools():
    return [left_behind, 42]
"""
NO_LIST = """
from marvin_core import hookimpl

@hookimpl
def marvin_register_providers():
    return 7
"""
TOOLS_FROM_ELSEWHERE = """
from marvin_core import hookimpl

@hookimpl
def marvin_register_tools():
    from acme_bells_tools import ring
    return [ring]
"""
NAMELESS_TOOL = """
from marvin_core import hookimpl, tool

@hookimpl
def marvin_register_tools():
    @tool
    async def hidden() -> str:
        '''Found by no call.'''
        return ""
    return [hidden]
"""
LACKS_A_TOOL = """
from marvin_core import ToolGroup, hookimpl

@hookimpl
def marvin_register_tools():
    return [ToolGroup(name="gone", module="os", tools=("path",))]
"""
WRONG_ARGUMENTS = """
from marvin_core import hookimpl

@hookimpl
def marvin_register_tools(colour):
    return []
"""
NO_TEXT = """
from marvin_core import ProviderSpec, hookimpl

def create(endpoint, client):
    ...

@hookimpl
def marvin_register_providers():
    return [ProviderSpec(name="functional", factory=create, base_url="http://localhost", default_model="m")]
"""
HANGS = """
import threading

def wait_for_ever():
    threading.Event().wait()

wait_for_ever()
"""
HOOKS_THAT_RAISE = {
    "marvin_configure": "config",
    "marvin_register_tools": "",
    "marvin_register_providers": "",
    "marvin_register_hooks": "",
    "marvin_register_uis": "",
    "marvin_register_commands": "",
    "marvin_extend_cli": "app",
}


def raising(hook: str) -> str:
    """A pack that has commands of its own, and a hook that raises."""
    others = (
        "" if hook == "marvin_register_commands" else "@hookimpl\ndef marvin_register_commands():\n    return []\n\n"
    )
    implementation = f"@hookimpl\ndef {hook}({HOOKS_THAT_RAISE[hook]}):\n    raise KeyError('lost in {hook}')\n"
    return f"from marvin_core import hookimpl\n\n{others}{implementation}"


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Good packs and bad ones, side by side."""
    place = Place(tmp_path_factory.mktemp("crowd"))
    place.install("acme-dice", GROUP_PLUGIN, pack="dice", modules={"acme_dice_tools": GROUP_TOOLS})
    place.install("acme-bells", TOOLS_FROM_ELSEWHERE, modules={"acme_bells_tools": BELL_TOOLS})
    place.install("bad-nameless", NAMELESS_TOOL)
    place.install("bad-import", RAISES_AT_IMPORT)
    place.install("bad-exit", EXITS_AT_IMPORT)
    place.install("bad-syntax", "def broken(:\n")
    for hook in HOOKS_THAT_RAISE.keys() - {"marvin_register_hooks"}:  # that one would hold all calls
        place.install(f"bad-{hook.replace('_', '-')}", raising(hook))
    place.install("bad-junk", JUNK_AFTER_A_TOOL)
    place.install("bad-answer", NO_LIST)
    place.install("bad-lack", LACKS_A_TOOL)
    place.install("bad-arguments", WRONG_ARGUMENTS)
    place.install("bad-text", NO_TEXT)
    place.install("bad-hangs", HANGS)
    place.install("bad-prints", "print('hello from the pack')\n" + dedent(tool_pack("printing")))
    config = place.home / "marvin" / "config.yaml"
    config.parent.mkdir()
    config.write_text("timeouts:\n  pack: 3\n")
    place.install("bad-missing", "import a_module_that_nobody_has\n")
    place.install("zz-thief", tool_pack("roll", "stolen"))
    place.install("zz-good", tool_pack("wave"))
    return place


@pytest.fixture(scope="module")
def packs(crowd: Place) -> Ended:
    """What `marvin packs list` says about them."""
    return crowd.marvin("packs", "list")


def block(ended: Ended, pack: str) -> str:
    """What is said about one pack: its line and the indented ones below it."""
    lines = ended.out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"{pack}  "))
    rest = [number for number, line in enumerate(lines) if number > start and not line.startswith(" ")]
    return "\n".join(lines[start : rest[0] if rest else len(lines)])


@pytest.mark.parametrize(
    ("pack", "reason"),
    [
        ("bad_import", "RuntimeError: no such luck"),
        ("bad_exit", "SystemExit: not on this machine"),
        ("bad_syntax", "SyntaxError: "),
        *(
            (f"bad_{hook}", f"KeyError: 'lost in {hook}'")
            for hook in HOOKS_THAT_RAISE
            if hook != "marvin_register_hooks"
        ),
        ("bad_junk", "PluginError: registered 42 where a ToolGroup was expected"),
        ("bad_answer", "PluginError: a hook returned 7; it must return a list of ProviderSpecs"),
        ("bad_lack", "PluginError: os has no tool path"),
        ("bad_nameless", "PluginError: the tool hidden is not a global of"),
        ("bad_arguments", "PluginValidationError: "),
        ("bad_text", "PluginError: ProviderSpec 'functional', factory: Input should be a valid string"),
        ("bad_missing", "ModuleNotFoundError: No module named 'a_module_that_nobody_has'"),
    ],
)
def test_a_bad_pack_is_listed_with_its_reason_and_traceback(packs: Ended, pack: str, reason: str) -> None:
    said = block(packs, pack)
    assert f"problem: {reason}" in said
    assert "Traceback (most recent call last):" in said
    assert said.partition("\n")[0] == f"{pack}  {pack.replace('_', '-')} 1.0, left out"


def test_a_pack_that_hangs_is_listed_with_where_it_hung(packs: Ended) -> None:
    said = block(packs, "bad_hangs")
    assert "problem: Hung: did not finish loading within 3 s" in said
    assert "in wait_for_ever" in said


def test_a_pack_that_prints_is_listed_with_what_it_printed(packs: Ended) -> None:
    said = block(packs, "bad_prints")
    assert "problem: Printed: printed to standard output while it was loaded: 'hello from the pack" in said
    assert packs.out.startswith("core  ")


def test_a_problem_makes_the_listing_exit_with_1(packs: Ended) -> None:
    assert packs.code == 1


@pytest.mark.slow
def test_good_packs_work_beside_bad_ones(crowd: Place, packs: Ended) -> None:
    assert block(packs, "zz_good") == "zz_good  zz-good 1.0, 1 tool"
    assert crowd.marvin("tools", "call", "wave").out == "wave\n"
    assert crowd.marvin("tools", "call", "roll", "sides=20").out == "rolled 1 of 20\n"


@pytest.mark.slow
def test_tools_that_a_hook_imports_can_be_called(crowd: Place) -> None:
    assert crowd.marvin("tools", "call", "ring").out == "ding\n"


@pytest.mark.slow
def test_a_lazy_group_brings_schemas_and_declarations(crowd: Place) -> None:
    roll = crowd.tools()["roll"]
    assert (roll["group"], roll["distribution"], roll["access"]) == ("dice", "acme-dice", ["state"])
    sides = roll["parameters"]["properties"]["sides"]
    assert sides == {"type": "integer", "description": "Faces on each die", "minimum": 2, "default": 6}
    assert crowd.tools()["reroll"]["access"] == ["exec", "write"], "undeclared access counts as the strongest"


def test_of_two_tools_with_one_name_the_second_gets_another_and_both_are_named(crowd: Place, packs: Ended) -> None:
    said = "tool roll of zz-thief is available as zz_thief_roll: acme-dice already provides one with that name."
    assert said in block(packs, "zz_thief")
    assert crowd.marvin("tools", "call", "zz_thief_roll").out == "stolen\n"


def test_a_pack_that_fails_halfway_leaves_no_tool_behind(crowd: Place) -> None:
    assert "left_behind" not in crowd.tools()


def test_built_ins_come_first_then_packs_by_distribution(packs: Ended) -> None:
    listed = [line.split()[1] for line in packs.out.splitlines() if line[:1].strip()]
    assert listed[0] == "marvin-core"
    assert listed[1:] == sorted(listed[1:])


@pytest.mark.slow
def test_the_order_does_not_depend_on_the_order_of_the_folders(tmp_path: Path) -> None:
    """The same packs, installed in opposite orders into two folders whose order is then swapped."""
    orders = []
    for number in (0, 1):
        place = Place(tmp_path / str(number))
        other = Place(tmp_path / f"{number}-other")
        homes = [place, other] if number else [other, place]
        homes[0].install("aa-first", tool_pack("greet", "first"))
        homes[1].install("bb-second", tool_pack("greet", "second"))
        path = f"{place.packages}:{other.packages}"
        found = place.marvin("packs", "list", PYTHONPATH=path)
        orders.append(found.out)
        assert place.marvin("tools", "call", "greet", PYTHONPATH=path).out == "first\n"
    assert orders[0] == orders[1]


@pytest.mark.slow
def test_installations_left_halfway_do_not_stop_marvin(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.install("good-one", tool_pack("wave"))
    no_metadata = place.packages / "half-1.0.dist-info"
    no_metadata.mkdir()
    (no_metadata / "entry_points.txt").write_text("[marvin]\nhalf = half\n")
    (place.packages / "empty-1.0.dist-info").mkdir()
    place.install("not-text", "", entry_points="[marvin]\nbroken = : : 5\n")
    listed = place.marvin("packs", "list").out
    assert "good_one  good-one 1.0, 1 tool\n" in listed
    for name in ("half", "not-text"):
        assert f"{name}  {name}, left out; it may contain a hook that guards calls, so calls are blocked\n" in listed
    assert "None" not in listed
    assert place.marvin("config", "set", "packs.off", "[half, not-text]").code == 0
    assert place.marvin("tools", "call", "wave").out == "wave\n"
