"""Long texts in the line that is typed, for each of which a few words stand."""

from __future__ import annotations

import re

from ...util.text import one_line

FOLD_LINES = 20
FOLD_CHARACTERS = 2_000
_HINT = 30
"""Characters of a long line of the history that are shown of it."""


class Folds:
    """Folds long texts, and unfolds a line that holds such folds."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def fold(self, text: str, what: str = "") -> str:
        """The text, or what stands for a long one in the line; `what` says what it is, else its beginning does."""
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
        """The text with what its folds stand for; in one go, as a paste may hold what looks like a fold."""
        if not self._texts:
            return shown
        return re.sub("|".join(map(re.escape, self._texts)), lambda fold: self._texts[fold[0]], shown)

    def at_end(self, text: str) -> str:
        """The fold that a text ends with, or nothing."""
        return next((fold for fold in self._texts if text.endswith(fold)), "")

    def forget(self) -> None:
        """Keep none of the texts."""
        self._texts.clear()
