"""The report of a replay: differences from the recording, and parts that could not be replayed."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

from ..api.record import Record
from ..util.text import counted, cut
from .volatile import lasting

Kind: TypeAlias = Literal["request", "result", "call", "answer", "ending", "cassette"]
"""The kind of a difference: a request, the result of a call, the list of calls, the requested answers, the end of a
prompt; or the cassette itself, if it was changed after the recording."""
_LINES = 60
_MOST = 200
"""The maximum number of differences and of notes; the first one often causes all that follow."""


class Difference(Record):
    """One difference. `where` is the prompt, the request or the call; `diff` is a unified diff, if there is any."""

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
        """Add a note for the reader, once; it is not a difference."""
        text = text.rstrip(".")
        if text not in self.notes and len(self.notes) < _MOST:
            self.notes.append(text)

    @property
    def same(self) -> bool:
        """Whether there are no differences."""
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
    """The changes between two texts as a unified diff of bounded size; empty if only volatile parts differ."""
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
