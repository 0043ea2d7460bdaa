"""Mutations that were tried, and whether the tests caught them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from marvin_core import MarvinError, Record

from ...checks.commands import ProjectCommand

ENOUGH = 0.6
"""The part of them that is to be caught (issue 19 of the project asks for 60 %)."""


class Part(Record):
    """New code, and the command that tests it."""

    command: ProjectCommand
    new: Mapping[str, Sequence[int]]
    """The numbers of new lines by file, relative to the project; all of them lie below the folder of the command."""

    @property
    def prefix(self) -> str:
        """What the paths of the files begin with; empty for the project's own folder."""
        return "" if self.command.folder == "." else f"{self.command.folder}/"


class Limit(Record):
    """How much a tool may do."""

    mutations: int
    seconds: float


class Mutation(Record):
    """One change that was made to the code for a moment."""

    file: str
    line: int
    what: str
    """What kind of change it was, as the tool names it."""
    caught: bool
    """Whether a test failed by it, or ran too long."""

    @property
    def place(self) -> str:
        """Where and what, as gates have places."""
        return f"{self.file}:{self.line}: {self.what}"


class Tried(Record):
    """What one tool tried."""

    tool: str
    mutations: tuple[Mutation, ...]
    found: int
    """How many there were in the new code, of which these are a sample."""
    is_cut_off: bool = False
    """Whether the time was over before all of the sample were tried."""


class NotMeasured(MarvinError):
    """Nothing can tell what the tests catch; the text says why.

    Args:
        is_fault: whether a tool for the language is missing or failed, which `--strict` holds against the run.
    """

    def __init__(self, text: str, *, is_fault: bool = True) -> None:
        super().__init__(text)
        self.is_fault = is_fault


def share(mutations: Sequence[Mutation]) -> float:
    """The part that was caught, from 0 to 1. There is one mutation at least."""
    return sum(one.caught for one in mutations) / len(mutations)
