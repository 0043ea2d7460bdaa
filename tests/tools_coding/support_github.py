"""A session whose gh and git are led to GitHub on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from marvin_core.testing import Outcome, ToolRunner
from tests.support.github import GitHub


class Desk:
    """A home folder, a project, and the tools; `hub` is the GitHub that they reach."""

    def __init__(self, hub: GitHub, runner: ToolRunner) -> None:
        self.hub = hub
        self.runner = runner
        self.home = runner.home
        self.clones = self.home / "github-clones"
        self.workshop = self.home / ".cache/marvin/packs/coding/clones"

    def call(self, tool: str, **arguments: Any) -> Outcome:
        """Call a tool, whatever comes of it."""
        return self.runner.call(tool, **arguments)

    def text(self, tool: str, **arguments: Any) -> str:
        """What a call that works gives the model."""
        outcome = self.call(tool, **arguments)
        assert not outcome.is_error, outcome.text
        return outcome.text

    def error(self, tool: str, **arguments: Any) -> str:
        """What a call that must fail gives the model."""
        outcome = self.call(tool, **arguments)
        assert outcome.is_error, outcome.text
        return outcome.text

    def left(self) -> list[str]:
        """What is left of clones that are not whole."""
        made = [path.name for path in self.workshop.glob("*") if path.suffix != ".lock"]
        return made + [path.name for path in self.clones.glob(".*")]


def program(folder: Path, name: str, script: str) -> Path:
    """A program of the test's own."""
    made = folder / name
    made.write_text(f"#!/bin/sh\n{script}\n")
    made.chmod(0o755)
    return made
