"""The keys of a terminal, with what comes faster than anybody types taken for one paste."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TextIO

from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

ESCAPE = Keys.F24
"""Escape alone: no key of any terminal, and never the beginning of another key."""
_QUICK = 0.01
"""Seconds between two keys that nobody types by hand."""
_ENOUGH = 8
"""So many characters in quick succession are no typing."""
_ENTER = (Keys.ControlM, Keys.ControlJ)


class PastingInput(Vt100Input):
    """Reads keys. Some terminals and lines do not say where a paste begins: there each of its lines would be sent.

    Enter in the middle of what comes quickly is held until it is clear whether more follows; a key alone is never held.
    """

    escapes = True
    """Whether Escape alone is told as `ESCAPE`."""

    def __init__(self, stdin: TextIO) -> None:
        super().__init__(stdin)
        self._held: list[KeyPress] = []
        self._run = 0
        self._last = 0.0

    def read_keys(self) -> list[KeyPress]:
        """The keys that came, without those that are held."""
        keys = super().read_keys()
        now = time.monotonic()
        if now - self._last > _QUICK:
            self._run = 0
        self._last = now
        return list(self._sorted(keys))

    def flush_keys(self) -> list[KeyPress]:
        """The keys of which no more came: what was held, and an Escape that began nothing."""
        rest = super().flush_keys()
        if self.escapes and len(rest) == 1 and rest[0].key == Keys.Escape:
            rest = [KeyPress(ESCAPE, rest[0].data)]
        return [*self.release(), *rest]

    def release(self) -> list[KeyPress]:
        """What was held: one paste, or the keys as they came."""
        held, self._held, self._run = self._held, [], 0
        return [KeyPress(Keys.BracketedPaste, _text(held))] if _is_paste(held[1:]) else list(held)

    def _sorted(self, keys: Sequence[KeyPress]) -> Iterator[KeyPress]:
        before: KeyPress | None = None
        for index, key in enumerate(keys):
            after_escape, before = before is not None and before.key == Keys.Escape, key
            if self._held:
                if _is_text(key) or key.key in (*_ENTER, Keys.ControlI):
                    self._held.append(key)
                    continue
                yield from self.release()
            elif key.key in _ENTER and not after_escape and (self._run >= _ENOUGH or _is_paste(keys[index + 1 :])):
                self._held = [key]
                continue
            self._run = self._run + 1 if _is_text(key) else 0
            yield key


def _is_text(key: KeyPress) -> bool:
    return not isinstance(key.key, Keys)


def _is_paste(following: Sequence[KeyPress]) -> bool:
    """Whether what follows an Enter at once says that it ended a line of a paste. Enter pressed twice is none."""
    text = 0
    for key in following:
        if key.key in _ENTER:
            if text:
                return True
        elif not _is_text(key):
            return False
        else:
            text += 1
            if text >= _ENOUGH:
                return True
    return False


def _text(keys: Sequence[KeyPress]) -> str:
    return "".join("\n" if key.key in _ENTER else key.data for key in keys)
