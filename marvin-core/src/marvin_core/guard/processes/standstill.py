"""Pauses the time-outs of programs and calls while a person is asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .child import Child
    from .surroundings import Stoppable


class Standstill:
    """The running programs, and the clocks of the calls that wait for them."""

    def __init__(self) -> None:
        self._children: set[Child] = set()
        self._clocks: list[Stoppable] = []

    @contextmanager
    def counted(self, clock: Stoppable) -> Iterator[None]:
        """Pause a clock together with those of the programs, while the context lasts."""
        self._clocks.append(clock)
        try:
            yield
        finally:
            self._clocks.remove(clock)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Pause all current time-outs: a person is asked for one of the calls, and it is unknown for which."""
        with ExitStack() as stack:
            for clock in (*self._children, *self._clocks):
                stack.enter_context(clock.stopped())
            yield
