"""Terminals in an editor that show what Marvin's commands print.

Marvin runs each command itself, so that permissions, sandbox and undo apply. The editor only displays it: this is the
extension `terminal_output` of the protocol, which the editor announces in the `_meta` of its capabilities.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from acp import schema

from ..util.terminal_text import disarm

_COMPARED = 100_000
"""The maximum length of shown output that is compared with the result, in characters."""
_ALL = "\n[The output:]\n"

Meta: TypeAlias = dict[str, Any]
CallContent: TypeAlias = schema.ContentToolCallContent | schema.FileEditToolCallContent | schema.TerminalToolCallContent


def shows_terminals(capabilities: schema.ClientCapabilities | None) -> bool:
    """Whether an editor announces the extension."""
    said = capabilities.field_meta if capabilities is not None else None
    return isinstance(said, dict) and said.get("terminal_output") is True


class Terminals:
    """The terminals of running commands, by the IDs of their calls. `on` is whether the editor shows them."""

    def __init__(self, *, on: bool) -> None:
        self._on = on
        self._shown: dict[str, str] = {}

    def open(self, call: str, cwd: Path) -> Meta | None:
        """Open a terminal for a command; None if the editor shows none."""
        if not self._on:
            return None
        self._shown[call] = ""
        return {"terminal_info": {"terminal_id": call, "cwd": str(cwd)}}

    def content(self, call: str) -> list[CallContent] | None:
        """The terminal as the content of its call; None if it has none."""
        return [schema.TerminalToolCallContent(type="terminal", terminal_id=call)] if call in self._shown else None

    def add(self, call: str, lines: str) -> Meta:
        """Show more lines."""
        lines = disarm(lines)
        self._shown[call] = f"{self._shown[call]}{lines}\n"[: _COMPARED + 1]
        return _output(call, f"{lines}\n")

    def end(self, call: str, text: str, details: Mapping[str, Any]) -> tuple[Meta | None, Meta, bool]:
        """Close a terminal with the result of its call.

        Returns:
            the missing output, if any; the exit; and whether the command has run.
        """
        shown, code = self._shown.pop(call), details.get("exit_code")
        ran = isinstance(code, int)
        text = disarm(text.removesuffix(str(details.get("aside", ""))))
        rest = _rest(shown, text) if ran else text
        more = _output(call, f"{rest}\n") if rest.strip() and (ran or shown) else None
        return more, _exit(call, code if ran else None), ran or bool(shown)


def _rest(shown: str, text: str) -> str:
    """The part of the output that is not shown yet. Lines that came too fast were left out: then it is all of it.

    Of very long output only the beginning is compared. If that was shown, the rest counts as shown.
    """
    lines = text.splitlines()
    is_long = len(shown) > _COMPARED
    left = [line for line in shown.splitlines() if line.strip()][: -1 if is_long else None]
    at = 0
    for number, line in enumerate(lines):
        if at == len(left):
            return "" if is_long else "\n".join(lines[number:])
        if line.strip():
            if line != left[at]:
                return f"{_ALL}{text}"
            at += 1
    return f"{_ALL}{text}" if at < len(left) else ""


def _output(call: str, data: str) -> Meta:
    return {"terminal_output": {"terminal_id": call, "data": data}}


def _exit(call: str, code: int | None) -> Meta:
    name = None
    if code is not None and code < 0:
        name = next((one.name for one in signal.Signals if one == -code), f"signal {-code}")
    status = code if code is not None and code >= 0 else None
    return {"terminal_exit": {"terminal_id": call, "exit_code": status, "signal": name}}
