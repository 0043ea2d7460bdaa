"""Reasoning that a server leaves in the text of an answer, between tags."""

from __future__ import annotations

from typing import Literal, TypeAlias

Piece: TypeAlias = tuple[Literal["text", "thinking"], str]

_CLOSING = {"<think>": "</think>", "<thought>": "</thought>"}
"""Open models write the first pair; Gemini's compatible interface puts its summaries into the second."""
_MOST_SPACE = 1_000
"""The characters of white space that may stand before a tag."""


class ThinkingTags:
    """Takes the reasoning out of an answer that begins with it. Tags further on are text like any other."""

    def __init__(self) -> None:
        self._held = ""
        self._closing = ""
        self._state: Literal["start", "thinking", "closed", "text"] = "start"

    def feed(self, text: str) -> list[Piece]:
        """The pieces in what came, each with its kind; the beginning of what may be a tag waits for the rest."""
        if self._state == "text":
            return [("text", text)]
        self._held += text
        pieces: list[Piece] = []
        if self._state == "start":
            self._start()
        if self._state == "thinking":
            pieces += self._thinking()
        if self._state == "closed":
            self._held = self._held.lstrip()
            self._state = "text" if self._held else "closed"
        if self._state == "text":
            pieces += self.finish()
        return pieces

    def finish(self) -> list[Piece]:
        """What was held back, where no more of it can come."""
        held, self._held = self._held, ""
        if held and self._state == "start":
            self._state = "text"
        return [("thinking" if self._state == "thinking" else "text", held)] if held else []

    def _start(self) -> None:
        begun = self._held.lstrip()
        for tag, closing in _CLOSING.items():
            if begun.startswith(tag):
                self._held = begun.removeprefix(tag)
                self._closing = closing
                self._state = "thinking"
                return
        if not any(tag.startswith(begun) for tag in _CLOSING) or len(self._held) > _MOST_SPACE:
            self._state = "text"

    def _thinking(self) -> list[Piece]:
        thought, closing, rest = self._held.partition(self._closing)
        if closing:
            self._state = "closed"
        else:
            cut = _partial(thought, self._closing)
            thought, rest = thought[:cut], thought[cut:]
        self._held = rest
        return [("thinking", thought)] if thought else []


def _partial(text: str, tag: str) -> int:
    """Where the beginning of a tag stands at the end of a text; the end of the text where there is none."""
    return next((len(text) - n for n in range(len(tag) - 1, 0, -1) if text.endswith(tag[:n])), len(text))
