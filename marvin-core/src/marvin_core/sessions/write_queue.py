"""The writes of one session file, in order: at once if its lock is free, otherwise in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from ..api.errors import MarvinError
from ..util.state_files import LockTimeout
from ..util.threads import in_thread
from .records import LineTooLong
from .transcript import Transcript

Write: TypeAlias = Callable[[Transcript], None]


class WriteQueue:
    """Writes to a transcript without ever blocking an event loop.

    A failed write stays in the queue, and is retried before the next one. `warn` is called once until a write succeeds.
    It is called when a write is added or the end is awaited, never from a thread.
    """

    def __init__(self, transcript: Transcript, warn: Callable[[str], None]) -> None:
        self._transcript = transcript
        self._warn = warn
        self._waiting: deque[Write] = deque()
        self._using = threading.Lock()
        """Held while the transcript is used."""
        self._thread: threading.Thread | None = None
        self._problems: deque[str] = deque()
        self._told = False
        self._given_up = False
        self._closing = False
        self._soon = False
        """Whether the event loop is about to write the queue."""

    @property
    def transcript(self) -> Transcript:
        """The transcript with all writes that were added, as far as its lock is free."""
        self.catch_up()
        return self._transcript

    @property
    def idle(self) -> bool:
        """Whether everything is written, and no write is running."""
        return not self._waiting and not self._using.locked()

    @property
    def lacks(self) -> bool:
        """Whether there is an unwritten record without a warning so far."""
        return bool(self._waiting) and not self._given_up

    def add(self, write: Write, *, within: float | None = None) -> None:
        """Queue a write after the earlier ones, and perform it now if the lock of the file is free.

        Args:
            within: the seconds for which it may wait for another write. With 0 it is performed when the event loop is
                next free, so that a request which is ready goes out first.
        """
        self._waiting.append(write)
        loop = _loop() if within is not None else None
        if loop is None or within is None:
            self._advance()
            return
        self._soon = True
        if within:
            loop.call_later(within, self.catch_up)
        else:
            loop.call_soon(self.catch_up)

    def catch_up(self) -> None:
        """Perform the writes that wait for later ones."""
        if self._soon:
            self._advance()

    def _advance(self) -> None:
        self._soon = False
        if self._drain(patient=_loop() is None):
            self._start_thread()
        self._report()

    async def settle(self) -> None:
        """Wait until everything is written or has failed; not longer than a lock may take."""
        self.catch_up()
        thread = self._thread
        if thread is not None and thread.is_alive():
            await in_thread(thread.join)
        elif not self.idle:
            await in_thread(self._wait)
        self._report()

    async def sync(self, then: Callable[[], None]) -> None:
        """Sync the file to disk, then do something else with it. Raises OSError."""
        await in_thread(lambda: self._sync(then))

    def rescue(self) -> None:
        """Write the queue and sync the file; blocks, so it runs in a thread while others add writes."""
        self._drain(patient=True)
        self._sync(lambda: None)

    def close(self) -> None:
        """Close the file after the running write; no more writes may follow."""
        self.catch_up()
        self._closing = True
        if self._using.acquire(blocking=False):
            self._leave()

    def _wait(self) -> None:
        self._using.acquire()
        self._leave()
        self._drain(patient=True)

    def _sync(self, then: Callable[[], None]) -> None:
        self._using.acquire()
        try:
            self._transcript.sync()
            then()
        finally:
            self._leave()
        self._drain(patient=True)  # writes added meanwhile found the file in use

    def _start_thread(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=lambda: self._drain(patient=True), daemon=True)
            self._thread.start()

    def _drain(self, patient: bool) -> bool:
        """Write the queue; returns whether some of it remains because another process holds the file.

        If another thread is writing, that thread continues with the added writes.
        """
        while self._waiting:
            if not self._using.acquire(blocking=patient):
                return False
            try:
                self._write_all(patient)
            except LockTimeout as error:
                if patient:
                    self._fail(f"{error} Unsaved records are kept until then.")
                return True
            except MarvinError as error:
                self._transcript.close()
                self._fail(str(error))
                self._given_up = True
                return False
            finally:
                self._leave()
        return False

    def _write_all(self, patient: bool) -> None:
        self._transcript.patient = patient
        while self._waiting:
            try:
                self._waiting[0](self._transcript)
            except LineTooLong as error:
                self._problems.append(str(error))
            except (TypeError, ValueError, RecursionError) as error:  # it could never be written
                self._problems.append(f"A part of the conversation cannot be saved: {error}.")
            self._waiting.popleft()
        self._told = self._given_up = False

    def _leave(self) -> None:
        if self._closing and not self._waiting:
            self._transcript.close()
        self._using.release()

    def _fail(self, problem: str) -> None:
        if not self._told:
            self._told = True
            self._problems.append(problem)

    def _report(self) -> None:
        while self._problems:
            self._warn(self._problems.popleft())


def _loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
