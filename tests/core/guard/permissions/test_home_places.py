"""A working directory that is a home folder, or above one: what of it tools do not change without a yes."""

from __future__ import annotations

from pathlib import Path

import pytest

from marvin_core import ToolContext, tool
from marvin_core.api.config import Permissions
from marvin_core.api.hooks import Ask, Deny
from marvin_core.guard.permissions.policy import Policy
from marvin_core.guard.permissions.verdicts import Allow, Judgement
from marvin_core.tools.schema import describe
from tests.support.engine import settled

UNATTENDED = ("--non-interactive",)


@tool(access=["write"], passes=["writable-files"])
async def save(context: ToolContext, path: str, content: str) -> str:
    """Write a file."""
    return path + content


@tool(access=["read"])
async def look(path: str) -> str:
    """Read a file."""
    return path


SAVE, LOOK = (describe(one, source="tests", module=__name__) for one in (save, look))


def policy(tmp_path: Path, *argv: str, **rules: list[str]) -> Policy:
    permissions = Permissions(**{name: tuple(found) for name, found in rules.items()})
    return Policy(settled(tmp_path, *argv)[0].replace(permissions=permissions))


def judged(tmp_path: Path, path: str, *argv: str, below: str = "home", **rules: list[str]) -> Judgement:
    found = policy(tmp_path, *argv, **rules)
    return found.judge(SAVE, {"path": path, "content": "x"}, (tmp_path / below).resolve())


def looked(tmp_path: Path, path: str, below: str = "home", **rules: list[str]) -> Judgement:
    return policy(tmp_path, **rules).judge(LOOK, {"path": path}, (tmp_path / below).resolve())


@pytest.mark.parametrize(
    "path",
    [
        ".bashrc",
        "./sub/../.BASHRC",
        ".ssh/authorized_keys",
        ".config/autostart/evil.desktop",
        ".config/systemd/user/evil.service",
        ".local/lib/python3.11/site-packages/usercustomize.py",
        ".gitconfig",
        ".config/git/config",
        ".mozilla/firefox/x/user.js",
        "dots/rc",
        "linked/x.desktop",
    ],
)
def test_what_runs_by_itself_and_keys_are_not_changed_where_nobody_is_there(tmp_path: Path, path: str) -> None:
    home = tmp_path / "home"
    (home / "dots").mkdir(parents=True)
    (home / "dots" / "rc").symlink_to("../.bashrc")
    (home / ".config" / "autostart").mkdir(parents=True)
    (home / "linked").symlink_to(".config/autostart")
    verdict = judged(tmp_path, path, *UNATTENDED).verdict
    assert isinstance(verdict, Deny)
    assert "nobody can give it in this run" in verdict.reason
    above = judged(tmp_path, f"home/{path}", *UNATTENDED, below=".").verdict
    assert isinstance(above, Deny), "the folder above the home is not a way round"
    absolute = judged(tmp_path, str(home / path), *UNATTENDED).verdict
    assert isinstance(absolute, Deny)


def test_a_person_is_asked_each_time_and_warned(tmp_path: Path) -> None:
    judgement = judged(tmp_path, ".bashrc", allow=["save", "save(*)"])
    assert isinstance(judgement.verdict, Ask)
    assert "a place for keys or for files that programs run automatically" in judgement.alarm
    assert judgement.remember == ""


def test_other_files_of_a_home_and_files_elsewhere_are_as_before(tmp_path: Path) -> None:
    for path in ("notes.txt", "sub/.bashrc", ".config/app.toml", ".bashrc_notes", "binary"):
        assert judged(tmp_path, path, *UNATTENDED).verdict is None
    assert judged(tmp_path, ".bashrc", *UNATTENDED, below="project").verdict is None


