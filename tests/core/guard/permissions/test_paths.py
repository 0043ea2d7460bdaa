"""Rules on paths hold for every spelling, and files for keys are not shown to tools that read."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.config import Permissions
from marvin_core.api.hooks import Ask, Deny
from marvin_core.guard.files.key_files import EXAMPLES, KEY_FILES, is_key_file
from marvin_core.guard.files.sandbox import SandboxPaths
from marvin_core.guard.permissions.path_spellings import meant
from marvin_core.guard.permissions.policy import Policy
from marvin_core.guard.permissions.verdicts import Allow
from tests.support.engine import settled, spec

READER = spec("read_file", access=["read"])
WRITER = spec("write_file", access=["write"])


def policy(tmp_path: Path, **rules: list[str]) -> Policy:
    permissions = Permissions(**{name: tuple(found) for name, found in rules.items()})
    return Policy(settled(tmp_path)[0].replace(permissions=permissions))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "sub").mkdir(parents=True)
    (folder / "secret.txt").write_text("x")
    (folder / "link.txt").symlink_to("secret.txt")
    (folder / "way").symlink_to("sub")
    return folder


SPELLINGS = [
    "secret.txt",
    "./secret.txt",
    ".//secret.txt",
    "sub/../secret.txt",
    "sub//../secret.txt",
    "way/../secret.txt",
    "link.txt",
    "sub/../link.txt",
]


@pytest.mark.parametrize("path", SPELLINGS)
def test_a_rule_holds_for_every_spelling_of_a_path(path: str, root: Path, tmp_path: Path) -> None:
    found = policy(tmp_path, deny=["read_file(secret.txt)"], ask=["write_file(secret.txt)"])
    assert isinstance(found.judge(READER, {"path": path}, root).verdict, Deny)
    assert isinstance(found.judge(WRITER, {"path": path}, root).verdict, Ask)
    assert isinstance(found.judge(READER, {"files": [{"path": str(root / path)}]}, root).verdict, Deny)


AROUND = ["loop", "gone", "gone/new", "fifo", "was (deleted)", "to-deleted", "chain", "closed/in", "new/deep", "way/.."]


@pytest.mark.parametrize("path", [*SPELLINGS, *AROUND])
def test_a_path_means_what_the_system_resolves_it_to(path: str, root: Path) -> None:
    for name, target in {"loop": "loop", "gone": "nowhere", "to-deleted": "was (deleted)", "chain": "link.txt"}.items():
        (root / name).symlink_to(target)
    (root / "was (deleted)").touch()
    os.mkfifo(root / "fifo")
    (root / "closed").mkdir()
    (root / "closed/in").symlink_to("../sub")
    assert os.path.realpath(root / path) in meant(path, root)
    assert len(meant(path, root)) <= 2


def test_a_rule_holds_for_a_path_that_leads_inside_through_a_link_outside(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    (tmp_path / "deep").symlink_to(root / "sub")
    found = policy(tmp_path, deny=["read_file(secret.txt)", "read_file(sub/*)"])
    for path in ("link/secret.txt", "link/link.txt", "link/way/a", "deep/a", "deep/../secret.txt"):
        assert isinstance(found.judge(READER, {"path": str(tmp_path / path)}, root).verdict, Deny), path


def test_an_absolute_rule_holds_for_relative_paths(root: Path, tmp_path: Path) -> None:
    found = policy(tmp_path, deny=[f"read_file({root}/secret.txt)"])
    assert isinstance(found.judge(READER, {"path": "sub/../secret.txt"}, root).verdict, Deny)
    assert found.judge(READER, {"path": "other.txt"}, root).verdict is None


def test_an_allowance_does_not_reach_behind_links_and_steps_up(root: Path, tmp_path: Path) -> None:
    (root / "sub" / "out").symlink_to("../secret.txt")
    found = policy(tmp_path, allow=["write_file(sub/*)"])
    assert isinstance(found.judge(WRITER, {"path": "sub/a"}, root).verdict, Allow)
    assert isinstance(found.judge(WRITER, {"path": "./sub/a"}, root).verdict, Allow)
    assert isinstance(found.judge(WRITER, {"path": "way/a"}, root).verdict, Allow)
    assert found.judge(WRITER, {"path": "sub/../secret.txt"}, root).verdict is None
    assert found.judge(WRITER, {"path": "sub/out"}, root).verdict is None


def test_an_allowance_for_what_is_no_path_holds(root: Path, tmp_path: Path) -> None:
    found = policy(tmp_path, allow=["read_file(https://docs.example/*)"])
    assert isinstance(found.judge(READER, {"url": "https://docs.example/a"}, root).verdict, Allow)


KEYS = [".env", "./.env", "sub/../.env", ".env.production", "sub/server.pem", "id_ed25519", ".ssh/id_rsa", ".netrc"]
KEYS += [".aws/credentials", "tls.KEY", ".ssh/authorized_keys", ".npmrc", ".ENV"]
PLAIN = [".env.example", "id_rsa.pub", "environment.py", "keys.py", "a.env.md", "identity", ".ssh/config", "src/env"]


@pytest.mark.parametrize("path", KEYS)
def test_files_for_keys_are_not_read(path: str, root: Path, tmp_path: Path) -> None:
    verdict = policy(tmp_path).judge(READER, {"path": path}, root).verdict
    assert isinstance(verdict, Deny)
    named = ".env" if path == "sub/../.env" else path
    assert f"`read_file({named})` to permissions.allow" in verdict.reason
    allowing = policy(tmp_path, allow=[f"read_file({named})"])
    assert isinstance(allowing.judge(READER, {"path": path}, root).verdict, Allow)
    assert policy(tmp_path).judge(WRITER, {"path": path}, root).verdict is None


@pytest.mark.parametrize("path", PLAIN)
def test_what_only_looks_like_one_is_read(path: str, root: Path, tmp_path: Path) -> None:
    assert policy(tmp_path).judge(READER, {"path": path}, root).verdict is None
    assert not is_key_file(path)


def test_a_link_does_not_lead_to_a_file_for_keys(root: Path, tmp_path: Path) -> None:
    (root / ".env").write_text("KEY=1")
    (root / "notes.txt").symlink_to(".env")
    assert isinstance(policy(tmp_path).judge(READER, {"path": "notes.txt"}, root).verdict, Deny)
    assert policy(tmp_path).judge(READER, {"pattern": ".env", "path": "sub"}, root).verdict is None


def test_texts_that_are_no_paths_do_no_harm(root: Path, tmp_path: Path) -> None:
    found = policy(tmp_path, deny=["read_file(secret.txt)"])
    loop = root / "loop"
    os.symlink("loop", loop)
    for text in ("a\0b", "x" * 10_000, "two\nlines", "loop/a", "", "~", "/"):
        assert found.judge(READER, {"path": text}, root).verdict is None


def test_the_rule_that_is_offered_is_narrow(root: Path, tmp_path: Path) -> None:
    shell = spec("run_command", access=["exec"])
    offered = {
        "git status -s": "run_command(git status *)",
        "npm run test -- -x": "run_command(npm run test *)",
        "pytest -q": "run_command(pytest *)",
        "cd sub && pytest": "",
        "bash build.sh": "",
        "python -m pytest": "",
        "sudo ls": "",
        "env ls": "run_command(ls *)",
        "env -i ls": "",
        "rm x": "",
        "git -c a=b status": "",
        "git push": "",
        "docker run x": "",
        "PATH=x git status": "",
        "make > log": "",
        "./run": "",
        "$x": "",
        "xargs ls": "run_command(ls *)",
    }
    found = policy(tmp_path)
    assert {text: found.judge(shell, {"command": text}, root).remember for text in offered} == offered
    assert found.judge(WRITER, {"path": "src/a.py"}, root).remember == "write_file(src/*)"
    assert found.judge(WRITER, {"path": "a.py"}, root).remember == "write_file(a.py)"
    assert found.judge(WRITER, {"path": "../a.py"}, root).remember == ""


def test_findings_tell_each_part_and_the_alarm_what_is_dangerous(root: Path, tmp_path: Path) -> None:
    shell = spec("run_command", access=["exec"])
    found = policy(tmp_path, allow=["run_command(git *)"], deny=["run_command(touch *)"])
    judgement = found.judge(shell, {"command": "git status && rm -rf .. | touch p"}, root)
    assert [(one.text, one.says) for one in judgement.findings] == [
        ("git status", "allow"),
        ("rm -rf ..", "ask"),
        ("touch p", "deny"),
    ]
    assert judgement.alarm.startswith("removes the working directory")
    assert found.judge(shell, {"command": "git status"}, root).alarm == ""


def _fits(parts: list[str], patterns: Sequence[str]) -> bool:
    """Whether the last parts of a path fit a pattern, part by part."""
    wanted = [pattern.split("/") for pattern in patterns]
    return any(len(parts) >= len(one) and all(map(fnmatchcase, parts[-len(one) :], one)) for one in wanted)


_PART = st.sampled_from(
    [part.replace("*", end) for each in (*KEY_FILES, *EXAMPLES) for part in each.split("/") for end in ("", "a\n")]
    + ["src", ".", "", "a\n", ".ENV", "x.pub"]
)


@given(st.lists(_PART, max_size=6))
def test_key_files_are_told_as_their_patterns_say(parts: list[str]) -> None:
    named = [part.casefold() for part in "/".join(parts).split("/") if part not in ("", ".")]
    above = [named[:end] for end in range(1, len(named) + 1)]
    expected = any(_fits(one, KEY_FILES) and not _fits(one, EXAMPLES) for one in above)
    assert is_key_file("/".join(parts)) is expected


def test_telling_key_files_takes_linear_time() -> None:
    begun = time.process_time()
    for text in ("a/" * 50_000, ".ssh/" * 50_000 + "config", "a.env" * 20_000, ".config/gh/" * 20_000):
        is_key_file(text)
    assert time.process_time() - begun < 20


@pytest.mark.parametrize("text", ["sub/a", "sub/ and more\nlines", "sub/../sub/x"])
def test_no_other_text_of_a_call_stands_for_the_path_of_an_allow_rule(tmp_path: Path, text: str) -> None:
    """What a model writes into a file must not say which file it may write."""
    found = policy(tmp_path, allow=["write_file(sub/*)"])
    assert found.judge(WRITER, {"path": "setup.py", "content": text}, tmp_path).verdict is None
    assert found.judge(WRITER, {"content": text, "source": "setup.py"}, tmp_path).verdict is None
    assert isinstance(found.judge(WRITER, {"path": "sub/a", "content": "x"}, tmp_path).verdict, Allow)


def test_every_path_of_a_call_has_to_fit_an_allow_rule(tmp_path: Path) -> None:
    found = policy(tmp_path, allow=["write_file(sub/*)"])
    for paths, allowed in ((["sub/a", "sub/b"], True), (["sub/a", "setup.py"], False), ([], False)):
        verdict = found.judge(WRITER, {"paths": paths, "note": "sub/x"}, tmp_path).verdict
        assert isinstance(verdict, Allow) is allowed


def test_of_a_call_without_paths_its_first_parameter_counts(tmp_path: Path) -> None:
    tool = spec("send_mail", access=["write"]).replace(
        parameters={"type": "object", "properties": {"body": {}, "to": {}}, "required": ["to", "body"]}
    )
    found = policy(tmp_path, allow=["send_mail(*@ours.example)"])
    for to, allowed in (("a@ours.example", True), (["a@ours.example", "b@theirs.example"], False), ("b@x", False)):
        verdict = found.judge(tool, {"to": to, "body": "write to c@ours.example"}, tmp_path).verdict
        assert isinstance(verdict, Allow) is allowed


@pytest.mark.parametrize("way", ["x\n/../", "./x\n/../", "a\nb/c\n/../../"])
def test_a_line_break_on_the_way_hides_no_file_from_a_rule(tmp_path: Path, way: str) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "a").write_text("x")
    assert SandboxPaths(tmp_path).locate(f"{way}secret/a") == "secret/a"
    found = policy(tmp_path, deny=["read_file(secret/*)"])
    assert isinstance(found.judge(READER, {"path": f"{way}secret/a"}, tmp_path).verdict, Deny)
