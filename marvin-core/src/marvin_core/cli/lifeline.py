"""The end of an agent with the Marvin that started it, however that one ended: killed by the system as well."""

from __future__ import annotations

import os
import signal
import stat
import threading

from ..api.timeouts import Timeouts

_STDIN = 0


def end_with_parent(lifeline: str, timeouts: Timeouts) -> None:
    """Have this process end as at SIGTERM once its standard input ends.

    Args:
        lifeline: the inode of the pipe that the parent holds. Where standard input is none, or another one, this
            process is not the one that was meant, but one that a command started with the same variables.
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
    except OSError:  # it cannot be read any more, which is no better than its end
        pass
    # The second one has it leave without waiting for anything, and the last one is for what hears none.
    for number, patience in ((signal.SIGTERM, timeouts.close), (signal.SIGTERM, timeouts.kill_limit)):
        os.kill(os.getpid(), number)
        threading.Event().wait(patience)
    os.kill(os.getpid(), signal.SIGKILL)
