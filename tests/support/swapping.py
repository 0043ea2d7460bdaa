"""A process that changes what names lead to as fast as it can, while something is done with one of them.

It pauses now and then, and each time longer, so that whatever is done succeeds in between, also on a slow machine.
"""

from __future__ import annotations

import errno
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

_SWAPPER = """
import ctypes, os, sys, time
exchange = ctypes.CDLL(None, use_errno=True).renameat2
first, second = map(os.fsencode, sys.argv[1:3])
passed = int(sys.argv[3])
print("ready", flush=True)
pause = 0.02
while True:
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        for name in range(2):  # there and back: pauses are at peace
            if exchange(-100, first, -100, second, 2) and ctypes.get_errno() != passed:
                raise OSError(ctypes.get_errno(), "the exchange failed")
    time.sleep(pause)
    pause = min(1.5 * pause, 10)
"""
_MORE = 60


@contextmanager
def running(program: str, *arguments: str | Path) -> Iterator[None]:
    """Run a Python program beside the block, from its first line of output on; it never ends by itself."""
    argv = [sys.executable, "-c", program, *map(str, arguments)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as swapper:
        assert swapper.stdout is not None
        swapper.stdout.readline()
        try:
            yield
        finally:
            swapper.kill()
            assert swapper.wait() == -9, "the swapper stopped by itself"


def swapped(first: Path, second: Path, *, may_be_missing: bool = False) -> AbstractContextManager[None]:
    """Have two names change places all the time, each in one step (RENAME_EXCHANGE of Linux).

    Args:
        may_be_missing: what is tried removes one of them now and then.
    """
    return running(_SWAPPER, first, second, str(errno.ENOENT if may_be_missing else -1))


def lasting(seconds: float, is_enough: Callable[[], object]) -> Iterator[int]:
    """Numbers for some seconds, and until there is enough, for a minute more at most: machines differ in speed."""
    begun, number = time.monotonic(), 0
    while (spent := time.monotonic() - begun) < seconds or (spent < seconds + _MORE and not is_enough()):
        yield number
        number += 1
