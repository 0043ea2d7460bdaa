"""Reading what nobody who looks at the screen may see."""

from __future__ import annotations

import termios
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_echo(descriptor: int) -> Iterator[None]:
    """Show nothing of what is typed while the context lasts; where this is no terminal, nothing is shown anyway."""
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
