"""The corpus of commands: what the judge says of each, with the rules that are in force."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from marvin_core.api.config import Permissions
from marvin_core.api.hooks import Ask, Deny, Verdict
from marvin_core.guard.permissions.policy import Policy
from marvin_core.guard.permissions.verdicts import Allow
from tests.support.engine import settled, spec

SHELL = spec("run_command", access=["write", "exec"])
ROOT = Path("/srv/project")
FILES = sorted((Path(__file__).parent / "corpus").glob("*.toml"))
FIELDS = {"text", "deny", "ask", "allow", "says", "confined", "attended", "why"}


def entries(file: Path) -> list[dict[str, Any]]:
    return list(tomllib.loads(file.read_text("utf-8"))["command"])


def said(verdict: Allow | Verdict) -> str:
    return {Allow: "allow", Ask: "ask", Deny: "deny", type(None): "nothing"}[type(verdict)]


def mistakes(file: Path, folder: Path) -> Iterator[str]:
    settings = {True: settled(folder)[0], False: settled(folder, "--non-interactive")[0]}
    for entry in entries(file):
        rules = {name: tuple(entry.get(name, ())) for name in ("deny", "ask", "allow")}
        config = settings[entry.get("attended", True)].replace(permissions=Permissions(**rules))
        confined = entry.get("confined", False)
        verdict = Policy(config).judge(SHELL, {"command": entry["text"]}, ROOT, confined=confined).verdict
        if said(verdict) != entry["says"]:
            yield f"{entry['text']!r} {rules}: {said(verdict)} instead of {entry['says']}: {entry['why']}"


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_judge_says_what_the_corpus_says(file: Path, tmp_path: Path) -> None:
    found = list(mistakes(file, tmp_path))
    assert not found, "\n".join(found)


def test_the_corpus_is_large_and_each_entry_is_there_once() -> None:
    known: set[tuple[object, ...]] = set()
    total = 0
    for file in FILES:
        for entry in entries(file):
            assert set(entry) <= FIELDS, entry
            assert entry["why"], entry
            total += 1
            known.add(tuple(str(entry.get(name)) for name in sorted(FIELDS - {"why", "says"})))
    assert len(known) == total >= 250
