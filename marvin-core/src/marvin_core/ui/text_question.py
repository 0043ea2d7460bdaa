"""A question with a free-text answer: its display, and the meaning of the line typed below it."""

from __future__ import annotations

from collections.abc import Sequence

from ..util.terminal_text import exact
from .quoted import Quoting
from .rendering import Paint


class TextQuestion:
    """One question with its numbered choices, if there are any. `sign` is shown before the answer."""

    def __init__(self, question: str, choices: Sequence[str], paint: Paint, quoting: Quoting) -> None:
        self._question = question
        self._choices = choices
        self._paint = paint
        self._quoting = quoting

    def begin(self) -> str:
        """The text of the question."""
        lines = [self._question.strip("\n"), *(f"{n}. {choice}" for n, choice in enumerate(self._choices, 1))]
        return "\n".join([self._paint("notice", "Question:"), *self._quoting.rows(exact("\n".join(lines)))])

    @property
    def sign(self) -> str:
        """The possible answers."""
        count = len(self._choices)
        numbers = "1" if count == 1 else f"1-{count}"
        return f"[{numbers}, or your own words] " if count else "[in your own words] "

    def answer(self, line: str | None) -> str:
        """The answer in a line: a choice, by its number or its text, or any other text; empty if there is none."""
        said = (line or "").strip()
        number = said.rstrip(".)")
        if number in map(str, range(1, len(self._choices) + 1)):
            return self._choices[int(number) - 1]
        return next((choice for choice in self._choices if said and choice.casefold() == said.casefold()), said)
