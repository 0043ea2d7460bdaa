"""Undo of calls, newest first; files that were changed since then are left unchanged, and reported."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, Protocol

from ..api.controls import UndoEntry
from ..api.errors import FileChanged, MarvinError
from ..api.events import CallOrigin
from ..api.messages import Call, ToolOutput
from ..api.tool_context import FileWrite
from ..guard.undo.changes import FileState, content_of
from ..guard.undo.ledger import NOT_LISTED, Claim, LedgerEntry, NeverTakenBack, UndoLedger
from ..kit.files.diffs import unified_diff
from ..util.text import cut, shortened
from ..util.threads import in_thread
from .parts import SessionParts

_COMPARED = 1_000_000
"""The maximum size of a file, as it was left and as it is, for a diff, in bytes."""
_WHOLE_DIFF = 40_000
"""The maximum length of the diff of a whole session, in characters."""
_DIFF = 4_000
"""The maximum length of a shown diff, in characters."""


class CallsByHand(Protocol):
    """Runs calls that a person makes."""

    async def by_hand(self, name: str, arguments: Mapping[str, Any], origin: CallOrigin) -> ToolOutput:
        """Run one call and return its result."""
        ...


class Undo:
    """Undoes calls of a session; `dispatcher` runs undo calls."""

    def __init__(self, parts: SessionParts, dispatcher: Callable[[], CallsByHand]) -> None:
        self._parts = parts
        self._dispatcher = dispatcher

    async def listed(self, most: int) -> Sequence[UndoEntry]:
        """The calls in the working directory that can be undone, newest first."""
        found = await in_thread(lambda: self._entries(most))
        return [UndoEntry(tool=entry.tool, what=entry.what, time=entry.time, session=entry.session) for entry in found]

    def _ledger(self) -> UndoLedger:
        config = self._parts.config
        return UndoLedger(config.data_folder / "undo", self._parts.workspace.root, config.limits)

    def _entries(self, most: int) -> Sequence[LedgerEntry]:
        """The newest calls; in a chat, without those of another Marvin that is still running in the same folder."""
        attended = self._parts.setup.asker is not None
        return list(islice((one for one in self._ledger().entries() if not (attended and one.is_of_another)), most))

    async def take_back(self, count: int) -> Sequence[str]:
        """Undo the newest calls, at most `count`; returns a line for each.

        Raises:
            MarvinError: a call cannot be undone; the text says what was undone before that one.
        """
        return await self._all_of(lambda: self._entries(count))

    async def take_back_since(self, time: float) -> Sequence[str]:
        """Undo the calls of this session since a time. Raises as `take_back`."""
        this = self._parts.writer.id

        def found() -> Sequence[LedgerEntry]:
            # Those of other sessions are not in the order of their times: long commands are stored when they end.
            own = (one for one in self._ledger().entries() if one.session == this)
            return list(takewhile(lambda one: one.time >= time, own))

        return await self._all_of(found)

    async def difference(self) -> str:
        """The changes of this session: a diff of its files, from before the session to now."""
        session = self._parts.writer.id

        def compared() -> str:
            first: dict[tuple[str, str], FileState] = {}
            others: list[str] = []
            for entry, inverse in self._ledger().inverses_of(session):
                # The newest comes first, so that the oldest stays.
                first.update({(state.root, state.path): state for state in inverse.files})
                others += [] if inverse.files else [f"Also changed: {told(entry)}"]
            return "\n".join(filter(None, [*map(self._since, first.values()), *reversed(others)]))

        return cut(await in_thread(compared), _WHOLE_DIFF) if session else ""

    def _since(self, state: FileState) -> str:
        """The diff of a file from before the session to now; empty if there is none."""
        if state.lacks:
            return f"{state.path} was changed; no difference can be shown: {state.lacks}"
        now, before = self._now(state, _COMPARED), state.before
        if now == before:
            return ""
        if len(now or b"") + len(before or b"") > _COMPARED:
            return f"{state.path} was {state.verb}; it is too large to show a difference."
        try:
            return unified_diff(state.path, (before or b"").decode(), (now or b"").decode()).rstrip("\n")
        except UnicodeDecodeError:
            return f"{state.path} was {state.verb}; it is not text."

    async def _all_of(self, entries: Callable[[], Sequence[LedgerEntry]]) -> Sequence[str]:
        if self._parts.config.read_only:
            raise MarvinError("This agent is read-only (MARVIN_READONLY), so it cannot undo anything.")
        done: list[str] = []
        for entry in await in_thread(entries):
            try:
                claim = await in_thread(lambda entry=entry: self._ledger().claim(entry))  # type: ignore[misc]
                if claim is None:
                    continue  # another Marvin is undoing it
                left = await self._take(entry, claim)
            except (MarvinError, OSError, ValueError) as error:
                before = "".join(f"Undone: {line}\n" for line in done)
                text = f"{before}Not undone: {told(entry)}. {error}"
                raise MarvinError(self._parts.bus.clean(text)) from error
            stays = f". Left as they are, because it is unknown what the commands did to them: {left}" if left else ""
            done.append(self._parts.bus.clean(told(entry) + stays))
        if done and self._parts.conversation.messages:
            self._parts.inbox.send(f"[The user undid: {'; '.join(done)}]", "marvin")
        return done

    async def _take(self, entry: LedgerEntry, claim: Claim) -> str:
        """Undo a call; returns the names of the files that commands seem to have created, and that stay."""
        try:
            inverse = await in_thread(claim.inverse)
            if inverse.call is not None:
                await self._call(inverse.call)
            elif inverse.span is not None:
                from .undo_commands import put_back

                await put_back(self._parts, entry, inverse.span, claim)
            else:
                await in_thread(lambda: self._put_back(inverse.files))
        except BaseException as error:
            if isinstance(error, ValueError):
                claim.done()
                raise ValueError(f"The stored copy cannot be used ({error}), so it was removed.") from error
            if isinstance(error, NeverTakenBack):
                claim.done()  # it would block the undo of all earlier calls
            else:
                claim.give_back()
            raise
        claim.done()
        return inverse.span.left if inverse.span is not None else ""

    async def _call(self, call: Call) -> None:
        output = await self._dispatcher().by_hand(call.name, call.arguments, "undo")
        text = output.text.removeprefix("Error: ")
        if output.is_final:
            raise NeverTakenBack(f"{text}\n{NOT_LISTED}")
        if output.is_error:
            raise MarvinError(text)

    def _put_back(self, files: Sequence[FileState]) -> None:
        """Restore files: all of them, or none if one was changed since the call."""
        missing = [f"{state.path}: {state.lacks}" for state in files if state.lacks]
        if missing:
            raise NeverTakenBack(f"It cannot be undone: {'; '.join(missing)}. {NOT_LISTED}")
        linked = [state.path for state in files if _is_behind_a_link(state)]
        if linked:
            raise MarvinError(
                f"{', '.join(linked)} was replaced by a link. Remove the link, or undo the change by hand."
            )
        changed = [state for state in files if self._now(state) not in (state.before, state.after)]
        if changed:
            diffs = "\n".join(self._difference(state) for state in changed)
            raise MarvinError(
                f"These files have changed since then. Undo the later change first, or restore them by hand:\n{diffs}"
            )
        done: list[str] = []
        for state in files:
            try:
                self._restore(state)
            except MarvinError as error:
                restored = f"Restored before: {shortened(done)}." if done else "No file was restored."
                raise MarvinError(f"{error}\n{restored}") from error
            done.append(state.path)

    def _restore(self, state: FileState) -> None:
        """Restore a file, unless another program changes it in that moment."""
        paths, status = self._parts.workspace.paths_of(Path(state.root)), None
        with ExitStack() as stack:
            if paths.exists(state.path):
                status = os.fstat(stack.enter_context(paths.open(state.path)).fileno())
            now = self._now(state)
            if now == state.before:
                return
            change = FileWrite(
                path=state.path,
                data=state.before,
                expected=status,
                content=now,
                create_only=status is None,
                mode=state.mode,
            )
            with suppress(FileChanged):
                if now == state.after:
                    paths.write_together([change])
                    return
        raise MarvinError(f"{state.path} was changed at the same moment, so it stays as it is.")

    def _now(self, state: FileState, more: int = 1) -> bytes | None:
        """The current file; of one that has grown since, only so many bytes `more` than it had."""
        most = max(len(state.before or b""), len(state.after or b"")) + more
        return content_of(self._parts.workspace.paths_of(Path(state.root)), state.path, most)

    def _difference(self, state: FileState) -> str:
        now = self._now(state, _COMPARED)
        if now is None:
            return f"{state.path} was removed."
        if state.after is None:
            return f"{state.path} was restored."
        if len(now) + len(state.after) > _COMPARED:
            return f"{state.path} is too large to show the difference; it had {len(state.after):,} bytes."
        try:
            return cut(unified_diff(state.path, state.after.decode(), now.decode()), _DIFF)
        except UnicodeDecodeError:
            return f"{state.path} is not text; it has {len(now):,} bytes, and had {len(state.after):,}."


def _is_behind_a_link(state: FileState) -> bool:
    """Whether the path of a file leads to another file now, without a change by the call."""
    place = os.path.join(state.root, state.path)
    return os.path.realpath(place) != place


def told(entry: LedgerEntry) -> str:
    """A call in one line."""
    return f"{entry.tool}: {entry.what}" if entry.what else entry.tool
