"""The event bus of a session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ..api.events import Event, Notice, Unsubscribe
from .failures import is_failure, told


class Bus:
    """Passes each event to every listener, immediately and in order.

    A listener that raises gets a notice, as all others do, and receives no further events: one broken interface must
    not stop the others or the loop. `clean` removes secrets and control characters from a text before it is shown.
    """

    def __init__(self, clean: Callable[[str], str] = str) -> None:
        self.clean = clean
        self._listeners: list[Callable[[Event], None]] = []
        self._kept: list[Event] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    def subscribe(self, listener: Callable[[Event], None]) -> Unsubscribe:
        """Pass every event from now on to the listener, and the events that were kept for it before."""
        kept, self._kept = self._kept, []
        for event in kept:
            listener(event)
        self._listeners.append(listener)
        return lambda: self._drop(listener)

    def emit(self, event: Event) -> None:
        """Publish an event. From another thread, the event loop publishes it later: listeners need the loop."""
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            if self._loop is not None and self._loop.is_running():
                self._loop.call_soon_threadsafe(self.emit, event)
                return
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except BaseException as error:  # whatever the class: never the loop's problem
                if not is_failure(error):
                    raise
                self._give_up(listener, event, error)

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Keep the events that are published meanwhile for the next listener as well."""
        kept: list[Event] = []
        drop = self.subscribe(kept.append)
        try:
            yield
        finally:
            drop()
            self._kept = kept

    def warn(self, text: str) -> None:
        """Warn about a problem that does not end the session."""
        self.emit(Notice(level="warning", text=self.clean(text)))

    def tell(self, text: str) -> None:
        """Tell people about something that is not a problem."""
        self.emit(Notice(level="info", text=self.clean(text)))

    def _give_up(self, listener: Callable[[Event], None], event: Event, error: BaseException) -> None:
        self._drop(listener)
        what = f"{getattr(listener, '__qualname__', type(listener).__name__)} failed at {event.type}"
        notice = Notice(level="error", text=self.clean(f"{what}, and receives no further events: {told(error)}"))
        with suppress(BaseException):  # it failed on the other event; maybe it can show this one
            listener(notice)
        self.emit(notice)

    def _drop(self, listener: Callable[[Event], None]) -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)
