"""Reads standard input line by line, as UTF-8 in any locale."""

from __future__ import annotations

import asyncio
import io
import os
import select
import signal
import sys


def wait_for_line() -> None:
    """Wait until a line was typed or a signal arrived. A signal right before a blocking read would not interrupt the
    read.
    """
    own, wake = os.pipe()
    os.set_blocking(wake, False)
    before = signal.set_wakeup_fd(wake)
    try:
        while sys.stdin not in select.select([sys.stdin, own], [], [])[0]:
            os.read(own, 1)  # its handler runs now, and may raise
    finally:
        signal.set_wakeup_fd(before)
        os.close(own)
        os.close(wake)


async def line_typed() -> None:
    """Wait until a line was typed, without blocking the event loop."""
    loop, typed = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin, typed.set)
    try:
        await typed.wait()
    finally:
        loop.remove_reader(sys.stdin)


def speak_utf8() -> None:
    """Use UTF-8 in any locale; other bytes are preserved, and detected line by line."""
    for stream, errors in ((sys.stdin, "surrogateescape"), (sys.stdout, "replace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)
