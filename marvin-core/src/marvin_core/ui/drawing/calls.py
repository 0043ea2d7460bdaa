"""Tool calls on the screen: their start, progress and result."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from ...api.events import ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate
from ...util.shown import bar
from ...util.terminal_text import exact
from ...util.text import counted
from ..quoted import Quoting
from ..rendering import SHOWN, Measure, Paint, call_line, clean, outcome_line, shortened, shown_rows, wrapped
from .diffs import diff_rows

HEADER_ROWS = 10
"""The maximum number of rows of a command in its header; the others are counted."""
_LONGEST = 50_000
"""The maximum length of a command that is split into rows, in characters."""
_HEAD, _TAIL = 2, 3
"""The number of shown rows of an output, at its beginning and at its end."""
_HANGING = "     "
_BY_HAND = ("person", "typed")
_QUICK = 1.0
"""Seconds from which the duration of a manual call is shown."""
_MORE = "Ctrl+O shows all"


def header_rows(
    event: ToolExecutionStart, command: str, quoting: Quoting, width: int, measure: Measure, most: int = 0
) -> list[str]:
    """A call that begins, with the command from the parameter `command`. Rows beyond `most` are counted. Without
    `most`, `HEADER_ROWS` are shown, and a key of the screen shows the others.

    The command is shown completely for a person who judges it, with escapes for invisible characters.
    """
    text = event.arguments.get(command) if command else None
    if not isinstance(text, str):
        return wrapped(call_line(event), width, measure, _HANGING).split("\n")
    whole = f"{event.name}({command}={text!r})"
    others = {name: value for name, value in event.arguments.items() if name != command}
    if not others and len(text) <= SHOWN and "\n" not in text and exact(text) == text:
        return wrapped(clean(f"  🔧 {whole}"), width, measure, _HANGING).split("\n")
    rows = wrapped(call_line(event.replace(arguments=others)), width, measure, _HANGING).split("\n")
    quoted = [f"   {row}" for row in quoting.rows(exact(text[:_LONGEST]))]
    left = len(quoted) - (most or HEADER_ROWS)
    unseen = len(text) - _LONGEST
    if left <= 0 and unseen <= 0:
        return [*rows, *quoted]
    counts = [counted(left, "more row")] if left > 0 else []
    counts += [counted(unseen, "character")] if unseen > 0 else []
    hint = "" if most else f". {_MORE}."
    return [*rows, *quoted[: most or HEADER_ROWS], f"{_HANGING}… {' and '.join(counts)}{hint}"]


class _Running:
    """A running call."""

    def __init__(self, event: ToolExecutionStart) -> None:
        self.name = clean(event.name)
        self.since = time.monotonic()
        self.told = ""
        self.head: list[str] = []
        self.tail: deque[str] = deque(maxlen=_TAIL)
        self.lines = 0
        self.together = False
        self.subject = _subject(event.arguments)

    def update(self, event: ToolExecutionUpdate) -> None:
        """Take a progress report of the tool, or lines of its output."""
        lines = clean(event.text).strip("\n").split("\n")
        if event.fraction is not None:
            self.told = f"{bar(event.fraction)} {lines[-1].strip()}"
            return
        self.told = lines[-1].strip()
        for line in lines:
            self.lines += 1
            if len(self.head) < _HEAD:
                self.head.append(line)
            else:
                self.tail.append(line)

    def seconds(self) -> str:
        """How long it has been running; empty in the first second."""
        seconds = int(time.monotonic() - self.since)
        return f", {seconds} s" if seconds else ""


class Calls:
    """The calls of an answer: rows to write when one begins or ends, and rows that show running ones.

    `command_of` returns the parameter of a tool that contains a shell command, if any.
    """

    def __init__(self, paint: Paint, measure: Measure, command_of: Callable[[str], str]) -> None:
        self._paint = paint
        self._measure = measure
        self._command_of = command_of
        self._running: dict[str, _Running] = {}

    def begin(self, event: ToolExecutionStart, width: int) -> list[str]:
        """The header of a call; empty for one that was typed directly above."""
        running = _Running(event)
        self._running[event.call_id] = running
        if len(self._running) > 1:
            for each in self._running.values():
                each.together = True
        if event.origin in _BY_HAND:
            return []
        quoting = Quoting(self._paint, width - 3, self._measure)
        rows = header_rows(event, self._command_of(event.name), quoting, width, self._measure)
        return [self._paint("tool", row) for row in rows]

    def update(self, event: ToolExecutionUpdate) -> None:
        """A progress report of a running call."""
        running = self._running.get(event.call_id)
        if running is not None:
            running.update(event)

    def end(self, event: ToolExecutionEnd, width: int) -> list[str]:
        """The end of a call, its result, and its changes."""
        running = self._running.pop(event.call_id, None)
        rows: list[str] = []
        if event.origin not in _BY_HAND or event.elapsed >= _QUICK:
            together = running if running is not None and running.together else None
            rows += self._outcome(event, together, width)
        rows += diff_rows(event.details, self._paint, f". {_MORE}.")
        return [*rows, *shown_rows(event.show, width, self._measure)]

    def clear(self) -> None:
        """No call is running any more."""
        self._running.clear()

    @property
    def are_running(self) -> bool:
        """Whether any call is running."""
        return bool(self._running)

    def live_rows(self, width: int) -> list[str]:
        """The running calls, one row each; for a single one also the beginning and the end of its output."""
        rows: list[str] = []
        for call in self._running.values():
            subject = f" {call.subject}" if call.subject and call.together else ""
            told = f": {call.told}" if call.told and (call.together or not call.lines) else ""
            rows.append(shortened(f"… {call.name}{subject}{call.seconds()}{told}", width, self._measure))
            if not call.together:
                rows += self._output(call, width)
        return [self._paint("faint", row) for row in rows]

    def _output(self, call: _Running, width: int) -> list[str]:
        between = call.lines - len(call.head) - len(call.tail)
        lines = [*call.head, *([f"… {counted(between, 'line')} …"] if between > 0 else []), *call.tail]
        return [shortened(f"{_HANGING}{line}", width, self._measure) for line in lines]

    def _outcome(self, event: ToolExecutionEnd, together: _Running | None, width: int) -> list[str]:
        line = outcome_line(event)
        if together is not None:
            subject = f" {together.subject}" if together.subject else ""
            line = f"{_HANGING}{together.name}{subject} {line.lstrip()}"
        if event.is_error:
            return [self._paint("error", row) for row in wrapped(line, width, self._measure, _HANGING).split("\n")]
        rows = [self._paint("faint", shortened(line, width, self._measure))]
        if event.origin != "model" or together is not None or has_diff(event.details) or event.show:
            return rows
        aside = (event.details or {}).get("aside")
        text = event.text.removesuffix(aside) if isinstance(aside, str) else event.text
        return [*rows, *self._preview(text, width)]

    def _preview(self, text: str, width: int) -> list[str]:
        """The text of an output after its first line, which belongs to the outcome."""
        _, *lines = clean(text.strip()).split("\n")
        left = len(lines) - (_HEAD - 1) - _TAIL
        if left > 0:
            between = f"… {counted(left, 'more line')}. {_MORE}."
            lines = [*lines[: _HEAD - 1], between, *lines[-_TAIL:]]
        return [
            self._paint("faint", shortened(f"{_HANGING}{line}", width, self._measure)) if line.strip() else ""
            for line in lines
        ]


def has_diff(details: Mapping[str, Any] | None) -> bool:
    """Whether an edit contains its changes."""
    diff = (details or {}).get("diff")
    return isinstance(diff, str) and bool(diff.strip())


def _subject(arguments: Mapping[str, Any]) -> str:
    """A summary of a call in a few words, to distinguish it from parallel calls."""
    text = next((value for value in arguments.values() if isinstance(value, str) and value.strip()), "")
    first = clean(text[: SHOWN * 2]).strip().partition("\n")[0]
    return first if len(first) <= SHOWN // 3 else f"{first[: SHOWN // 3]}…"
