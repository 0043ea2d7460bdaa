"""Git as Marvin runs it is set in one place, and a repository that names programs gets none of them run."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from marvin_core.testing.environment import start_repository
from marvin_core.util.git_calls import GIT_ALONE, GIT_ASKS_NOBODY, GIT_PROGRAMS, git_command, git_without_programs

ROOT = Path(__file__).parents[2]
HOME = ROOT / "marvin-core" / "src" / "marvin_core" / "util" / "git_calls.py"
SETTLED_HERE = re.compile(
    r"core\.hooksPath|core\.fsmonitor=|gc\.auto=|maintenance\.auto=|commit\.gpgSign=|submodule\.recurse="
    r"|GIT_TERMINAL_PROMPT\"|GIT_NO_LAZY_FETCH|GIT_ALLOW_PROTOCOL\""
)


def test_no_other_module_says_how_git_is_kept_quiet() -> None:
    """In a copy of the table the next setting would be missing."""
    modules = [path for path in ROOT.glob("marvin-*/src/**/*.py") if path != HOME]
    assert len(modules) > 100
    found = [str(path.relative_to(ROOT)) for path in modules if SETTLED_HERE.search(path.read_text("utf-8"))]
    assert found == []


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A repository whose settings and hooks start programs that leave a trace, wherever git lets them."""
    root = tmp_path / "repo"
    root.mkdir()
    start_repository(root)
    trace = f"echo $0 >> {tmp_path}/ran"
    (root / "file.txt").write_text("one\n")
    (root / ".gitattributes").write_text("*.txt filter=evil\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "begin")
    for hook in ("pre-commit", "post-commit", "post-checkout", "post-index-change", "reference-transaction"):
        (root / ".git" / "hooks").mkdir(exist_ok=True)
        path = root / ".git" / "hooks" / hook
        path.write_text(f"#!/bin/sh\n{trace}\n")
        path.chmod(0o755)
    monitor = tmp_path / "monitor"
    monitor.write_text(f"#!/bin/sh\n{trace}\n")
    monitor.chmod(0o755)
    settings = {
        "core.fsmonitor": monitor,
        "gpg.program": monitor,
        "commit.gpgSign": "true",
        "log.showSignature": "true",
        "filter.evil.clean": f"sh -c '{trace}; cat'",
        "filter.evil.required": "true",
        "hook.own.name.event": "post-index-change",
        "hook.own.name.command": f"sh -c '{trace}'",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::{monitor}",
        "core.repositoryFormatVersion": "1",
        "protocol.ext.allow": "always",
    }
    for name, value in settings.items():
        git(root, "config", name, str(value))
    (root / "file.txt").write_text("two\n")
    os.utime(root / "file.txt", (1, 1))
    return root


def git(root: Path, *arguments: str, command: Sequence[str] = ("git",), env: Mapping[str, str] | None = None) -> bytes:
    variables = {"PATH": os.environ["PATH"], "HOME": str(root.parent), **(GIT_ALONE if env is None else env)}
    return subprocess.run([*command, *arguments], cwd=root, env=variables, capture_output=True, timeout=60).stdout


CALLS = {
    "status": ["status", "--porcelain"],
    "diff": ["diff"],
    "log": ["log", "-1"],
    "commit": ["commit", "--allow-empty", "-qm", "more"],
    "update-ref": ["update-ref", "refs/marvin/x", "HEAD"],
    "a commit that is missing": ["cat-file", "-p", "1" * 40],
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_alone_runs_nothing_that_the_repository_names(hostile: Path, call: str) -> None:
    listed = git(hostile, *GIT_PROGRAMS, command=git_command())
    git(hostile, *CALLS[call], command=git_command(), env={**GIT_ALONE, **git_without_programs(listed)})
    assert not (hostile.parent / "ran").exists()


@pytest.mark.parametrize("call", sorted({*CALLS} - {"log"}))  # of a commit that nobody signed git asks no program
def test_the_repository_is_hostile_indeed(hostile: Path, call: str) -> None:
    git(hostile, *CALLS[call], env=GIT_ASKS_NOBODY)
    assert (hostile.parent / "ran").exists()


def test_a_call_that_was_asked_for_runs_the_hooks_of_the_user(hostile: Path) -> None:
    git(hostile, *CALLS["commit"], command=git_command("commit.gpgSign=false", alone=False), env=GIT_ASKS_NOBODY)
    assert "pre-commit" in (hostile.parent / "ran").read_text()


def test_hooks_and_filters_of_settings_are_switched_off_by_their_own_names(hostile: Path) -> None:
    """Newer gits run hooks of settings wherever core.hooksPath leads to; names may have dots and signs in them."""
    git(hostile, "config", "hook.a = b\tc.event", "pre-commit")
    git(hostile, "config", "--global", "hook.mine.command", "true")
    git(hostile, "config", "--global", "filter.lfs.clean", "git-lfs clean -- %f")
    off = git_without_programs(git(hostile, *GIT_PROGRAMS, command=git_command()))

    def value(name: str) -> str:
        return git(hostile, "config", "--get", name, env=off).decode().strip()

    for name in ("hook.own.name.enabled", "hook.a = b\tc.enabled", "hook.mine.enabled", "filter.evil.required"):
        assert value(name) == "false", name
    assert value("filter.evil.clean") == ""
    assert value("filter.lfs.clean") == "git-lfs clean -- %f"
    only_hooks = git_without_programs(git(hostile, *GIT_PROGRAMS, command=git_command()), filters=False)
    assert not [name for name in only_hooks.values() if name.startswith("filter.")]


def test_where_nothing_is_listed_nothing_is_switched_off() -> None:
    assert git_without_programs(b"") == {"GIT_CONFIG_COUNT": "0"}
