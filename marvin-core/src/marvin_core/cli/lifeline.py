"""Ends an agent when the Marvin process that started it ends, even if that one was killed."""

from __future__ import annotations

import os
import signal
import stat
import threading

from ..api.timeouts import Timeouts

_STDIN = 0


def end_with_parent(lifeline: str, timeouts: Timeouts) -> None:
    """End this process as with SIGTERM when its standard input ends.

    Args:
        lifeline: the inode of the pipe that the parent keeps open. If standard input is not this pipe, nothing
            happens: a command of the agent started this process, with the agent's environment.
    """
    try:
        found = os.fstat(_STDIN)
    except OSError:
        return
    if stat.S_ISFIFO(found.st_mode) and str(found.st_ino) == lifeline:
        threading.Thread(target=_watch, args=(timeouts,), name="lifeline", daemon=True).start()


def _watch(timeouts: Timeouts) -> None:
    try:
        while os.read(_STDIN, 1):
            pass
    except OSError:  # a read error counts as the end
        pass
    # The second signal ends the process without cleanup; SIGKILL ends it if it handles no signals.
    for number, patience in ((signal.SIGTERM, timeouts.close), (signal.SIGTERM, timeouts.kill_limit)):
        os.kill(os.getpid(), number)
        threading.Event().wait(patience)
    os.kill(os.getpid(), signal.SIGKILL)
