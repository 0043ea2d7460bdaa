"""Draws pictures from tools if the terminal reports support for them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ...api.messages import Shown
from ...api.session import SessionControl
from ...util.threads import in_thread
from .line_editor import LineEditor

if TYPE_CHECKING:
    from ..drawing.pictures import Drawing


class TerminalPictures:
    """Draws pictures above the line, one after another. The terminal is queried once, before the first one."""

    def __init__(self, session: SessionControl, editor: LineEditor) -> None:
        self._session = session
        self._editor = editor
        self._drawing: Drawing | None = None
        self._last: asyncio.Task[None] | None = None

    def show(self, show: Sequence[Shown]) -> None:
        """Draw the pictures among these contents that have a file. Returns before they are drawn."""
        if not show or not self._session.chat.preferences.pictures:
            return
        from ..drawing.pictures import DEAF, paths_of

        paths = paths_of(show)
        if paths and not self._session.chat.terminal.startswith(DEAF):
            self._last = asyncio.ensure_future(self._draw(paths, self._last))

    async def close(self) -> None:
        """Stop drawing."""
        if self._last is not None:
            self._last.cancel()
            await asyncio.wait([self._last])

    async def _draw(self, paths: Sequence[str], before: asyncio.Task[None] | None) -> None:
        from ..drawing.pictures import ANSWERS, LAST_ANSWER, QUERY, drawing_of, picture_rows

        if before is not None:
            await asyncio.wait([before])
        if self._drawing is None:
            self._drawing = drawing_of(await self._editor.ask_terminal(QUERY, ANSWERS, LAST_ANSWER))
        drawing = self._drawing
        for path in paths if drawing else ():
            place, editor = self._session.working_dir / path, self._editor
            rows = await in_thread(partial(picture_rows, place, drawing, editor.width, editor.height))
            if rows:
                editor.write(rows)
