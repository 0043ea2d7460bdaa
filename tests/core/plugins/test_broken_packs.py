"""Packs broken in every way: each is left out alone and named, ends nothing, and where it is a guard, no call runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from marvin_core.testing import ModelServer, calls, text
from tests.support.broken_packs import AT_IMPORT, HANGING, OF_GUARDS, QUICK, UNREADABLE, install_broken
from tests.support.installing import MARVIN, Ended, Place, tool_pack

pytestmark = pytest.mark.xdist_group("broken")  # on one worker, so that the packs are loaded once

SOON = "timeouts: {pack: 3, pack_grace: 0.5}\n"
HELD = "left out; it may contain a hook that guards calls, so calls are blocked"


def place_with(folder: Path, names: list[str], *, guard: bool, yaml: str = "") -> Place:
    """A place with a good pack, and with one for each of these faults."""
    place = Place(folder)
    place.install("zz-good", tool_pack("good_tool"))
    for name in names:
        install_broken(name, place.packages, guard=guard)
    config = place.home / "marvin" / "config.yaml"
    config.parent.mkdir()
    config.write_text(yaml)
    return place


@pytest.fixture(scope="module")
def guards(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Guards with every fault."""
    return place_with(tmp_path_factory.mktemp("guards"), [*QUICK, *OF_GUARDS], guard=True)


