"""Messages for the next request to the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ..api.events import MessageOrigin
from ..util.bus import Bus
from ..util.text import one_line

Waiting: TypeAlias = "tuple[str, MessageOrigin]"

_SHOWN = 200
_SENT_BY = {"hook": "of a hook ", "steered": "", "auto": "", "marvin": "", "typed": "", "model": ""}


class Inbox:
    """The queue of messages from people, hooks and the session while a prompt runs.

    Messages that arrive while no prompt runs, or that a prompt leaves behind, wait for the next one; the bus is
    notified.
    """

    def __init__(self, bus: Bus, *, chat: bool) -> None:
        self._bus = bus
        self._chat = chat
        self._waiting: list[Waiting] = []
        self._open = False

    def send(self, text: str, origin: MessageOrigin) -> None:
        """Queue a message for the next request."""
        self._waiting.append((text, origin))
        if not self._open and self._chat:
            self._tell([(text, origin)])

    def take(self) -> Sequence[Waiting]:
        """Remove and return the queued messages; they count as delivered."""
        taken = tuple(self._waiting)
        self._waiting.clear()
        return taken

    @property
    def waiting(self) -> tuple[str, ...]:
        """The queued messages."""
        return tuple(text for text, _ in self._waiting)

    def open(self) -> None:
        """A prompt begins."""
        self._open = True

    def close(self) -> None:
        """The prompt is over."""
        self._open = False
        if self._chat:
            self._tell(self._waiting)

    async def ended(self) -> None:
        """The session is over."""
        if not self._chat:
            self._tell(self._waiting)

    def _tell(self, messages: Sequence[Waiting]) -> None:
        what = "waits for the next request" if self._chat else "was not delivered, because the run ended first"
        for text, origin in messages:
            self._bus.tell(f"A message {_SENT_BY[origin]}{what}: {one_line(text, _SHOWN)}")
