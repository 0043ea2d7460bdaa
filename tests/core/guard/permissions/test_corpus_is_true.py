"""The verdicts of the corpus are true of what a real bash does, and everyday commands are never denied."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from marvin_core.api.hooks import Deny
from tests.support.judging import judge
from tests.support.recorded import Recorder, Run

CORPUS = Path(__file__).with_name("corpus")
DENIED = "run_command(touch *)"
ALLOWED = "run_command(git *)"
ROOT = Path("/srv/project")
FILES = {"a.txt": "x\n", "sub/b": "", "build/x": ""}
UNSEEN = {"busybox", "parallel", "sudo", "ssh", "watch"}
"""Programs that are seldom there, or need another machine or a terminal: what they start is not seen here."""


def entries(name: str) -> list[dict[str, Any]]:
    """The commands of one file of the corpus."""
    found: list[dict[str, Any]] = tomllib.loads((CORPUS / f"{name}.toml").read_text())["command"]
    return found


def _started(texts: list[str], folder: Path) -> list[Run]:
    programs = ("touch", "git", "id", "rm", "dd", "curl", "wget", "git-evil", "downloaded-code")
    return Recorder(folder / "recorders", programs, FILES).run(texts)


@pytest.mark.slow
def test_what_is_denied_starts_and_what_is_not_denied_does_not(tmp_path: Path) -> None:
    found = [entry for entry in entries("other") if entry.get("deny") == [DENIED] and "\0" not in entry["text"]]
    assert len(found) > 130
    wrong = []
    for entry, run in zip(found, _started([entry["text"] for entry in found], tmp_path), strict=True):
        unseen = UNSEEN if shutil.which("dash") else UNSEEN | {"dash"}
        hidden = unseen & set(entry["text"].split()) or entry["why"].startswith("Beyond")
        if not hidden and ("touch" in run.names()) != (entry["says"] == "deny"):
            wrong.append(entry)
    assert wrong == []


def test_what_is_allowed_starts_nothing_else(tmp_path: Path) -> None:
    found = [entry for entry in entries("other") if entry.get("allow") == [ALLOWED] and entry["says"] == "allow"]
    runs = _started([entry["text"] for entry in found], tmp_path)
    assert [run.names() for run in runs] == [{"git"}] * len(found)


def test_the_shell_can_read_every_everyday_command(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    texts = [entry["text"] for entry in entries("everyday")]
    for number, text in enumerate(texts):
        (tmp_path / str(number)).write_text(text)
    check = 'for f in [0-9]*; do "$BASH" -n "$f" || echo "$f"; done 2>&1'
    result = subprocess.run([bash, "-c", check], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout == ""
    assert len(texts) > 110


@pytest.mark.slow
def test_a_rule_about_another_program_leaves_everyday_commands_alone(tmp_path: Path) -> None:
    say = judge(tmp_path, ROOT, deny=[DENIED])
    denied = [entry["text"] for entry in entries("everyday") if isinstance(say(entry["text"]), Deny)]
    assert len(denied) < 5, denied  # a name that is a variable may be any program


@pytest.mark.slow
@pytest.mark.parametrize("attended", [True, False])
@pytest.mark.parametrize("confined", [True, False])
def test_no_everyday_command_is_denied(attended: bool, confined: bool, tmp_path: Path) -> None:
    say = judge(tmp_path, ROOT, attended=attended, confined=confined)
    assert [entry["text"] for entry in entries("everyday") if isinstance(say(entry["text"]), Deny)] == []
