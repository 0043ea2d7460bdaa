"""Snapshots around the commands of a prompt, so that their changes can be undone."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...api.events import CallOrigin
from ...api.record import Record
from ...api.tools import ToolSpec
from ...guard.undo.failures import SnapshotFailure
from ...guard.undo.inverses import Inverse, Span
from ...guard.undo.ledger import UNFINISHED, LedgerEntry
from ...guard.undo.snapshots import Snapshots
from ...guard.undo.trees import Change, modes_left, modes_of
from ...guard.undo.unseen import SLACK, Seen, changed_outside, moved_over, shown_names
from ...util.text import one_line, shortened
from ...util.threads import in_thread
from ..parts import SessionParts
from ..undo_commands import snapshots_of
from .recording import Recorder

_COMMAND = 60


class _Open(Record):
    """Unfinished commands: the folder before the first, and the data in the ledger until they finish."""

    snapshots: Snapshots
    seen: Seen
    span: Span
    entry: LedgerEntry
    kept: Path
    commands: Sequence[str] = ()
    ran: Sequence[tuple[int, int]] = ()
    """When each of them began and ended, in nanoseconds since the epoch."""
    between: frozenset[str] = frozenset()
    """The files that were found changed while none of them ran."""


class CommandSpans:
    """Takes one snapshot before the first of several commands and one after the last.

    The commands of a prompt are undone together, unless a tool with changes of its own was called in between.
    """

    def __init__(self, parts: SessionParts, recorder: Recorder) -> None:
        self._parts = parts
        self._recorder = recorder
        self._open: _Open | None = None
        self._commands: list[str] = []
        self._ran: list[tuple[int, int]] = []
        self._between: set[str] = set()
        self._stores: dict[Path, Snapshots] = {}
        self._failing: set[str] = set()
        self._hopeless: set[Path] = set()
        self._began = 0
        parts.progress.settle = self.settle

    async def before(self, spec: ToolSpec, values: Mapping[str, Any], origin: CallOrigin) -> None:
        """Prepare for a call that is about to run."""
        if not spec.changes or origin == "undo":
            return
        root = self._parts.workspace.root
        is_command = spec.command in spec.parameters.get("properties", ()) and "exec" in spec.access
        changes_files = is_command or spec.snapshot
        if self._open is not None and not (changes_files and self._open.span.root == str(root)):
            await self.settle()
        if changes_files:
            if self._open is None:
                await self._begin(root, spec.name)
            else:
                await self._look(self._open)
            self._began = time.time_ns()
            told = str(values.get(spec.command, "")) if is_command else f"{spec.name} {_joined(values.values())}"
            self._commands.append(one_line(told, _COMMAND))

    async def _look(self, begun: _Open) -> None:
        """Note what was changed since the last command: the next one may change it, too, and hide that."""
        span, ran = begun.span, list(self._ran)
        if ran and time.time_ns() - ran[-1][1] <= SLACK:
            return  # what has changed since counts as the command's
        try:
            names = await begun.snapshots.differing()
            self._between.update(await in_thread(lambda: changed_outside(Path(span.root), names, span.since, ran)))
        except Exception as error:  # no command fails because of it
            self._tell(error, "/undo takes what others change between two commands for changes by the commands")

    def ended(self) -> None:
        """A call has ended."""
        if self._began:
            self._ran.append((self._began, time.time_ns()))
            self._began = 0

    async def _begin(self, root: Path, tool: str) -> None:
        self._commands.clear()
        self._ran.clear()
        self._between.clear()
        snapshots = self._snapshots(root)
        if root in self._hopeless:
            return
        try:
            before = await snapshots.take()
            span = Span(
                root=str(root), before=before, since=snapshots.begun, top=str(snapshots.top), modes=snapshots.modes
            )
            entry, ledger = self._recorder.entry(tool), self._recorder.ledger(root)
            kept = await in_thread(lambda: ledger.record(entry, Inverse(span=span)))
            UNFINISHED.add(kept)
            self._recorder.made.clear()
        except Exception as error:  # no command fails because its changes cannot be recorded
            self._tell(error)
            if isinstance(error, SnapshotFailure) and error.is_lasting:
                self._hopeless.add(root)  # every command would wait for it
        else:
            self._open = _Open(snapshots=snapshots, seen=snapshots.seen, span=span, entry=entry, kept=kept)

    def _snapshots(self, root: Path) -> Snapshots:
        parts = self._parts
        if root not in self._stores:
            self._stores[root] = snapshots_of(parts, root)
        return self._stores[root]

    async def settle(self) -> None:
        """The commands have finished: write their changes to the ledger. A cancelled caller waits for it."""
        if self._open is None:
            return
        ended, self._open = self._open, None
        ended = ended.replace(commands=list(self._commands), ran=list(self._ran), between=frozenset(self._between))
        closing = asyncio.ensure_future(self._close(ended))
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            await asyncio.wait([closing])
            raise

    async def _close(self, ended: _Open) -> None:
        snapshots, span, root = ended.snapshots, ended.span, Path(ended.span.root)
        try:
            settled = await snapshots.settled(span.before, await snapshots.take(), span.since, ended.seen)
            after, changes, left = settled
            modes, chmods = modes_of(changes, span.modes), snapshots.chmods
            paths = [*(change.path for change in changes), *map(os.fsencode, chmods)]
            others = await in_thread(lambda: changed_outside(root, paths, span.since, ended.ran))
            others += sorted(ended.between.difference(others))  # also those that a command moved or removed then
            moved = await in_thread(lambda: moved_over(root, changes, span.since))
            span = span.replace(after=after, others=others, moved=moved, modes=modes, chmods=chmods)
            span = span.replace(modes_after=modes_left(changes, snapshots.modes), left=shown_names(left))
            await in_thread(lambda: self._write(ended.replace(span=span), changes))
        except Exception as error:  # no command fails because its changes cannot be recorded
            self._tell(error)
        finally:
            UNFINISHED.discard(ended.kept)

    def _write(self, ended: _Open, changes: Sequence[Change]) -> None:
        if changes or ended.span.chmods:
            named = [f"{change.verb} {change.path.decode('utf-8', 'replace')}" for change in changes]
            named += [f"changed permissions of {name}" for name in ended.span.chmods]
            entry = self._recorder.told(ended.entry, f"{'; '.join(ended.commands)}: {shortened(named)}")
            ledger = self._recorder.ledger(Path(ended.span.root))
            shared = ledger.is_shared_since(ended.kept, self._recorder.made)
            ledger.record(entry, Inverse(span=ended.span.replace(is_shared=shared)))
        with suppress(FileNotFoundError):
            ended.kept.unlink()

    def _tell(self, error: Exception, what: str = "/undo cannot undo what commands change here") -> None:
        """Report each reason once."""
        text = f"{what}: {str(error).rstrip('.')}."
        if text not in self._failing:
            self._failing.add(text)
            self._parts.bus.warn(text)


def _joined(values: Iterable[Any]) -> str:
    """The words in the arguments of a call."""
    several = (value if isinstance(value, list | tuple) else [value] for value in values)
    return " ".join(word for words in several for word in words if isinstance(word, str))
