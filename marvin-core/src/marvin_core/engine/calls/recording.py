"""Records the changes of a call, so that they can be undone later."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...api.messages import Call
from ...api.tools import ToolSpec
from ...guard.undo.changes import Changes, FileState
from ...guard.undo.inverses import Inverse
from ...guard.undo.ledger import LedgerEntry, UndoLedger, this_process
from ...util.text import cut, one_line, shortened
from ...util.threads import in_thread
from ..parts import SessionParts

_WHAT = 120
_VALUE = 40
_NOTHING_GIVEN = "no arguments"


class Recorder:
    """Writes the calls of a session to the undo ledger; a failure is reported once, and the calls continue."""

    def __init__(self, parts: SessionParts) -> None:
        self._parts = parts
        self._failing = False
        self._ledgers: dict[Path, UndoLedger] = {}
        self.made: set[Path] = set()
        """The entries of this session since its last commands began."""

    async def keep(self, spec: ToolSpec, given: Mapping[str, Any], undo: Call | None, changes: Changes) -> None:
        """Record a call that has ended.

        Args:
            given: its arguments as the caller gave them, without defaults.
            undo: the call that undoes it. Without one, its files are restored.
        """
        await in_thread(self._writing(spec, given, undo, changes))

    def keep_now(self, spec: ToolSpec, changes: Changes) -> None:
        """Record the changes of a call that failed or was cancelled, before anything else happens."""
        self._writing(spec, {}, None, changes)()

    def _writing(
        self, spec: ToolSpec, given: Mapping[str, Any], undo: Call | None, changes: Changes
    ) -> Callable[[], None]:
        parts, tool = self._parts, spec.name
        root = parts.workspace.root
        ledger, entry = self.ledger(root), self.entry(tool)

        def write() -> None:
            files = changes.result()
            if undo is None and not files:
                return
            what = _told(spec, given, parts.kept.text) if undo is not None else _told_files(files, str(root))
            try:
                inverse = Inverse(call=undo) if undo is not None else Inverse(files=files)
                self.made.add(ledger.record(self.told(entry, what), inverse))
            except (OSError, ValueError) as error:
                self._tell(f"{tool} cannot be undone, because its changes could not be recorded: {error}")

        return write

    def ledger(self, root: Path) -> UndoLedger:
        """The ledger of a folder."""
        config = self._parts.config
        return self._ledgers.setdefault(root, UndoLedger(config.data_folder / "undo", root, config.limits))

    def entry(self, tool: str) -> LedgerEntry:
        """A call at the current time; the ledger chooses its path."""
        parts, now = self._parts, self._parts.clock.now()
        return LedgerEntry(
            path=parts.workspace.root, time=now, session=parts.writer.id, process=this_process(), tool=tool, what=""
        )

    def told(self, entry: LedgerEntry, what: str) -> LedgerEntry:
        """The entry with a one-line summary of the call, without secrets."""
        return entry.replace(what=cut(one_line(self._parts.kept.text(what), 2 * _WHAT), _WHAT))

    def _tell(self, text: str) -> None:
        if not self._failing:
            self._failing = True
            self._parts.bus.warn(text)


def _told(spec: ToolSpec, given: Mapping[str, Any], clean: Callable[[str], str]) -> str:
    """The arguments that a person would type for a call: no defaults, and no undeclared parameters. Never empty."""
    known = spec.parameters.get("properties", {})
    is_open = bool(spec.parameters.get("additionalProperties"))
    typed = {
        name: value
        for name, value in given.items()
        if (name in known or is_open) and value not in (None, known.get(name, {}).get("default"))
    }
    shown = ", ".join(f"{name}={one_line(clean(str(value)), _VALUE)}" for name, value in typed.items())
    return shown or _NOTHING_GIVEN


def _told_files(files: Sequence[FileState], root: str) -> str:
    return shortened(
        [f"{state.verb} {state.path if state.root == root else f'{state.root}/{state.path}'}" for state in files]
    )
