"""Further functions of the chat on a terminal: the clipboard, an editor, a picker, earlier messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from prompt_toolkit.output import Output

from ...api.controls import Picking, SaidEntry
from ...util.streams import StandardStreams
from ...util.text import local_time, one_line
from ..clipboard import clipboard_sequence
from ..editor_program import run_on_terminal
from ..rendering import Paint
from .line_editor import LineEditor


class TerminalReach:
    """Gives access to the clipboard and to editors; `terminal` is the type of the terminal (TERM)."""

    def __init__(self, terminal: str, editor: LineEditor, paint: Paint) -> None:
        self._terminal = terminal
        self._editor = editor
        self._paint = paint

    def copy(self, text: str) -> bool:
        """Copy a text to the clipboard; False if the terminal has no sequence for that."""
        sequence = clipboard_sequence(text, self._terminal)
        StandardStreams().out(sequence)
        return bool(sequence)

    async def pick(self, picking: Picking) -> str:
        """Let the user pick one of several with keys; empty if the user picks none."""
        from .lent.picker import Picker

        found: list[Picker] = []

        def picker(output: Output) -> Picker:
            found.append(Picker(picking, self._paint, self._editor.measure, output, self._terminal))
            return found[-1]

        await self._editor.page(picker)
        return found[-1].picked if found else ""

    async def run_editor(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Leave the terminal to a program until it ends; returns its exit code."""
        return await self._editor.lend(lambda: run_on_terminal(command, environment))


def replay(
    entries: Sequence[SaidEntry],
    *,
    echo: Callable[[str], None],
    answer: Callable[[str], None],
    note: Callable[[str], None],
) -> None:
    """Show earlier messages again: prompts and answers as displayed, and a note for each omission."""
    for kind, text in _replayed(entries):
        {"user": echo, "assistant": answer, "note": note}[kind](text)


def _replayed(entries: Sequence[SaidEntry]) -> Iterator[tuple[str, str]]:
    for number, entry in enumerate(entries):
        if number == 0 or entry.role == "user":
            yield "note", f"── {local_time(entry.time)} ──" if entry.time else "── earlier ──"
        if entry.text:
            yield entry.role, entry.text
        if entry.calls:
            yield "note", f"   ({', '.join(map(one_line, entry.calls))})"
