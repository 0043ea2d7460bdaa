"""A question and the keys pressed meanwhile: which of them answer it, and which belong to other input."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from .editor_parts import AnswerKey

_REST = 2.0
"""Seconds to wait for Enter, or for the rest of a word whose first letter was the answer."""


class WaitingQuestion:
    """Opens for an answer when typing stops: `pause` seconds after the last key, on an empty line.

    `may_open` says whether the line is empty; `changed` is called when the question has opened.
    """

    def __init__(self, pause: float, may_open: Callable[[], bool], changed: Callable[[], None]) -> None:
        self._pause = pause
        self._may_open = may_open
        self._changed = changed
        self._timer: asyncio.TimerHandle | None = None
        self._keys: AnswerKey | None = None
        self._draft = ""
        self._rest = ("", 0.0)
        self.sign = ""
        self.hidden = False
        self.is_open = False
        """Whether the edited line is that of the answer."""
        self.last_key = time.monotonic()

    @property
    def waits(self) -> bool:
        """Whether there is a question that is not open yet."""
        return bool(self.sign) and not self.is_open

    def begin(self, sign: str, keys: AnswerKey | None, *, hidden: bool, at_once: bool) -> None:
        """Ask; `at_once` opens it without a pause."""
        self.sign, self._keys, self.hidden = sign, keys, hidden
        self.is_open = at_once
        self._soon()

    def put_aside(self, draft: str) -> None:
        """Open it for an answer, and set the edited line aside."""
        self._draft, self.is_open = draft, True

    def end(self) -> str:
        """Close the question; returns the line that was set aside."""
        draft, self._draft = self._draft, ""
        self.sign, self.hidden, self.is_open, self._keys = "", False, False, None
        return draft

    def key_pressed(self) -> None:
        """A key was pressed: the user may be typing something else."""
        self.last_key = time.monotonic()
        self._soon()

    def answer_of(self, key: str) -> str | None:
        """The answer of a single key; None if it is not an answer."""
        line = self._keys(key) if self._keys is not None else None
        self._rest = ((line or "")[len(key) :], time.monotonic())
        return line

    def is_rest(self, text: str) -> bool:
        """Whether a line is only the rest of a word whose first letter was the answer."""
        rest, since = self._rest
        self._rest = ("", 0.0)
        return bool(rest) and text == rest and time.monotonic() - since < _REST

    def _soon(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.waits:
            since = time.monotonic() - self.last_key
            self._timer = asyncio.get_running_loop().call_later(max(0.0, self._pause - since), self._open)

    def _open(self) -> None:
        self._timer = None
        if self.waits and self._may_open():
            self.is_open = True
            self._changed()
