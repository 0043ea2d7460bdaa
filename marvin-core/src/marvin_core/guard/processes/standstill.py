"""Stops the time-outs of programs and calls while a person is asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .child import Child
    from .surroundings import Stoppable


class Standstill:
    """The programs that run, and the clocks of the calls that wait for them."""

    def __init__(self) -> None:
        self._children: set[Child] = set()
        self._clocks: list[Stoppable] = []

    @contextmanager
    def counted(self, clock: Stoppable) -> Iterator[None]:
        """Have a clock stand still with those of the programs, as long as the context lasts."""
        self._clocks.append(clock)
        try:
            yield
        finally:
            self._clocks.remove(clock)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Have no time pass for what runs now: a person is asked for its sake, and nobody knows for which."""
        with ExitStack() as stack:
            for clock in (*self._children, *self._clocks):
                stack.enter_context(clock.stopped())
            yield
