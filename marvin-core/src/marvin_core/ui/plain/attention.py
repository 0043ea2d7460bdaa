"""Calling for somebody who looks elsewhere: the bell, a notice of the desktop, the title of the window."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

_NOTICE = "\x1b]9;{}\x07"
_TITLE = "\x1b]2;{}\x07"
_KEEP_TITLE, _GIVE_TITLE_BACK = "\x1b[22;2t", "\x1b[23;2t"


class Attention:
    """Calls at the end of an answer and at a question, where nobody pressed a key for `patience` seconds.

    Nothing that it writes holds a word of a model, a tool or a file.

    Args:
        kinds: bell, notify, title.
        write: puts a sequence on the terminal that moves no cursor.
        last_key: when the last key was pressed, by the monotonic clock.
    """

    def __init__(
        self, kinds: Sequence[str], patience: float, write: Callable[[str], None], last_key: Callable[[], float]
    ) -> None:
        self._kinds = kinds
        self._patience = patience
        self._write = write
        self._last_key = last_key
        self._since = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """The chat is there."""
        if "title" in self._kinds:
            self._write(_KEEP_TITLE)
            self._title("marvin")

    def close(self) -> None:
        """The chat ends; the title is what it was."""
        self.settled()
        if "title" in self._kinds:
            self._write(_GIVE_TITLE_BACK)

    def works(self) -> None:
        """An answer has begun."""
        self._since = time.monotonic()
        self._title("marvin: works")

    def answered(self) -> None:
        """An answer has ended."""
        self._title("marvin")
        if time.monotonic() - self._since >= self._patience:
            self._call("Marvin has answered.")

    def asks(self) -> None:
        """A question waits: at once, or once nobody has typed for long enough."""
        self._title("marvin: asks")
        self._wait()

    def settled(self) -> None:
        """The question has its answer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._title("marvin: works")

    def _wait(self) -> None:
        left = self._last_key() + self._patience - time.monotonic()
        if left > 0:
            self._timer = asyncio.get_running_loop().call_later(left, self._wait)
        else:
            self._call("Marvin has a question.")

    def _call(self, text: str) -> None:
        if "bell" in self._kinds:
            self._write("\a")
        if "notify" in self._kinds:
            self._write(_NOTICE.format(text))

    def _title(self, text: str) -> None:
        if "title" in self._kinds:
            self._write(_TITLE.format(text))