def test_what_lets_it_through(tmp_path: Path) -> None:
    """A rule that names the file, or an answer for all questions."""
    assert isinstance(judged(tmp_path, ".bashrc", *UNATTENDED, allow=["save(.bashrc)"]).verdict, Allow)
    for on_ask in ("allow-all", "save=allow-all"):
        assert isinstance(judged(tmp_path, ".bashrc", *UNATTENDED, "--on-ask", on_ask).verdict, Ask)
    assert isinstance(judged(tmp_path, ".bashrc", *UNATTENDED, "--on-ask", "allow").verdict, Deny)


@pytest.mark.parametrize(
    "path",
    [
        ".mozilla/firefox/x/cookies.sqlite",
        "sub/../.config/google-chrome/Default/Login Data",
        "snap/firefox/common/key4.db",
        ".bash_history",
        ".local/share/fish/fish_history",
        ".config/github-copilot/apps.json",
        ".codex/auth.json",
        "linked/cookies.sqlite",
    ],
)
def test_what_the_sandbox_hides_of_a_home_is_not_read_by_tools_either(tmp_path: Path, path: str) -> None:
    home = tmp_path / "home"
    (home / ".mozilla" / "firefox").mkdir(parents=True)
    (home / "linked").symlink_to(".mozilla/firefox")
    verdict = looked(tmp_path, path).verdict
    assert isinstance(verdict, Deny)
    assert "which tools may not read. To allow it, the user can add" in verdict.reason
    assert isinstance(looked(tmp_path, f"home/{path}", below=".").verdict, Deny)
    advised = verdict.reason.split("`")[1]
    assert isinstance(looked(tmp_path, path, allow=[advised]).verdict, Allow)


def test_other_files_of_a_home_are_read_and_so_are_projects_in_it(tmp_path: Path) -> None:
    for path in ("notes.txt", ".config/app.toml", ".bashrc", "history.txt", "sub/.mozilla/x", "snap/other/x"):
        assert looked(tmp_path, path).verdict is None
    assert looked(tmp_path, ".mozilla/x", below="home/work/project").verdict is None


def test_a_rule_that_asks_does_not_open_what_is_guarded_where_nobody_is_there(tmp_path: Path) -> None:
    """Alone, what a rule asks about runs; a rule for all calls must not make a guarded place one of them."""
    assert isinstance(judged(tmp_path, ".bashrc", *UNATTENDED, ask=["save"]).verdict, Deny)
    both = judged(tmp_path, ".bashrc", ask=["save"])
    assert isinstance(both.verdict, Ask)
    assert "ask: save" in both.verdict.reason
    assert "a place for keys or for files that programs run automatically" in both.alarm
    assert isinstance(judged(tmp_path, "notes.txt", *UNATTENDED, ask=["save"]).verdict, Ask)


def test_a_link_that_is_swapped_between_two_calls_opens_nothing(tmp_path: Path) -> None:
    """One session judges both calls: what it found before the swap must not count after it."""
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / "notes").mkdir()
    link = home / "linked"
    link.symlink_to("notes")
    found = policy(tmp_path, *UNATTENDED)

    def verdicts() -> list[object]:
        root, path = home.resolve(), "linked/id_test"
        return [
            found.judge(SAVE, {"path": path, "content": "x"}, root).verdict,
            found.judge(LOOK, {"path": path}, root).verdict,
        ]

    assert verdicts() == [None, None]
    link.unlink()
    link.symlink_to(".ssh")
    assert [type(verdict) for verdict in verdicts()] == [Deny, Deny]


def test_a_home_that_is_swapped_for_a_link_is_guarded_where_it_leads(tmp_path: Path) -> None:
    other = tmp_path / "work"
    (tmp_path / "home").mkdir()
    other.mkdir()
    found = policy(tmp_path, *UNATTENDED)
    call = {"path": ".bashrc", "content": "x"}
    assert found.judge(SAVE, call, other.resolve()).verdict is None
    (tmp_path / "home").rename(tmp_path / "old")
    (tmp_path / "home").symlink_to("work")
    assert isinstance(found.judge(SAVE, call, other.resolve()).verdict, Deny)
