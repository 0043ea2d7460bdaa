"""Which tools a request carries, and why the others are not offered."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from marvin_core import ToolError, ToolSpec
from marvin_core.api.config import Config, Permissions
from marvin_core.api.errors import UsageError
from marvin_core.api.timeouts import Timeouts
from marvin_core.api.tools import Gate, ToolSet
from marvin_core.config.secrets import Secrets
from marvin_core.guard.processes.runner import ProcessRunner
from marvin_core.tools.sets import SETS, select
from marvin_core.tools.toolbox import Toolbox, find_tool
from tests.support import engine_tools
from tests.support.engine import SPECS, run, settled, until
from tests.support.engine import spec as declaration
from tests.support.folders import Folders


def spec(name: str, *, sets: Collection[ToolSet] = (), passes: Collection[Gate] = (), **declared: Any) -> ToolSpec:
    """A tool of anybody's that joins these sets."""
    return declaration(name, **declared).replace(sets=tuple(sets), passes=tuple(passes))


CODE: tuple[ToolSet, ...] = ("coding",)
BOTH: tuple[ToolSet, ...] = ("coding", "surf")
FILES: dict[str, Any] = {"group": "files", "sets": CODE, "access": ["write"]}
EVERYTHING = (
    spec("read_file", group="files", sets=CODE),
    spec("create_file", **FILES, passes=["writable-files"]),
    spec("change_file", **FILES, passes=["writable-files"]),
    spec("remove_file", **FILES),
    spec("git_log", group="git", sets=BOTH),
    spec("git_commit", group="git", sets=BOTH, access=["write", "exec"]),
    spec("run_command", group="shell", sets=CODE, access=["write", "exec"]),
    spec("tickets", group="tickets", sets=BOTH, access=["write"], passes=["readonly", "ticket"]),
    spec("set_root", group="session", access=["state"]).replace(interactive=True),
    spec("leave_chat", group="session", access=["state"]).replace(interactive=True),
    spec("issues", group="hub", sets=["lockin"], access=["net"]),
    spec("forecast", group="web", access=["net"]),
    spec("web_search", group="web", sets=BOTH, access=["net"]),
    spec("post", group="web", access=["net", "write"]),
    spec("delete_note", group="notes", sets=["surf", "lockin"], access=["write"]),
    spec("download", group="downloads", sets=["lockin"], access=["net", "write", "exec"]),
    spec("get_usage", group="session", sets=BOTH),
)
ONLY_CHAT = {"set_root", "leave_chat"}
NAMES = [tool.name for tool in EVERYTHING]


def box(
    tmp_path: Path,
    *argv: str,
    specs: Sequence[ToolSpec] = EVERYTHING,
    programs: Collection[str] = (),
    secrets: Collection[str] = (),
    **settings: Any,
) -> Toolbox:
    config: Config = settled(tmp_path, *argv, **settings)[0]
    return Toolbox(specs, config, machine_with(tmp_path, programs), Secrets(dict.fromkeys(secrets, "x"), tmp_path))


def machine_with(tmp_path: Path, programs: Collection[str]) -> ProcessRunner:
    """What runs programs where these are the only ones."""
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    for program in programs:
        (folder / program).write_text("#!/bin/sh\n")
        (folder / program).chmod(0o755)
    return ProcessRunner(Folders(root=tmp_path, base=tmp_path), {"PATH": str(folder)}, Timeouts())


def names(found: Toolbox) -> list[str]:
    return [tool.name for tool in found.offered]


# --- choosing ------------------------------------------------------------------------------------------------------

CODING = set(
    "read_file create_file change_file remove_file git_log git_commit run_command tickets web_search get_usage".split()
)
CHOSEN: dict[str, set[str]] = {
    "all": set(NAMES),
    "": set(NAMES),
    ",": set(NAMES),
    "coding": CODING,
    "readonly": {"read_file", "git_log", "tickets", "web_search", "get_usage"},
    "surf": set("git_log git_commit tickets web_search get_usage delete_note forecast".split()) | ONLY_CHAT,
    "lockin": CODING | {"issues", "delete_note", "download"},
    "git": {"git_log", "git_commit"},
    "tickets": {"tickets"},
    "git, tickets ,hub": {"git_log", "git_commit", "tickets", "issues"},
    "coding,forecast,-run_command": (CODING | {"forecast"}) - {"run_command"},
    "-files,-tickets": set(NAMES) - {tool.name for tool in EVERYTHING if tool.group == "files"} - {"tickets"},
    "all,-coding": set(NAMES) - CODING,
    "-git,git_log": {"git_log"},
}


@pytest.mark.parametrize("selection", CHOSEN)
def test_sets_groups_and_names_are_chosen_and_taken_away(selection: str) -> None:
    assert select(EVERYTHING, selection) == CHOSEN[selection]


