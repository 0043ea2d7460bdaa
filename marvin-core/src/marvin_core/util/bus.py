"""The session-wide subscription to events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ..api.events import Event, Notice, Unsubscribe
from .failures import is_failure, told


class Bus:
    """Passes each event to every listener, at once and in order.

    A listener that raises is told so, like all others, and receives no further events: one broken interface must not
    stop the others or the loop. `clean` takes out of a text what nobody may be shown.
    """

    def __init__(self, clean: Callable[[str], str] = str) -> None:
        self.clean = clean
        self._listeners: list[Callable[[Event], None]] = []
        self._kept: list[Event] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    def subscribe(self, listener: Callable[[Event], None]) -> Unsubscribe:
        """Have every event from now on passed to the listener, and those before that were kept for it."""
        kept, self._kept = self._kept, []
        for event in kept:
            listener(event)
        self._listeners.append(listener)
        return lambda: self._drop(listener)

    def emit(self, event: Event) -> None:
        """Publish an event. From a thread beside the event loop it comes in its turn: listeners need the loop."""
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            if self._loop is not None and self._loop.is_running():
                self._loop.call_soon_threadsafe(self.emit, event)
                return
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except BaseException as error:  # see the class: never the loop's problem
                if not is_failure(error):
                    raise
                self._give_up(listener, event, error)

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Keep the events that are published meanwhile for the next listener, too."""
        kept: list[Event] = []
        drop = self.subscribe(kept.append)
        try:
            yield
        finally:
            drop()
            self._kept = kept

    def warn(self, text: str) -> None:
        """Tell of something that went wrong, and does not end the session."""
        self.emit(Notice(level="warning", text=self.clean(text)))

    def tell(self, text: str) -> None:
        """Tell of something that people want to know."""
        self.emit(Notice(level="info", text=self.clean(text)))

    def _give_up(self, listener: Callable[[Event], None], event: Event, error: BaseException) -> None:
        self._drop(listener)
        what = f"{getattr(listener, '__qualname__', type(listener).__name__)} failed at {event.type}"
        notice = Notice(level="error", text=self.clean(f"{what}, and receives no further events: {told(error)}"))
        with suppress(BaseException):  # it could not take the other event; maybe it can say so
            listener(notice)
        self.emit(notice)

    def _drop(self, listener: Callable[[Event], None]) -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)
