"""Reasoning that a server leaves in the text of an answer, between tags."""

from __future__ import annotations

from typing import Literal, TypeAlias

Piece: TypeAlias = tuple[Literal["text", "thinking"], str]

_CLOSING = {"<think>": "</think>", "<thought>": "</thought>"}
"""The tags. Open models write the first pair; Gemini's compatible interface puts summaries into the second."""
_MOST_SPACE = 1_000
"""The maximum number of white-space characters before a tag."""


class ThinkingTags:
    """Separates the reasoning from an answer that begins with it. Later tags are ordinary text."""

    def __init__(self) -> None:
        self._held = ""
        self._closing = ""
        self._state: Literal["start", "thinking", "closed", "text"] = "start"

    def feed(self, text: str) -> list[Piece]:
        """The pieces of the text with their kinds; the beginning of a possible tag is delayed."""
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
        """The delayed text, at the end of the stream."""
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
    """The position of an incomplete tag at the end of a text; the end of the text if there is none."""
    return next((len(text) - n for n in range(len(tag) - 1, 0, -1) if text.endswith(tag[:n])), len(text))
