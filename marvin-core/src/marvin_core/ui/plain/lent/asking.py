"""Queries the terminal itself: its answer arrives among the keys pressed meanwhile."""

from __future__ import annotations

import os
import re
import select
import termios
import time
import tty

from ....util.threads import in_thread

_PATIENCE = 3.0
"""Seconds to wait for an answer, also over a slow line; every terminal answers some queries."""
_MOST = 65_536


async def answer_of_terminal(descriptor: int, question: str, last: re.Pattern[str]) -> str:
    """The input from the terminal after a query, until it contains `last`, or no more arrives.

    Args:
        descriptor: the terminal, which no other code reads meanwhile.
    """
    return await in_thread(lambda: _asked(descriptor, question, last))


def _asked(descriptor: int, question: str, last: re.Pattern[str]) -> str:
    try:
        before = termios.tcgetattr(descriptor)
        tty.setraw(descriptor, termios.TCSANOW)
        try:
            os.write(descriptor, question.encode())
            return _heard(descriptor, last)
        finally:
            termios.tcsetattr(descriptor, termios.TCSANOW, before)
    except (OSError, termios.error):  # the terminal is gone
        return ""


def _heard(descriptor: int, last: re.Pattern[str]) -> str:
    heard, deadline = "", time.monotonic() + _PATIENCE
    while len(heard) < _MOST and last.search(heard) is None:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            break
        piece = os.read(descriptor, 1_024)
        if not piece:
            break
        heard += piece.decode("utf-8", "replace")
    return heard
