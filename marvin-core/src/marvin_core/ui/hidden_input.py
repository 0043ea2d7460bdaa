"""Reads input that must not appear on the screen."""

from __future__ import annotations

import termios
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_echo(descriptor: int) -> Iterator[None]:
    """Hide typed input while the context lasts. If this is not a terminal, nothing is shown anyway."""
    try:
        before = termios.tcgetattr(descriptor)
    except termios.error:
        yield
        return
    hidden = [*before]
    hidden[3] &= ~termios.ECHO
    try:
        termios.tcsetattr(descriptor, termios.TCSAFLUSH, hidden)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSAFLUSH, before)
