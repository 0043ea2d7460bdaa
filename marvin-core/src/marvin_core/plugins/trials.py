"""Loads packs in a separate process, so that none of them can end, block or fork this one."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

from ..api.errors import PluginError
from ..api.timeouts import Timeouts
from .isolation import with_problem
from .model import CORE, Loaded, Pack
from .stored import loaded_from_json, stated

# The path is set first, so that both processes find the same modules.
_START = """
import json, sys
request = json.loads(sys.stdin.readline())
sys.path[:] = request["path"]
from marvin_core.plugins.trial_process import run
run(request)
"""
_PIECE = 65_536


class NoAnswer(PluginError):
    """The process that loads packs gave no result for this one."""


def tried(packs: Sequence[Pack], timeouts: Timeouts) -> list[Loaded]:
    """Load packs in another process.

    Blocks up to the time that `timeouts` allows for each pack.

    Returns:
        One result for each, in order. A pack that fails is left out, with its error.
    """
    loaded: list[Loaded] = []
    reason = "the process that loads packs ended while it loaded this pack"
    try:
        for line in _answers(packs, timeouts):
            one = loaded_from_json(json.loads(line))
            loaded.append(one)
    except (OSError, TimeoutError) as error:
        reason = f"the process that loads packs cannot be used: {error}"
    loaded += [Loaded(pack=with_problem(pack, NoAnswer(reason))) for pack in packs[len(loaded) :]]
    # Without the core nothing works, and the other process may have failed for lack of resources.
    return [_here(one.pack) if one.pack.left_out and one.pack.distribution == CORE else one for one in loaded]


def _here(pack: Pack) -> Loaded:
    from .discovery import Loader

    return Loader().load(pack.replace(problems=(), traceback="", left_out=False))


def _answers(packs: Sequence[Pack], timeouts: Timeouts) -> Iterator[bytes]:
    """The output lines of the process. Raises `TimeoutError` if there is none in time."""
    request = {"path": sys.path, "packs": [stated(pack) for pack in packs]}
    request |= {"limit": timeouts.pack, "grace": timeouts.pack_grace}
    options = ["-P", *(["-X", "utf8"] if sys.flags.utf8_mode else [])]
    with subprocess.Popen(
        [sys.executable, *options, "-c", _START],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # no signals of our terminal
    ) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            # It stays open: when this process ends for any reason, the descendants are killed too.
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            yield from _lines(
                process.stdout.fileno(), timeouts.pack_process + 2 * (timeouts.pack + timeouts.pack_grace)
            )
        finally:
            _end(process, timeouts.kill_limit)


def _lines(descriptor: int, limit: float) -> Iterator[bytes]:
    """The received lines; raises if one takes longer than the limit, in seconds."""
    waiting = b""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        until = time.monotonic() + limit
        while True:
            if not selector.select(max(0.0, until - time.monotonic())):
                raise TimeoutError(f"it did not respond for {limit:g} s")
            piece = os.read(descriptor, _PIECE)
            if not piece:
                return
            *lines, waiting = (waiting + piece).split(b"\n")
            for line in lines:
                yield line
                until = time.monotonic() + limit


def _end(process: subprocess.Popen[bytes], limit: float) -> None:
    """Make the process kill its descendants, and wait until it has ended."""
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        process.kill()
