"""Questions in the chat on a terminal: shown above the line, and answered by lines that are begun after them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from ...api.permissions import Question, Reply
from ...util.terminal_text import exact
from ...util.text import one_line
from ..question_prompt import QuestionPrompt
from ..quoted import Quoting
from ..rendering import Paint, clean, wrapped
from ..text_question import TextQuestion
from .editor_parts import AnswerKey
from .line_editor import LineEditor

_KEYS = (
    "(Press the first letter of an answer, after a pause of half a second; t also lets you tell the model why not. "
    "Ctrl+G puts aside what you were typing until you have answered.)"
)


class TerminalQuestions:
    """Asks one question at a time.

    `around` delays other output during a question, and says whether a user is present. `other` receives a line that is
    a command and no answer.
    """

    def __init__(
        self,
        editor: LineEditor,
        paint: Paint,
        around: Callable[[], AbstractContextManager[bool]],
        other: Callable[[str, str], None],
    ) -> None:
        self._editor = editor
        self._paint = paint
        self._around = around
        self._other = other
        self._told_keys = False
        self._one = asyncio.Lock()
        self._lines: asyncio.Queue[str | None] | None = None

    def answer(self, line: str | None) -> bool:
        """Use the line as the answer, None for no answer; False if there is no question."""
        if self._lines is None:
            return False
        self._lines.put_nowait(line)
        return True

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """Let the user choose. Any text that is neither a choice nor the beginning of one counts as the last choice."""
        answer = ""
        async with self._one:
            with self._around() as is_there, self._listening() as lines:
                shown = self._fitted(clean(question))
                self._editor.write(self._paint("notice", shown))
                if is_there:
                    self._editor.question(one_line(f"[{'/'.join(choices)}]") + " ", keys=_of_choices(choices))
                    answer = (await self._answer(lines) or "").strip().lower()
        return next((choice for choice in choices if answer and choice.startswith(answer)), choices[-1])

    async def ask_text(self, question: str, choices: Sequence[str]) -> str:
        """Let the user type free text; empty if there can be no answer."""
        asked = TextQuestion(
            question, choices, self._paint, Quoting(self._paint, self._editor.width, self._editor.measure)
        )
        async with self._one:
            with self._around() as is_there, self._listening() as lines:
                self._editor.write(asked.begin())
                if not is_there:
                    return asked.answer(None)
                self._editor.question(asked.sign)
                return asked.answer(await self._answer(lines))

    async def ask_secret(self, question: str) -> str:
        """Let the user type a text that is neither shown nor stored; empty if there can be no answer."""
        async with self._one:
            with self._around() as is_there, self._listening() as lines:
                shown = self._fitted(clean(question))
                self._editor.write(self._paint("notice", shown))
                if not is_there:
                    return ""
                self._editor.question("[hidden] ", hidden=True, at_once=True)
                return (await lines.get() or "").strip()

    async def permit(self, question: Question) -> Sequence[Reply]:
        """Ask about calls until each has a decision; Ctrl+D denies the remaining ones."""
        prompt = QuestionPrompt(question, self._paint, self._editor.width, self._editor.measure)
        async with self._one:
            with self._around() as is_there, self._listening() as lines:
                self._editor.write(prompt.begin())
                if not self._told_keys and is_there:
                    self._told_keys = True
                    self._editor.write(self._paint("faint", self._fitted(_KEYS)))
                asked = -1
                while prompt.replies is None:
                    at_once = asked == prompt.answered or prompt.is_line
                    asked = prompt.answered
                    line = None
                    if is_there:
                        self._editor.question(prompt.sign, prompt.draft, keys=prompt.key, at_once=at_once)
                        line = await self._answer(lines)
                    if line is None:
                        prompt.refuse()
                    elif line.startswith("/") and not prompt.is_line:
                        self._other(line, line)
                    elif shown := prompt.take(line):
                        self._editor.write(shown)
        return prompt.replies

    def _fitted(self, text: str) -> str:
        return wrapped(text, self._editor.width, self._editor.measure)

    @contextmanager
    def _listening(self) -> Iterator[asyncio.Queue[str | None]]:
        self._lines = asyncio.Queue()
        try:
            yield self._lines
        finally:
            self._lines = None
            self._editor.answered()

    async def _answer(self, lines: asyncio.Queue[str | None]) -> str | None:
        """The next line that answers; None if there can be none."""
        answer = await lines.get()
        if answer is not None:
            self._editor.write(f"{self._editor.asked}{exact(answer)}")
        return answer


def _of_choices(choices: Sequence[str]) -> AnswerKey:
    """The choice for its first letter, if no other choice begins with that letter."""

    def answer(key: str) -> str | None:
        meant = [choice for choice in choices if key and choice.startswith(key)]
        return meant[0] if len(meant) == 1 else None

    return answer
