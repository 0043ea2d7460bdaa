"""Draws the attention of an absent user: the bell, a desktop notification, the window title."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

_NOTICE = "\x1b]9;{}\x07"
_TITLE = "\x1b]2;{}\x07"
_KEEP_TITLE, _GIVE_TITLE_BACK = "\x1b[22;2t", "\x1b[23;2t"


class Attention:
    """Notifies at the end of an answer and at a question if no key was pressed for `patience` seconds.

    Its output never contains text from a model, a tool or a file.

    Args:
        kinds: bell, notify, title.
        write: writes a sequence to the terminal that does not move the cursor.
        last_key: the time of the last key, by the monotonic clock.
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
        """The chat has started."""
        if "title" in self._kinds:
            self._write(_KEEP_TITLE)
            self._title("marvin")

    def close(self) -> None:
        """The chat ends; restore the title."""
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
        """A question is open: notify now, or once no key was pressed for long enough."""
        self._title("marvin: asks")
        self._wait()

    def settled(self) -> None:
        """The question was answered."""
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
