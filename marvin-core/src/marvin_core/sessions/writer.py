"""Keeping a session on disk while it runs; a disk that fails costs the file, never the conversation."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..api.errors import MarvinError, SessionError
from ..api.messages import Message
from ..api.timeouts import Timeouts
from ..util.threads import in_thread
from .records import Header
from .transcript import Transcript, new_session_id

if TYPE_CHECKING:
    from .reader import LoadedSession

_TICK = 1_000_000
"""Nanoseconds that every file system tells apart."""


class SessionWriter:
    """Writes the messages of one session.

    Where that is not possible `warn` is told once, and what could not be written is written as soon as it can be.
    """

    def __init__(self, folder: Path, timeouts: Timeouts, warn: Callable[[str], None]) -> None:
        self.folder = folder
        self._timeouts = timeouts
        self._warn = warn
        self._transcript: Transcript | None = None
        self._state = "{}"
        self._state_saved = True
        self._waiting: deque[Callable[[Transcript], None]] = deque()
        self.id = ""

    @property
    def position(self) -> tuple[Path, str] | None:
        """The file, and the record in it that the next one will follow; None where nothing is being saved."""
        return (self._transcript.path, self._transcript.leaf) if self._transcript is not None else None

    def begin(self, now: float, title: str, provider: str, model: str, working_dir: str, thinking: str = "off") -> None:
        """Give a new session its id; its file is made with the first message."""
        identity = new_session_id(now, title)
        header = Header(
            id=identity, title=title[:80], time=now, provider=provider, model=model, working_dir=working_dir
        )
        self._start(header.replace(thinking=thinking))

    def _start(self, header: Header) -> None:
        self.close()
        self._waiting.clear()
        self.id = header.id
        self._state, self._state_saved = "{}", True
        self._transcript = Transcript(self.folder / f"{self.id}.jsonl", header, self._timeouts)

    def resume(self, path: Path, loaded: LoadedSession) -> None:
        """Go on with a session that was loaded."""
        self.close()
        self._waiting.clear()
        self.id = loaded.header.id
        self._state, self._state_saved = json.dumps(loaded.state), True
        self._transcript = Transcript.resumed(path, loaded, self._timeouts)

    def fork(self, now: float, messages: Sequence[Message]) -> None:
        """Go on in a new file that begins with these messages; the old one stays as it is.

        Raises:
            SessionError: where this session is not being saved.
        """
        if self._transcript is None:
            raise SessionError("This session is not on disk, so it cannot be forked. Type a request first.")
        header, state = self._transcript.header, self._state
        identity = new_session_id(now, header.title)
        self._start(header.replace(id=identity, time=now, parent=header.id))
        self._guarded(lambda transcript: transcript.append(*messages))
        self._save_state(state)

    def clear(self) -> None:
        """Stop writing to this session; the next `begin` makes another one."""
        self.close()
        self._waiting.clear()
        self._transcript = None
        self.id = ""

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Write another session while the context lasts; then this one goes on from where it is."""
        kept = self._transcript, self._waiting, self.id, self._state, self._state_saved
        self._transcript, self._waiting, self.id, self._state, self._state_saved = None, deque(), "", "{}", True
        try:
            yield
        finally:
            self.close()
            self._transcript, self._waiting, self.id, self._state, self._state_saved = kept

    def step_back(self) -> None:
        """Go back to before the last message; what comes next becomes another branch of the file."""
        if self._transcript is not None:
            self._guarded(Transcript.step_back)
            self._state_saved = self._state == "{}"  # it may stand in the branch that was left

    def save(self, message: Message) -> None:
        """Add a message."""
        self._guarded(lambda transcript: transcript.append(message))

    def compacted(self, messages: Sequence[Message]) -> None:
        """From here on, these messages stand for all that was said before, which stays in the file."""
        state = json.loads(self._state)
        self._guarded(lambda transcript: transcript.append_compaction(messages, state))

    def changed(self, **fields: str) -> None:
        """Note that the session goes on with another `provider`, `model` or `thinking` level."""
        self._guarded(lambda transcript: transcript.change_header(**fields))

    async def flush(self, state: Mapping[str, Any]) -> None:
        """Have everything on disk at the end of a turn, with what packs keep in the session."""
        try:
            text = json.dumps(state, default=str)
        except (TypeError, ValueError) as error:  # a pack keeps what JSON cannot hold, such as a key that is no text
            self._warn(f"What packs keep in this session was not saved: {error}.")
            text = self._state
        self._save_state(text)
        transcript = self._transcript
        if transcript is not None:
            try:
                await in_thread(lambda: _have_on_disk(transcript))
            except OSError as error:
                self._warn(f"The session may not be on disk yet: {error.strerror}.")

    def _save_state(self, text: str) -> None:
        if text != self._state or not self._state_saved:
            self._state, self._state_saved = text, True
            self._guarded(lambda transcript: transcript.append_state(json.loads(text)))

    def close(self) -> None:
        """Close the file."""
        if self._transcript is not None:
            self._transcript.close()

    def _guarded(self, write: Callable[[Transcript], None]) -> None:
        """Write, after what could not be written so far; what fails now is tried again with the next."""
        if self._transcript is None:
            return
        told = bool(self._waiting)
        self._waiting.append(write)
        try:
            while self._waiting:
                self._waiting[0](self._transcript)
                self._waiting.popleft()
        except MarvinError as error:
            self._transcript.close()
            if not told:
                self._warn(str(error))


def _have_on_disk(transcript: Transcript) -> None:
    """Sync the file, and have it count as the one written last: since then the clock may have been set back."""
    from .store import sessions

    transcript.sync()
    newest = next(iter(sessions(transcript.path.parent)), transcript.path)
    if newest != transcript.path:
        ahead = newest.stat().st_mtime_ns + _TICK
        os.utime(transcript.path, ns=(ahead, ahead))
