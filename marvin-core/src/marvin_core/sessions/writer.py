"""Saves a session while it runs; a failing disk affects the file, never the conversation."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..api.errors import SessionError
from ..api.messages import Message
from ..api.timeouts import Timeouts
from ..guard.kept_texts import KeptTexts
from .records import LARGEST_LINE, Header
from .transcript import Transcript, new_session_id
from .write_queue import Write, WriteQueue

if TYPE_CHECKING:
    from .reader import LoadedSession

Bill: TypeAlias = Callable[[float], Awaitable[float]]
"""Takes USD; returns the total cost of the session once it is written."""
_TICK = 1_000_000
"""Nanoseconds that every file system can distinguish."""


class SessionWriter:
    """Writes the messages of one session.

    If that fails, `warn` is called once, and the messages are written as soon as possible. Only `flush` and `finish`
    wait for another process that holds the file, and they do so in a thread.
    """

    def __init__(
        self,
        folder: Path,
        timeouts: Timeouts,
        warn: Callable[[str], None],
        largest: int = LARGEST_LINE,
        kept: KeptTexts | None = None,
    ) -> None:
        self.folder = folder
        self._timeouts = timeouts
        self._warn = warn
        self._largest = largest
        self._kept = kept or KeptTexts()
        self._queue: WriteQueue | None = None
        self._left: list[WriteQueue] = []
        """The writers of earlier sessions that have not finished."""
        self._state = "{}"
        self._state_saved = True
        self._times: list[float] = []
        """The times of the newest messages of the conversation, up to the last one; 0 if unknown."""
        self.id = ""
        self.depth = 0
        """The nesting depth of the agent of these sessions."""

    @property
    def position(self) -> tuple[Path, str] | None:
        """The file, and the parent of its next record; None if nothing is saved."""
        return (self._queue.transcript.path, self._queue.transcript.leaf) if self._queue is not None else None

    @property
    def cost(self) -> float:
        """The known cost of the session so far, in USD."""
        return self._queue.transcript.header.spent if self._queue is not None else 0.0

    def begin(self, now: float, title: str, provider: str, model: str, working_dir: str, thinking: str = "off") -> None:
        """Give a new session its id, and create its file, which is removed again if no message follows."""
        title = self._kept.text(title)
        identity = new_session_id(now, title)
        header = Header(
            id=identity, title=title[:80], time=now, provider=provider, model=model, working_dir=working_dir
        )
        self._start(header.replace(thinking=thinking, depth=self.depth))

    def _start(self, header: Header) -> None:
        wanted = header.id
        while True:
            path = self.folder / f"{header.id}.jsonl"
            transcript = Transcript(path, header, self._timeouts, self._largest)
            if transcript.claim():
                break
            header = header.replace(id=f"{wanted}-{os.urandom(2).hex()}")  # another run began in this millisecond
        self._go_over_to(transcript)
        self._state, self._state_saved = "{}", True
        self._times = []

    def _go_over_to(self, transcript: Transcript) -> None:
        self.close()
        self.id = transcript.header.id
        self._queue = WriteQueue(transcript, self._warn)

    def resume(self, path: Path, loaded: LoadedSession) -> None:
        """Continue a loaded session."""
        self._go_over_to(Transcript.resumed(path, loaded, self._timeouts, self._largest))
        self._times = [*loaded.times]
        self._state, self._state_saved = json.dumps(loaded.state), True

    def fork(self, now: float, messages: Sequence[Message]) -> None:
        """Continue in a new file that begins with these messages at their times; the old file is not changed.

        Raises:
            SessionError: if this session is not saved.
        """
        if self._queue is None:
            raise SessionError("This session is not on disk, so it cannot be forked. Type a request first.")
        header, state = self._queue.transcript.header, self._state
        known = self._times[max(0, len(self._times) - len(messages)) :]
        times = [0.0] * (len(messages) - len(known)) + known
        identity = new_session_id(now, header.title)
        self._start(header.replace(id=identity, time=now, parent=header.id))
        kept = [*map(self._kept.message, messages)]
        self._write(lambda transcript: transcript.append_earlier(kept, times))
        self._times = times
        self._save_state(state)

    def clear(self) -> None:
        """Stop writing to this session; the next `begin` creates another one."""
        self.close()
        self._queue = None
        self.id = ""

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Write another session while the context lasts; then this one continues."""
        kept = self._queue, self.id, self._state, self._state_saved, self._times
        self._queue, self.id, self._state, self._state_saved, self._times = None, "", "{}", True, []
        try:
            yield
        finally:
            self.close()
            self._queue, self.id, self._state, self._state_saved, self._times = kept

    def step_back(self) -> None:
        """Go back to before the last message; what follows becomes another branch of the file."""
        if self._queue is not None:
            self._write(Transcript.step_back)
            del self._times[-1:]
            self._state_saved = self._state == "{}"  # the time may be in the previous branch

    def save(self, message: Message, origin: str = "", *, within: float | None = None) -> None:
        """Add a message; `origin` is its sender if it stands for the user but does not come from the user.

        Args:
            within: the seconds for which it may wait for the next one.
        """
        kept, now = self._kept.message(message), time.time()  # it may be written later
        self._times.append(now)
        if message.role == "tool":  # the next request need not wait; outputs that are lost count as interrupted
            within = 0.0
        self._write(lambda transcript: transcript.append(kept, at=now, origin=origin), within=within)

    def compacted(self, messages: Sequence[Message]) -> None:
        """Replace everything before by these messages; the file keeps the earlier ones."""
        state, kept = json.loads(self._state), [*map(self._kept.message, messages)]
        self._times = [0.0] * len(kept)
        self._write(lambda transcript: transcript.append_compaction(kept, state))

    def changed(self, **fields: str) -> None:
        """Record that the session continues with another `provider`, `model` or `thinking` level."""
        self._write(lambda transcript: transcript.change_header(**fields))

    def bill(self) -> Bill:
        """A function that adds cost to the present session, even after another one has replaced it."""
        queue = self._queue

        async def note(dollars: float) -> float:
            if queue is None:
                return 0.0
            if dollars:
                queue.add(lambda transcript: transcript.add_spent(dollars))
                await queue.settle()
            return queue.transcript.header.spent

        return note

    def spent(self, dollars: float) -> None:
        """Add to the cost of the session."""
        self._write(lambda transcript: transcript.add_spent(dollars))

    def catch_up(self) -> None:
        """Write the messages that wait for later ones, since another program may read the file now."""
        if self._queue is not None:
            self._queue.catch_up()

    async def flush(self, state: Mapping[str, Any]) -> None:
        """Save everything at the end of a turn, including the session state of packs."""
        try:
            text = self._kept.text(json.dumps(state, default=str))
        except (TypeError, ValueError) as error:  # a pack's state is not JSON, such as a key that is not text
            self._warn(f"The data of packs in this session could not be saved: {error}.")
            text = self._state
        self._save_state(text)
        queue = self._queue
        if queue is not None:
            await queue.settle()
            path = queue.transcript.path
            try:
                await queue.sync(lambda: _count_as_newest(path))
            except OSError as error:
                self._warn(f"The session may not be on disk yet: {error.strerror}.")

    def rescue(self) -> None:
        """Write the pending messages when the event loop no longer runs; blocks. Raises OSError."""
        if self._queue is not None:
            self._queue.rescue()

    async def finish(self) -> None:
        """Wait for pending writes, including those of earlier sessions, and close the files."""
        queues = list(filter(None, (*self._left, self._queue)))
        try:
            for queue in queues:
                await queue.settle()
        finally:
            for queue in queues:
                if queue.lacks:
                    self._warn(
                        f"{queue.transcript.path} does not contain the end of the conversation: it could not "
                        "be written."
                    )
            self._left.clear()
            self.close()

    def _save_state(self, text: str) -> None:
        if text != self._state or not self._state_saved:
            self._state, self._state_saved = text, True
            self._write(lambda transcript: transcript.append_state(json.loads(text)))

    def close(self) -> None:
        """Close the file after its pending writes."""
        if self._queue is not None:
            if not self._queue.idle:
                self._left.append(self._queue)
            self._queue.close()

    def _write(self, write: Write, *, within: float | None = None) -> None:
        if self._queue is not None:
            self._queue.add(write, within=within)


def _count_as_newest(path: Path) -> None:
    """Make a file the most recently written one: the clock may have been set back since."""
    from .store import sessions

    newest = next(iter(sessions(path.parent)), path)
    if newest != path:
        ahead = newest.stat().st_mtime_ns + _TICK
        os.utime(path, ns=(ahead, ahead))