def test_every_set_of_the_design_exists() -> None:
    assert set(SETS) == {"all", "coding", "readonly", "surf", "lockin"}


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("codnig", "Did you mean 'coding'"),
        ("log_git", "Did you mean 'git_log'"),
        ("gti_log", "git_log"),
        ("-run_comand", "run_command"),
        ("zzz", "`marvin tools list`"),
    ],
)
def test_an_unknown_word_is_a_usage_error_with_the_nearest_names(tmp_path: Path, word: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint) as caught:
        box(tmp_path, f"--tools=git,{word}")
    assert caught.value.exit_code == 2
    assert repr(word.removeprefix("-")) in str(caught.value)


def test_tools_are_offered_in_one_stable_order_whatever_the_selection(tmp_path: Path) -> None:
    assert names(box(tmp_path, "--tools", "tickets,git,read_file")) == ["read_file", "git_log", "git_commit", "tickets"]
    assert names(box(tmp_path)) == NAMES


@pytest.mark.parametrize(("depth", "chosen"), [("0", set(NAMES)), ("1", CODING), ("5", CODING)])
def test_a_sub_agent_gets_the_coding_tools_by_default(tmp_path: Path, depth: str, chosen: set[str]) -> None:
    assert set(names(box(tmp_path, env={"MARVIN_DEPTH": depth}))) == chosen
    named = names(box(tmp_path, "--tools", "forecast", env={"MARVIN_DEPTH": depth}))
    assert named == ["forecast"]


def test_tools_that_need_a_chat_are_offered_in_a_chat_only(tmp_path: Path) -> None:
    assert set(names(box(tmp_path))) >= ONLY_CHAT
    for variable in ("MARVIN_DEPTH", "MARVIN_READONLY"):
        assert not ONLY_CHAT & set(names(box(tmp_path, "--tools", "all", env={variable: "1"})))
    found = box(tmp_path, "--non-interactive")
    assert not ONLY_CHAT & set(names(found))
    assert found.missing["leave_chat"] == "only in a chat"


# --- taking away ---------------------------------------------------------------------------------------------------


def test_a_read_only_agent_has_no_tool_that_writes_or_runs(tmp_path: Path) -> None:
    found = box(tmp_path, "--tools", "all", env={"MARVIN_READONLY": "1"})
    assert [tool.name for tool in found.offered if tool.changes] == ["tickets"]
    assert {"read_file", "web_search", "git_log"} <= set(names(found))
    assert "MARVIN_READONLY" in found.missing["run_command"]


def test_an_agent_with_writable_files_keeps_what_reads_and_what_writes_through_the_sandbox_only(tmp_path: Path) -> None:
    found = box(tmp_path, "--tools", "all", env={"MARVIN_WRITABLE_FILES": "a.py"})
    assert {tool.name for tool in found.offered if tool.changes} == {"create_file", "change_file"}
    assert {"read_file", "web_search"} <= set(names(found))
    assert "MARVIN_WRITABLE_FILES" in found.missing["tickets"]


@pytest.mark.parametrize("rule", ["run_command", "run_*", "run_command(*)", " run_command "])
def test_a_tool_that_a_rule_denies_whatever_its_arguments_is_not_offered(tmp_path: Path, rule: str) -> None:
    found = box(tmp_path, permissions=Permissions(deny=(rule,)))
    assert found.missing == {"run_command": "denied by config.yaml"}


def test_a_tool_that_a_rule_denies_for_some_arguments_is_offered(tmp_path: Path) -> None:
    found = box(tmp_path, permissions=Permissions(deny=("run_command(git push*)",)))
    assert "run_command" in names(found)


@pytest.mark.parametrize(
    ("needs", "reason"),
    [
        (["program:git"], None),
        (["program:gh"], "needs the program gh"),
        (["env:A_KEY"], None),
        (["env:B_KEY"], "needs the variable B_KEY"),
        (["extra:json"], None),
        (["extra:no_such_package"], "needs the Python package no_such_package"),
        (["extra:no_such_package.part"], "needs the Python package no_such_package.part"),
        (["program:git", "env:A_KEY", "env:B_KEY"], "needs the variable B_KEY"),
    ],
)
def test_what_a_tool_requires_must_be_there(tmp_path: Path, needs: list[str], reason: str | None) -> None:
    found = box(tmp_path, specs=[spec("look", requires=needs)], programs=["git"], secrets=["A_KEY"])
    assert found.missing == ({"look": reason} if reason else {})


def test_what_the_groups_of_the_offered_tools_say_is_told_once_and_in_their_order(tmp_path: Path) -> None:
    said = [
        spec("b", group="one").replace(guidance="First."),
        spec("c", group="two").replace(guidance="Second."),
        spec("a", group="one").replace(guidance="First."),
        spec("quiet", group="three"),
    ]
    assert box(tmp_path, specs=said).guidance() == ("First.", "Second.")
    assert box(tmp_path, "--tools=-one", specs=said).guidance() == ("Second.",)


# --- asking for a tool ---------------------------------------------------------------------------------------------


