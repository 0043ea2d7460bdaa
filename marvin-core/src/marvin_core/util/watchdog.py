"""Detects code of packs that blocks the event loop, and interrupts it when Marvin is asked to exit."""

from __future__ import annotations

import _thread
import asyncio
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from ..api.timeouts import Timeouts

T = TypeVar("T")

_SHOWING = ("marvin_core.ui.", "marvin_core.util.bus", "marvin_core.util.streams")
"""Modules that display events: if they block the loop, the publisher of the event is not the cause."""
_OURS = frozenset({"marvin_core", "httpx", "httpcore", "h11", "anyio", "sniffio", "idna", "certifi", "pydantic"})
"""Packages that do not belong to packs: Marvin's own, and those that its model services need."""
HOOK = "the hook "
"""The prefix of an owner whose code is a hook; a hook may block the loop no longer than its timeout."""
_TRIES = 2
"""How often blocking code is interrupted before the program exits without it."""
_PATIENCE = 8
"""The same for Marvin's own code, for example on a slow machine or disk."""


async def attributed(owner: str, work: Awaitable[T]) -> T:
    """Wait for code of a pack. Its owner can be found on the stack meanwhile."""
    return await work


def attributed_call(owner: str, work: Callable[[], T]) -> T:
    """Run code of a pack in a thread. Its owner can be found on the stack meanwhile."""
    return work()


_MARKS = (attributed.__code__, attributed_call.__code__)


def pack_of(made: object) -> str:
    """The package of a pack's object, or its file in the configuration folder."""
    module = type(made).__module__
    if module.startswith("marvin_user_"):
        return str(getattr(sys.modules.get(module), "__file__", module))
    return module.partition(".")[0]


def owner_of(frame: FrameType | None) -> str:
    """The owner of the code in a frame; its package if the owner is unknown."""
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0] if frame is not None else ""
    while frame is not None:
        if frame.f_code in _MARKS:
            return str(frame.f_locals["owner"])
        frame = frame.f_back
    return package


def holder(frame: FrameType | None) -> str:
    """The code of a pack in a frame, and its location; empty if it is not a pack's code."""
    foreign: FrameType | None = None
    while frame is not None:
        if frame.f_code in _MARKS:
            if foreign is None:
                return ""
            return f"{frame.f_locals['owner']} ({foreign.f_code.co_filename}, line {foreign.f_lineno})"
        module = str(frame.f_globals.get("__name__"))
        if module.startswith(_SHOWING):
            return ""
        if _is_foreign(module):
            foreign = frame
        frame = frame.f_back
    return ""


def _is_foreign(module: str) -> bool:
    """Whether the code of a module is a pack's. Generated code, such as that of named tuples, counts as its
    caller's."""
    package = module.partition(".")[0]
    return package not in _OURS and package not in sys.stdlib_module_names and module in sys.modules


class Watchdog:
    """Watches an event loop from a thread, and interrupts code that blocks it after a signal.

    Args:
        tell: gets each tool, hook, command or provider that blocks the loop, once, in that thread.
        leave: called in the main thread if the blocking code does not end; it has to exit the program.
        held: gets, in the thread, that the loop is blocked, and that it continues.
    """

    def __init__(
        self,
        timeouts: Timeouts,
        tell: Callable[[str], None],
        leave: Callable[[str], None],
        held: Callable[[bool], None] | None = None,
    ) -> None:
        self._timeouts = timeouts
        self._tell = tell
        self._leave = leave
        self._held = held
        self._main = threading.get_ident()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._told: set[str] = set()
        self._alarms = 0
        self._armed = self._answered = False
        self._overdue = 0
        self._can_signal = False

    @contextmanager
    def watching(self, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        """Watch a loop that runs in this thread while the context lasts."""
        self._main, self._loop = threading.get_ident(), loop
        self._can_signal = threading.current_thread() is threading.main_thread()
        if self._can_signal:
            signal.signal(signal.SIGALRM, self._alarm)
        over = threading.Event()
        _thread.start_new_thread(self._watch, (loop, over))  # `Thread` would wait until it runs: a run begins here
        try:
            yield
        finally:
            over.set()
            self._loop = None
            self.calm()

    def _watch(self, loop: asyncio.AbstractEventLoop, over: threading.Event) -> None:
        while not over.wait(self._timeouts.stall):
            answered = threading.Event()
            try:
                loop.call_soon_threadsafe(answered.set)
            except RuntimeError:
                return  # the loop is closed
            since = 0.0
            while not self._waited(answered) and not over.is_set():
                since = self._look(since)
            self._overdue = 0
            if since and self._held is not None:
                self._held(False)

    def _waited(self, answered: threading.Event) -> bool:
        """Whether the loop answered in time. If this thread itself was delayed, the time does not count."""
        stall = self._timeouts.stall
        while True:
            until = time.monotonic() + stall
            if answered.wait(stall):
                return True
            if time.monotonic() - until < stall / 2:
                return False

    def _look(self, since: float) -> float:
        """Name the blocking code; returns since when code of a pack blocks the loop, or 0."""
        held = holder(sys._current_frames().get(self._main))
        if not held:
            return since
        if not since and self._held is not None:
            self._held(True)
        self._name(held)
        limit = self._timeouts.hook_decision if held.startswith(HOOK) else self._timeouts.held
        if since and time.monotonic() - since > limit and self._can_signal and not self._armed:
            self._overdue += 1
            signal.pthread_kill(self._main, signal.SIGALRM)
        return since or time.monotonic()

    def _name(self, held: str) -> None:
        owner = held.partition(" (")[0]
        if owner not in self._told:
            self._told.add(owner)
            self._tell(
                f"{held} blocks the whole program: its code blocks the event loop. Press Ctrl+C to end it. Its "
                "author can make it a `def` tool, or use `in_thread`."
            )

    def interrupted(self) -> None:
        """Call it in the handler of a signal that asks to exit: until `calm`, no pack's code may block the loop.

        Blocking code gets a CancelledError, as if it had been cancelled while waiting. Further signals change nothing,
        so that repeated requests do not delay the exit.
        """
        if self._loop is None or self._loop.is_closed() or self._armed:
            return
        self._alarms = 0
        self._ask()
        signal.setitimer(signal.ITIMER_REAL, self._timeouts.release, self._timeouts.release)
        self._armed = True

    def calm(self) -> None:
        """The requested exit is done."""
        if self._armed:
            self._armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _ask(self) -> None:
        self._answered = False
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._answer)

    def _answer(self) -> None:
        self._answered = True

    def _alarm(self, number: int, frame: FrameType | None) -> None:
        if not self._armed:
            self._end_overdue(holder(frame))
            return
        if self._answered:
            self._alarms = 0
            self._ask()
            return
        self._alarms += 1
        held = holder(frame)
        if held:
            self._name(held)  # code that lets no other thread run could not be named before
        if self._alarms > (_TRIES if held else _PATIENCE):
            self.calm()
            self._leave(held)
        elif held:
            raise asyncio.CancelledError

    def _end_overdue(self, held: str) -> None:
        """Enforce the timeouts that cannot work while the loop is blocked; `held` is empty if the loop has
        continued."""
        if self._overdue > _TRIES and held:
            self._leave(held)
        elif self._overdue and held:
            raise asyncio.CancelledError
