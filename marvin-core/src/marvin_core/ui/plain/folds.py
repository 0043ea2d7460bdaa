"""Folds long texts in the edited line into a few words each."""

from __future__ import annotations

import re

from ...util.text import one_line

FOLD_LINES = 20
FOLD_CHARACTERS = 2_000
_HINT = 30
"""The number of shown characters of a long line of the history."""


class Folds:
    """Folds long texts, and restores them in a line that contains such folds."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def fold(self, text: str, what: str = "") -> str:
        """The text, or a fold for a long one; `what` describes it, otherwise its beginning does."""
        lines = text.rstrip("\n").count("\n") + 1
        if lines <= FOLD_LINES and len(text) <= FOLD_CHARACTERS:
            return text
        what = what or f"{one_line(text[: _HINT * 10])[:_HINT]} …"
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        fold = f"[{what} {size}]"
        if self._texts.get(fold, text) != text:
            fold = f"[{what} {size}, no. {len(self._texts) + 1}]"
        self._texts[fold] = text
        return fold

    def unfold(self, shown: str) -> str:
        """The text with its folds replaced in a single pass, as a paste may contain what looks like a fold."""
        if not self._texts:
            return shown
        return re.sub("|".join(map(re.escape, self._texts)), lambda fold: self._texts[fold[0]], shown)

    def at_end(self, text: str) -> str:
        """The fold at the end of a text, or an empty text."""
        return next((fold for fold in self._texts if text.endswith(fold)), "")

    def forget(self) -> None:
        """Forget all texts."""
        self._texts.clear()
