"""Reads the keys of a terminal. Keys that arrive faster than anybody types count as one paste."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TextIO

from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

ESCAPE = Keys.F24
"""Stands for Escape alone: no terminal sends this key, and no other key begins with it."""
_QUICK = 0.01
"""The maximum number of seconds between two keys of a paste; nobody types that fast by hand."""
_ENOUGH = 8
"""The minimum number of characters in quick succession that count as a paste."""
_ENTER = (Keys.ControlM, Keys.ControlJ)


class PastingInput(Vt100Input):
    """Reads keys.

    Some terminals do not mark where a paste begins; each of its lines would be sent. Enter in the middle of quick input
    is delayed until it is clear whether more follows. A single key is never delayed.
    """

    escapes = True
    """Whether Escape alone is reported as `ESCAPE`."""

    def __init__(self, stdin: TextIO) -> None:
        super().__init__(stdin)
        self._held: list[KeyPress] = []
        self._run = 0
        self._last = 0.0

    def read_keys(self) -> list[KeyPress]:
        """The keys received, without the delayed ones."""
        keys = super().read_keys()
        now = time.monotonic()
        if now - self._last > _QUICK:
            self._run = 0
        self._last = now
        return list(self._sorted(keys))

    def flush_keys(self) -> list[KeyPress]:
        """The keys that will not be continued: delayed ones, and an Escape that begins no other key."""
        rest = super().flush_keys()
        if self.escapes and len(rest) == 1 and rest[0].key == Keys.Escape:
            rest = [KeyPress(ESCAPE, rest[0].data)]
        return [*self.release(), *rest]

    def release(self) -> list[KeyPress]:
        """The delayed input: one paste, or the keys as received."""
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
    """Whether the input right after Enter shows that Enter ended a line of a paste. Enter pressed twice is no paste."""
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
