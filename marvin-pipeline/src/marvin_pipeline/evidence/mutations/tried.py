"""Mutations, and whether the tests caught them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from marvin_core import MarvinError, Record

from ...checks.commands import ProjectCommand

ENOUGH = 0.6
"""The share of mutations that the tests should catch (issue 19 of the project asks for 60 %)."""


class Part(Record):
    """New code, and the command that tests it."""

    command: ProjectCommand
    new: Mapping[str, Sequence[int]]
    """The numbers of new lines by file, relative to the project; all files lie below the command's folder."""

    @property
    def prefix(self) -> str:
        """The prefix of the files' paths; empty for the project's own folder."""
        return "" if self.command.folder == "." else f"{self.command.folder}/"


class Limit(Record):
    """The limits of a tool."""

    mutations: int
    seconds: float


class Mutation(Record):
    """A mutation: a temporary change to the code."""

    file: str
    line: int
    what: str
    """The kind of change, in the tool's words."""
    caught: bool
    """Whether a test failed, or timed out."""

    @property
    def place(self) -> str:
        """The location and the change, in the form of a gate's places."""
        return f"{self.file}:{self.line}: {self.what}"


class Tried(Record):
    """The result of one tool."""

    tool: str
    mutations: tuple[Mutation, ...]
    found: int
    """The number of mutations of the new code, of which these are a sample."""
    is_cut_off: bool = False
    """Whether the time ran out before the whole sample was tried."""


class NotMeasured(MarvinError):
    """The mutations could not be tried; the text says why.

    Args:
        is_fault: whether a tool for the language is missing or failed, which fails a run with `--strict`.
    """

    def __init__(self, text: str, *, is_fault: bool = True) -> None:
        super().__init__(text)
        self.is_fault = is_fault


def share(mutations: Sequence[Mutation]) -> float:
    """The share that was caught, from 0 to 1. Requires at least one mutation."""
    return sum(one.caught for one in mutations) / len(mutations)
