"""The parts of a terminal chat around the conversation: the status row, and notifications."""

from __future__ import annotations

from ...api.events import Event
from ...api.session import SessionControl
from ..rendering import Paint
from ..status.facts import Facts
from ..status.row import StatusRow
from .attention import Attention
from .line_editor import LineEditor


class Surroundings:
    """The status row and the notifications of one chat."""

    def __init__(self, session: SessionControl, editor: LineEditor, paint: Paint) -> None:
        settings = session.chat
        self._editor = editor
        self._facts = Facts(session, editor.update)
        self._row = StatusRow(session, self._facts, settings.preferences.status, paint)
        self.attention = Attention(
            settings.preferences.attention,
            settings.timeouts.attention,
            editor.signal,
            lambda: editor.last_key,
        )

    def begin(self) -> None:
        """The chat has started."""
        self.attention.begin()
        self._facts.look()

    async def close(self) -> None:
        """The chat ends."""
        self.attention.close()
        await self._facts.close()

    def listen(self, event: Event) -> None:
        """An event that may change the row."""
        self._facts.listen(event)

    def row(self, *, shell: bool) -> str:
        """The status row; empty if it is disabled."""
        return self._row.text(self._editor.width, self._editor.measure, shell=shell)
