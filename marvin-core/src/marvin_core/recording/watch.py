"""A hook into a session for recorders and replays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..engine.parts import SessionParts, SessionSetup


class SessionWatch(Protocol):
    """What watches a session from its first moment on, or gives it what was recorded."""

    def arranged(self, setup: SessionSetup) -> SessionSetup:
        """What the session is made of."""
        ...

    def attach(self, parts: SessionParts) -> None:
        """Take the parts of the session, right after they were made."""
        ...