@pytest.fixture(scope="module")
def guards_listed(guards: Place) -> Ended:
    return guards.marvin("packs", "list")


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Packs that are no guards, with every fault that leaves their source to be read."""
    return place_with(tmp_path_factory.mktemp("others"), sorted({*QUICK} - UNREADABLE), guard=False)


@pytest.fixture(scope="module")
def others_listed(others: Place) -> Ended:
    return others.marvin("packs", "list")


def block(ended: Ended, name: str) -> str:
    """What is said about one pack: its line and the indented ones below it."""
    lines = ended.out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"broken_{name.replace('-', '_')}  "))
    rest = [number for number, line in enumerate(lines) if number > start and not line.startswith(" ")]
    return "\n".join(lines[start : rest[0] if rest else len(lines)])


def ask(place: Place, server: ModelServer, **env: str) -> Ended:
    return place.marvin(
        "--non-interactive", "--prompt", "x", OPENAI_COMPAT_URL=server.url, OPENAI_COMPAT_MODEL="scripted", **env
    )


def test_there_are_at_least_45_kinds() -> None:
    assert len({*QUICK, *OF_GUARDS, *HANGING}) >= 45


@pytest.mark.parametrize("name", [*QUICK, *OF_GUARDS])
def test_a_guard_with_this_fault_holds_all_calls_and_is_named(guards_listed: Ended, name: str) -> None:
    said = block(guards_listed, name)
    assert said.partition("\n")[0].endswith(HELD)
    assert {**QUICK, **OF_GUARDS}[name][1] in said
    assert said.count("problem: ") == 1


@pytest.mark.slow
def test_no_call_passes_beside_broken_guards(guards: Place, guards_listed: Ended) -> None:
    assert guards_listed.code == 1
    called = guards.marvin("tools", "call", "good_tool")
    assert called.code == 1
    assert "good_tool was not run: the packs broken_abort" in called.out
    with ModelServer(calls(("good_tool", {})), text("Done.")) as server:
        asked = ask(guards, server)
        (answer,) = [one["content"] for one in server.requests[-1].body["messages"] if one["role"] == "tool"]
    assert (asked.code, asked.out) == (0, "  🔧 good_tool\nDone.\n")
    assert "good_tool was not run" in answer
    for name in (*QUICK, *OF_GUARDS):
        assert asked.err.count(f"marvin: pack broken_{name.replace('-', '_')} of broken-{name} was left out: ") == 1


@pytest.mark.slow
def test_a_chat_asks_about_each_call_beside_a_broken_guard(tmp_path: Path) -> None:
    place = place_with(tmp_path, ["missing-import"], guard=True)
    said = place.run([*MARVIN, "--plain"], stdin=b"/good_tool\nno\n/good_tool\nyes\n/exit\n")
    assert "you are asked about every call of a tool until it is repaired" in said.err
    assert (
        said.out.count("the pack broken_missing_import, which may contain hooks that guard calls, could not be loaded")
        >= 2
    )
    assert said.out.count("the user said no") == 1
    assert said.code == 0


@pytest.mark.parametrize("name", sorted({*QUICK} - UNREADABLE))
def test_a_pack_with_this_fault_is_left_out_alone_and_named(others_listed: Ended, name: str) -> None:
    said = block(others_listed, name)
    assert said.partition("\n")[0].endswith(", left out")
    assert QUICK[name][1] in said


@pytest.mark.slow
def test_nothing_ends_beside_broken_packs(others: Place, others_listed: Ended) -> None:
    """Listing, a call, a run, a chat, the doctor, the configuration, the version."""
    assert "zz_good  zz-good 1.0, 1 tool\n" in others_listed.out
    called = others.marvin("tools", "call", "good_tool")
    assert (called.code, called.out) == (0, "good_tool\n")
    with ModelServer(calls(("good_tool", {})), text("Done.")) as server:
        asked = ask(others, server)
    assert (asked.code, asked.out) == (0, "  🔧 good_tool\nDone.\n")
    chatted = others.run([*MARVIN, "--plain"], stdin=b"/good_tool\n/exit\n")
    assert chatted.code == 0
    assert "good_tool\n" in chatted.out
    told = others.marvin("doctor").out
    for name in sorted({*QUICK} - UNREADABLE):
        line = f"pack broken_{name.replace('-', '_')} of broken-{name} was left out: "
        if name in AT_IMPORT:  # commands are registered in chats only
            assert called.err.count(line) == asked.err.count(line) == 1, name
        assert chatted.err.count(line) == 1, name
        assert f"broken_{name.replace('-', '_')}  broken-{name} 1.0, left out" in told
    assert "zz_good  zz-good 1.0, 1 tool" in told
    assert others.marvin("config", "show").code == 0
    assert others.marvin("--version").code == 0


@pytest.mark.slow
@pytest.mark.parametrize("guard", [True, False])
def test_packs_that_never_come_to_an_end_are_left_out(tmp_path: Path, guard: bool) -> None:
    place = place_with(tmp_path, [*HANGING], guard=guard, yaml=SOON)
    listed = place.marvin("packs", "list")
    for name, (_, reason) in HANGING.items():
        said = block(listed, name)
        assert said.partition("\n")[0].endswith(HELD if guard else ", left out")
        assert reason in said
    assert "zz_good  zz-good 1.0, 1 tool\n" in listed.out
    called = place.marvin("tools", "call", "good_tool")
    assert called.code == (1 if guard else 0)
    assert ("good_tool was not run" in called.out) is guard


FAULTS_OF_DECISIONS = {
    "raises": "raise RuntimeError('torn')",
    "exits": "raise SystemExit(1)",
    "cancels": "import asyncio; raise asyncio.CancelledError",
    "nonsense": "return 'fine'",
    "waits": "import asyncio; await asyncio.Event().wait()",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS_OF_DECISIONS)
def test_a_guard_that_cannot_decide_denies(tmp_path: Path, name: str) -> None:
    place = place_with(tmp_path, [], guard=True, yaml="timeouts: {hook_decision: 1}\n")
    place.install(
        "bad-judge",
        f"""
        from marvin_core import Hook, hookimpl

        class Judge(Hook):
            async def before_tool(self, context, spec, arguments):
                {FAULTS_OF_DECISIONS[name]}

        @hookimpl
        def marvin_register_hooks():
            return [Judge()]
        """,
    )
    called = place.marvin("tools", "call", "good_tool", MARVIN_PACKS="bad_judge,zz_good")
    assert called.code == 1
    assert "good_tool was not run: the hook Judge " in called.out


@pytest.mark.slow
@pytest.mark.parametrize(
    "first",
    [
        "import sys; sys.stdout.close()",
        "import sys, io; sys.stdout = io.StringIO()",
        "import os; os.chdir('/')",
        "import os; os.close(0)",
        "import os; os.closerange(3, 100)",
    ],
)
def test_a_guard_that_meddles_with_its_process_still_guards(tmp_path: Path, first: str) -> None:
    place = place_with(tmp_path, [], guard=True, yaml=SOON)  # one of them is never heard of again
    place.install(
        "meddles",
        f"""
        {first}
        from marvin_core import Deny, Hook, hookimpl

        class Guard(Hook):
            async def before_tool(self, context, spec, arguments):
                return Deny(reason="the guard says no")

        @hookimpl
        def marvin_register_hooks():
            return [Guard()]
        """,
    )
    called = place.marvin("tools", "call", "good_tool", MARVIN_PACKS="meddles,zz_good")
    assert called.code == 1
    assert "good_tool was not run: " in called.out
