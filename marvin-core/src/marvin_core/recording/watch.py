"""An extension point of a session for recorders and replays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..engine.parts import SessionParts, SessionSetup


class SessionWatch(Protocol):
    """Observes a session from its start, or provides it with recorded data."""

    def arranged(self, setup: SessionSetup) -> SessionSetup:
        """The parts of the session, before it is created."""
        ...

    def attach(self, parts: SessionParts) -> None:
        """Take the parts of the session, right after their creation."""
        ...
