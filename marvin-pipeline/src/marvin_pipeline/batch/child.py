"""A Marvin process that a worker starts: it exits with the worker, and is stopped when the batch is no longer led."""

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
"""Variables of the parent process that a child must not inherit."""


def environment(without: Collection[str] = ()) -> dict[str, str]:
    """The environment of this process for a child process."""
    left_out = {*_OF_ANOTHER, *without}
    return {name: value for name, value in os.environ.items() if name not in left_out}


class Place(Record):
    """The paths of a run."""

    folder: Path
    log: Path
    """The file to which its standard error is appended."""
    summary: Path
    """The file that its standard output replaces."""
    variables: Mapping[str, str]
    lock: int
    """A descriptor that it inherits, so that the task's lock is held until it exits as well."""


class Child:
    """A run. It exits when its standard input, a pipe, is closed, which happens when the parent exits."""

    def __init__(self, words: Sequence[str], place: Place) -> None:
        """Start it. Raises `OSError` if that fails."""
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
        """Wait for its exit; returns the exit code, negative for a signal. Blocks.

        Args:
            is_over: whether it has to stop early. Called in another thread.
            poll: seconds between two such calls.
            grace: seconds that it has to stop itself.
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
        """Close the pipe, which stops the run. Only once: the descriptor may belong to another file afterwards."""
        if self._lifeline >= 0:
            descriptor, self._lifeline = self._lifeline, -1
            os.close(descriptor)
