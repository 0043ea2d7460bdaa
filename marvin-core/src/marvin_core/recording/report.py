"""The report of a replay: differences from the recording, and parts that could not be replayed."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

from ..api.record import Record
from ..util.text import counted, cut
from .volatile import lasting

Kind: TypeAlias = Literal["request", "result", "call", "answer", "ending", "cassette"]
"""What differs: a request, the result of a call, which calls came, which answers were asked for, how a prompt ended;
or the cassette itself, where it is not as it was written."""
_LINES = 60
_MOST = 200
"""Differences, and notes, that are kept; one that comes first often brings all that follow."""


class Difference(Record):
    """One difference. `where` names the prompt, the request or the call; `diff` is a unified one, if there is any."""

    kind: Kind
    where: str
    text: str
    diff: str = ""


class Report:
    """Collects the results of a replay."""

    def __init__(self) -> None:
        self.differences: list[Difference] = []
        self.notes: list[str] = []
        self.left_out = 0
        self.prompts = self.requests = self.calls = 0

    def differs(self, kind: Kind, where: str, text: str, diff: str = "") -> None:
        """Add a difference."""
        if len(self.differences) >= _MOST:
            self.left_out += 1
            return
        self.differences.append(Difference(kind=kind, where=where, text=text, diff=diff))

    def note(self, text: str) -> None:
        """Add what a reader should know, once; it is no difference."""
        text = text.rstrip(".")
        if text not in self.notes and len(self.notes) < _MOST:
            self.notes.append(text)

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not self.differences

    def as_json(self) -> dict[str, Any]:
        """The report as data."""
        return {
            "same": self.same,
            "prompts": self.prompts,
            "requests": self.requests,
            "calls": self.calls,
            "differences": [one.as_dict() for one in self.differences],
            "left_out": self.left_out,
            "notes": self.notes,
        }

    def lines(self) -> Iterator[str]:
        """The report for people."""
        for one in self.differences:
            yield f"{one.where}: {one.text}"
            yield from (f"    {line}" for line in one.diff.splitlines())
        if self.left_out:
            yield f"{counted(self.left_out, 'difference')} more."
        for note in self.notes:
            yield f"Note: {note}."
        did = ", ".join(
            (counted(self.prompts, "prompt"), counted(self.requests, "request"), counted(self.calls, "call"))
        )
        found = "nothing differs" if self.same else counted(len(self.differences) + self.left_out, "difference")
        yield f"Replayed {did}: {found}."


def diff_of(before: str, after: str) -> str:
    """What changed between two texts, as a unified diff of bounded size; empty where only what is volatile did."""
    old, new = lasting(before), lasting(after)
    if old == new:
        return ""
    lines = difflib.unified_diff(
        [cut(line, 400) for line in old.splitlines()],
        [cut(line, 400) for line in new.splitlines()],
        "recorded",
        "now",
        lineterm="",
        n=2,
    )
    shown = [line for _, line in zip(range(_LINES), lines, strict=False)]
    return "\n".join(shown) or "(line ends or blanks differ)"