def test_a_tool_that_is_not_offered_is_refused_with_the_reason(tmp_path: Path) -> None:
    """I10: the model learns why, and to go another way."""
    found = box(tmp_path, "--tools", "files", specs=[*EVERYTHING, spec("look", requires=["program:gh"])])
    with pytest.raises(ToolError, match=r"run_command is not available here: not in the chosen tools \(files\)\. Do"):
        found.spec("run_command")
    with pytest.raises(ToolError, match="look is not available here: needs the program gh"):
        found.spec("look")


@pytest.mark.parametrize(
    ("name", "near"), [("readfile", "read_file"), ("git_lgo", "git_log"), ("search_web", "web_search")]
)
def test_an_unknown_tool_names_the_nearest_ones(tmp_path: Path, name: str, near: str) -> None:
    """I10: one guess leads to the right name."""
    with pytest.raises(ToolError, match=rf"There is no tool '{name}'\. Did you mean '{near}'"):
        box(tmp_path).spec(name)


def test_where_no_name_is_near_some_of_them_are_listed(tmp_path: Path) -> None:
    """I10."""
    with pytest.raises(ToolError, match=r"There is no tool 'zzzzzz'\. Available: read_file, "):
        box(tmp_path).spec("zzzzzz")


# --- loading -------------------------------------------------------------------------------------------------------


def test_a_tool_is_imported_when_it_is_first_called(tmp_path: Path) -> None:
    package = tmp_path / "lib" / "late_tools_pack"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "from marvin_core import tool\n@tool(access=['read'])\n"
        "async def late(a: int) -> str:\n    'Late.'\n    return str(a)\n"
    )
    declared = spec("late").replace(module="late_tools_pack")
    found = box(tmp_path, specs=[declared])
    sys.path.insert(0, str(tmp_path / "lib"))
    try:
        assert "late_tools_pack" not in sys.modules
        loaded = run(found.load("late"))
        assert loaded.validate({"a": 3}) == {"a": 3}
        assert run(found.load("late")) is loaded
    finally:
        sys.path.remove(str(tmp_path / "lib"))
        sys.modules.pop("late_tools_pack", None)


def hold_the_loop_until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not done() and time.monotonic() < deadline:
        time.sleep(0.001)


def test_calls_of_a_tool_that_is_being_loaded_go_on_in_their_order(tmp_path: Path) -> None:
    """One that comes when the module is just there overtakes none that waits for it, as a question would."""
    found, order = box(tmp_path, specs=[SPECS[0]]), list[int]()

    async def load(number: int) -> None:
        await found.load(SPECS[0].name)
        order.append(number)

    async def work() -> None:
        first = asyncio.ensure_future(load(1))
        await asyncio.sleep(0)
        hold_the_loop_until(lambda: SPECS[0].name in found._loaded)
        await asyncio.gather(first, load(2))

    run(work())
    assert order == [1, 2]


def test_preloading_brings_a_tool_in_beside_and_keeps_its_failure_to_itself(tmp_path: Path) -> None:
    found = box(tmp_path, specs=[SPECS[0], spec("gone").replace(module="no.such.module")])
    found.preload("no_such_tool", "marvin_core.engine.calls.dispatch")
    found.preload("gone", "marvin_core.engine.calls.dispatch")
    found.preload(SPECS[0].name, "marvin_core.engine.calls.dispatch")
    run(until(lambda: SPECS[0].name in found._loaded))
    with pytest.raises(ModuleNotFoundError):
        run(found.load("gone"))


def test_a_pack_that_lost_a_tool_says_so(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"The pack tests no longer contains the tool gone\. Reinstall it"):
        find_tool(spec("gone").replace(module=engine_tools.__name__))


def test_only_what_reads_may_run_beside_something_else() -> None:
    beside = {tool.name for tool in EVERYTHING if tool.reads_only}
    assert beside == {tool.name for tool in EVERYTHING if set(tool.access) <= {"read", "net"}}


HANGS = """
import threading
from pathlib import Path

while not Path({go!r}).exists():
    threading.Event().wait(0.01)

from marvin_core import tool

@tool
async def never_loaded() -> str:
    "Hang."
    return "free"
"""


def test_a_module_that_never_finishes_loading_ends_its_calls_and_holds_up_no_other(tmp_path: Path) -> None:
    go, module = tmp_path / "go", tmp_path / "stuck.py"
    module.write_text(HANGS.format(go=str(go)))
    stuck = declaration("never_loaded").replace(module=str(module))

    async def work() -> None:
        patient = box(tmp_path, specs=(stuck, *SPECS), timeouts=Timeouts(pack=50))
        await patient.load(SPECS[0].name)
        hurried = box(tmp_path, specs=(stuck, *SPECS), timeouts=Timeouts(pack=2))
        for _ in range(20):  # only the first one waits
            with pytest.raises(ToolError, match=r"stuck\.py, was not loaded within 2 s, so nothing was done"):
                await hurried.load("never_loaded")
        assert (await hurried.load(SPECS[0].name)).spec == SPECS[0], "imports do not wait for each other"
        go.touch()
        await until(lambda: not hurried._hangs(str(module)))
        assert (await hurried.load("never_loaded")).tool.name == "never_loaded", "once it is there it is used"

    run(work())
