"""How much each mode asks, and what a person allows for a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from marvin_core import PermissionMode, ToolSpec
from marvin_core.api.errors import UsageError
from marvin_core.api.hooks import Ask, Deny
from marvin_core.api.tools import Access
from marvin_core.guard.permissions.modes import MEANINGS, MODES, StandingPermissions, verdict_by_hand, verdict_of_mode
from marvin_core.guard.permissions.verdicts import Allow
from tests.support.engine import settled, spec

READER = spec("read_file", access=["read"])
FETCHER = spec("read_page", access=["net"])
STATE = spec("compact_history", access=["state"])
SEARCH = spec("paid_search", access=["net"], confirm=True)
WRITER = spec("write_file", access=["write"]).replace(passes=("writable-files",))
CAREFUL = WRITER.replace(name="careful", confirm=True)
NOTES = spec("write_note", access=["write"])
SENDER = spec("send_mail", access=["write", "net"], confirm=True)
TICKETS = spec("tickets", access=["write"]).replace(passes=("ticket",), parameters={"required": ["args"]})
SHELL = spec("run_command", access=["write", "exec"], confirm=True)
GIT = spec("git_commit", access=["write", "exec"])
UNKNOWN = spec("undeclared", access=["write", "exec"])

# What `ask`, `edit`, `auto` without and with a sandbox, and `readonly` say of each tool. p: passes, a: asks, d: denies.
TABLE = [
    (READER, "ppppp"),
    (FETCHER, "ppppp"),
    (STATE, "ppppp"),
    (SEARCH, "aaaaa"),
    (WRITER, "apppd"),
    (CAREFUL, "aaaad"),
    (TICKETS, "apppd"),
    (NOTES, "aaaad"),
    (SENDER, "aaaad"),
    (SHELL, "aaapd"),
    (GIT, "aaapd"),
    (UNKNOWN, "aaapd"),
]


def said(verdict: Ask | Deny | None) -> str:
    return "p" if verdict is None else "a" if isinstance(verdict, Ask) else "d"


@pytest.mark.parametrize(("tool", "wanted"), TABLE, ids=[tool.name for tool, _ in TABLE])
def test_the_table(tool: ToolSpec, wanted: str) -> None:
    cases: list[tuple[PermissionMode, bool]]
    cases = [("ask", True), ("edit", True), ("auto", False), ("auto", True), ("readonly", True)]
    found = [verdict_of_mode(mode, tool, holds=holds, in_home=False) for mode, holds in cases]
    assert "".join(map(said, found)) == wanted


def test_every_mode_has_a_meaning() -> None:
    assert tuple(MEANINGS) == MODES


@pytest.mark.parametrize("access", [["write"], ["exec"], ["write", "exec", "net"]])
def test_in_the_home_folder_itself_whatever_changes_something_asks(access: list[Access]) -> None:
    tool = spec("tool", access=access).replace(passes=("writable-files",) if access == ["write"] else ())
    for mode in MODES[:3]:
        verdict = verdict_of_mode(mode, tool, holds=True, in_home=True)
        assert isinstance(verdict, Ask)
        assert "--working-dir" in verdict.reason
    assert isinstance(verdict_of_mode("readonly", tool, holds=True, in_home=True), Deny)
    assert verdict_of_mode("auto", READER, holds=True, in_home=True) is None


def test_readonly_says_how_to_leave_it() -> None:
    verdict = verdict_of_mode("readonly", SHELL, holds=True, in_home=False)
    assert isinstance(verdict, Deny)
    assert "/permissions" in verdict.reason


def test_what_a_person_calls_is_asked_about_where_the_tool_wants_it_or_in_the_home_folder() -> None:
    assert verdict_by_hand(WRITER, in_home=False) is None
    assert verdict_by_hand(READER, in_home=True) is None
    assert isinstance(verdict_by_hand(WRITER, in_home=True), Ask)
    assert isinstance(verdict_by_hand(SENDER, in_home=False), Ask)


# --- of a session --------------------------------------------------------------------------------------------------


def standing(tmp_path: Path, *argv: str, attended: bool = True, yaml: str = "") -> StandingPermissions:
    return StandingPermissions(settled(tmp_path, *argv, yaml=yaml)[0], attended=attended)


def test_a_chat_begins_with_ask_until_a_sandbox_is_known_to_hold(tmp_path: Path) -> None:
    found = standing(tmp_path)
    assert (found.mode, found.is_open) == ("ask", True)
    seen: list[str] = []
    for holds in (False, True):
        found.settle(holds=holds)
        seen.append(found.mode)
    assert seen == ["ask", "auto"]


def test_what_was_chosen_stays_whatever_the_sandbox_does(tmp_path: Path) -> None:
    found = standing(tmp_path, "--permission-mode", "edit")
    found.settle(holds=True)
    assert (found.mode, found.is_open) == ("edit", False)
    switched = standing(tmp_path)
    switched.switch("ask")
    switched.settle(holds=True)
    assert switched.mode == "ask"


def test_where_nobody_is_there_the_mode_is_auto(tmp_path: Path) -> None:
    assert standing(tmp_path, attended=False).mode == "auto"
    assert standing(tmp_path, "--permission-mode", "readonly", attended=False).mode == "readonly"


def test_modes_go_round(tmp_path: Path) -> None:
    found = standing(tmp_path)
    assert [found.cycle() for _ in MODES] == ["edit", "auto", "readonly", "ask"]
    with pytest.raises(UsageError, match="Did you mean 'readonly'"):
        found.switch("read-only")
    assert found.mode == "ask"


def test_a_rule_of_the_session_allows_but_never_against_deny_and_ask(tmp_path: Path) -> None:
    yaml = "permissions: {deny: ['write_file(secret*)'], ask: ['write_file(asked*)']}\n"
    found = standing(tmp_path, yaml=yaml)
    found.allow("write_file")
    verdicts = [found.policy.judge(WRITER, {"path": path}, tmp_path).verdict for path in ("a", "secret", "asked")]
    assert [type(verdict).__name__ for verdict in verdicts] == ["Allow", "Deny", "Ask"]


def test_readonly_takes_no_notice_of_what_was_allowed_in_another_mode(tmp_path: Path) -> None:
    found = standing(tmp_path)
    found.allow("write_file")
    found.allow_call("mark", "{}")
    assert found.remembered == ["write_file", "mark: exactly {}"]
    found.switch("readonly")
    assert found.policy.judge(WRITER, {"path": "a"}, tmp_path).verdict is None
    assert not found.allows_call("mark", "{}")
    found.switch("edit")
    assert isinstance(found.policy.judge(WRITER, {"path": "a"}, tmp_path).verdict, Allow)
    assert found.allows_call("mark", "{}")
