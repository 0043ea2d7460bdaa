"""The profile for macOS, as text: what it allows, what it denies, and in which order. It is not tried on a macOS."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from marvin_core.guard.processes.program import Request
from marvin_core.guard.sandbox.policy import Layout, Network, SandboxPolicy
from marvin_core.guard.sandbox.seatbelt import PROGRAM, Seatbelt, profile


def layout(tmp_path: Path, network: Network = "loopback", root: str = "project") -> Layout:
    home = tmp_path / "home"
    project = home / root
    for folder in (home / ".ssh", home / ".config" / "marvin", project / ".tickets"):
        folder.mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet", project], check=True, env={"PATH": os.environ["PATH"]})
    private = tmp_path / "private"
    private.mkdir()
    own = (home / ".config" / "marvin",)
    return Layout(SandboxPolicy(root=project, home=home, own=own, network=network, environment={}, private=private))


def verdict(text: str, operation: str, path: Path) -> str:
    """What the profile says of an operation on a path: of the rules that fit the last one counts."""
    said = "deny"
    for rule in re.findall(r"^\((?:allow|deny) [^\n]*(?:\n  [^\n]*)*", text, re.MULTILINE):
        kind, *operations = rule.strip("()").split(" (")[0].split("\n")[0].split()
        filters = re.findall(r'\((literal|subpath) "((?:[^"\\]|\\.)*)"\)', rule)
        fits = not filters or any(_fits(how, place, path) for how, place in filters)
        if fits and any(re.fullmatch(re.escape(one).replace(r"\*", ".*"), operation) for one in operations):
            said = kind
    return said


def _fits(how: str, place: str, path: Path) -> bool:
    named = Path(re.sub(r"\\(.)", r"\1", place))
    return path == named or (how == "subpath" and path.is_relative_to(named))


def test_what_may_be_written_and_read(tmp_path: Path) -> None:
    found = layout(tmp_path)
    text, root, home = profile(found, 0), found.policy.root, found.policy.home
    assert verdict(text, "file-write-data", root / "src" / "a.py") == "allow"
    assert verdict(text, "file-write-data", found.policy.private / "x") == "allow"
    assert verdict(text, "file-read-data", Path("/usr/bin/env")) == "allow"
    assert verdict(text, "file-write-data", root / ".git" / "index") == "allow"
    for path in (home / "notes", Path("/etc/hosts"), root / ".git" / "hooks" / "pre-commit", root / ".git" / "config"):
        assert verdict(text, "file-write-data", path) == "deny", path
    for path in (home / ".ssh" / "id", home / ".config" / "marvin" / "config.yaml", root / ".tickets" / "a"):
        assert verdict(text, "file-read-data", path) == "deny", path
        assert verdict(text, "file-write-data", path) == "deny", path


def test_what_holds_guarded_files_cannot_be_moved_away(tmp_path: Path) -> None:
    found = layout(tmp_path)
    text, root = profile(found, 0), found.policy.root
    for path in (root, root / ".git", root / ".git" / "hooks", root / ".git" / "config", root / ".tickets"):
        assert verdict(text, "file-write-unlink", path) == "deny", path
    assert verdict(text, "file-write-unlink", root / "src") == "allow"


@pytest.mark.parametrize(
    ("network", "rules"),
    [
        ("none", []),
        ("loopback", ["network-bind network-inbound (local", "network-outbound (remote"]),
        ("hosts", ['network-outbound (remote ip "localhost:3128")']),
        ("all", ["network*)"]),
    ],
)
def test_the_network(tmp_path: Path, network: Network, rules: list[str]) -> None:
    text = profile(layout(tmp_path, network), 3128)
    named = re.findall(r"^\(allow (network[^\n]*)", text, re.MULTILINE)
    assert len(named) == len(rules)
    assert all(one.startswith(rule) for one, rule in zip(named, rules, strict=True))


def test_a_path_is_no_rule(tmp_path: Path) -> None:
    """The name of a folder is the repository's to choose."""
    name = 'a"))(allow file-write* (subpath "\\'
    text = profile(layout(tmp_path, root=name), 0)
    assert verdict(text, "file-write-data", Path("/etc/hosts")) == "deny"
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)
    assert '"' not in bare.replace('""', "")
    assert bare.count("(") == bare.count(")")
    assert '(allow file-write* (subpath "\\' not in bare


def test_a_program_is_started_with_the_profile_and_folders_of_the_session(tmp_path: Path) -> None:
    found = layout(tmp_path, "hosts")
    launcher = Seatbelt(found, 3128)
    request = Request(program="/bin/ls", argv=("ls", "-p"), cwd=tmp_path, environment={}, descriptors=())
    wrapped = launcher.wrapped(request)
    assert wrapped.program == PROGRAM
    assert wrapped.argv == (PROGRAM, "-p", profile(found, 3128), "--", "/bin/ls", "-p")
    environment = launcher.environment({"TMPDIR": "/var/folders/x", "PATH": "/bin"})
    assert environment["TMPDIR"] == str(found.policy.private)
    assert environment["PATH"] == "/bin"
    assert environment["HTTPS_PROXY"] == "http://127.0.0.1:3128"
