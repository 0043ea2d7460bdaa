"""A Marvin that a worker starts: it ends with the worker, however that one ends, and is ended where nobody leads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from marvin_core import Record

_OF_ANOTHER = ("PYTHONPATH", "MARVIN_LIFELINE", "MARVIN_LEDGER", "MARVIN_MAX_COST")
"""Variables that are for whoever started this process, and not for what it starts."""


def environment(without: Collection[str] = ()) -> dict[str, str]:
    """The environment of this process, for a program that works for it. It is handed on, and nothing of it is read."""
    left_out = {*_OF_ANOTHER, *without}
    return {name: value for name, value in os.environ.items() if name not in left_out}


class Place(Record):
    """Where a run works, and what it has."""

    folder: Path
    log: Path
    """What gets its standard error, behind what is there."""
    summary: Path
    """What gets its standard output, in the place of what was there."""
    variables: Mapping[str, str]
    lock: int
    """A descriptor that it inherits: the lock of the task is held until it ends, too."""


class Child:
    """One run. Its standard input is a pipe, whose end it takes for the end of whoever started it."""

    def __init__(self, words: Sequence[str], place: Place) -> None:
        """Start it. Raises `OSError` where that cannot be done."""
        read, self._lifeline = os.pipe()
        try:
            with open(place.log, "ab") as log, open(place.summary, "wb") as summary:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "marvin_core", *words],
                    cwd=place.folder,
                    env={**environment(), **place.variables, "MARVIN_LIFELINE": str(os.fstat(read).st_ino)},
                    stdin=read,
                    stdout=summary,
                    stderr=log,
                    start_new_session=True,
                    pass_fds=(place.lock,),
                )
        except BaseException:
            self._let_go()
            raise
        finally:
            os.close(read)

    def wait(self, is_over: Callable[[], bool], poll: float, grace: float) -> int:
        """Wait for its end; returns the exit code, negative for a signal. Blocks.

        Args:
            is_over: told whether it is to end before its time. It is asked in another thread.
            poll: seconds between two such questions.
            grace: seconds that it has to end itself.
        """
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(poll):
                if is_over():
                    self._let_go()
                    if not ended.wait(grace):
                        with suppress(OSError):
                            os.killpg(self._process.pid, signal.SIGKILL)
                    return

        watcher = threading.Thread(target=watch, name="end of a run", daemon=True)
        watcher.start()
        try:
            return self._process.wait()
        finally:
            ended.set()
            watcher.join()
            self._let_go()

    def _let_go(self) -> None:
        """Close the pipe, by which the run ends. It is done once: the number may be that of another file by then."""
        if self._lifeline >= 0:
            descriptor, self._lifeline = self._lifeline, -1
            os.close(descriptor)
