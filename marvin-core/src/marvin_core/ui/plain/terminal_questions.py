"""Questions in the chat on a terminal: shown above the line, answered by lines that are begun after them."""

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
from .line_editor import LineEditor


class TerminalQuestions:
    """Asks one question at a time.

    `around` holds back what else is shown meanwhile, and says whether anybody is there.
    """

    def __init__(self, editor: LineEditor, paint: Paint, around: Callable[[], AbstractContextManager[bool]]) -> None:
        self._editor = editor
        self._paint = paint
        self._around = around
        self._one = asyncio.Lock()
        self._lines: asyncio.Queue[str | None] | None = None

    def answer(self, line: str | None) -> bool:
        """Take a line as the answer, None for none at all; False where nothing is asked."""
        if self._lines is None:
            return False
        self._lines.put_nowait(line)
        return True

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """Have one of the choices chosen; anything but one of them, or its beginning, is the last one."""
        answer = ""
        async with self._one:
            with self._around() as is_there, self._listening() as lines:
                shown = wrapped(clean(question), self._editor.width, self._editor.measure)
                self._editor.write(self._paint("notice", shown))
                if is_there:
                    answer = (await self._next(lines, one_line(f"[{'/'.join(choices)}]") + " ") or "").strip().lower()
        return next((choice for choice in choices if answer and choice.startswith(answer)), choices[-1])

    async def ask_text(self, question: str, choices: Sequence[str]) -> str:
        """Have something typed that may be any words; empty where there is to be none."""
        asked = TextQuestion(
            question, choices, self._paint, Quoting(self._paint, self._editor.width, self._editor.measure)
        )
        async with self._one:
            with self._around() as is_there, self._listening() as lines:
                self._editor.write(asked.begin())
                return asked.answer(await self._next(lines, asked.sign) if is_there else None)

    async def ask_secret(self, question: str) -> str:
        """Have something typed that is neither shown nor kept; empty where there is to be none."""
        async with self._one:
            with self._around() as is_there, self._listening() as lines:
                shown = wrapped(clean(question), self._editor.width, self._editor.measure)
                self._editor.write(self._paint("notice", shown))
                if not is_there:
                    return ""
                self._editor.question("[hidden] ", hidden=True)
                return (await lines.get() or "").strip()

    async def permit(self, question: Question) -> Sequence[Reply]:
        """Ask about calls until each has its reply; Ctrl+D refuses those that have none."""
        prompt = QuestionPrompt(question, self._paint, self._editor.width, self._editor.measure)
        async with self._one:
            with self._around() as is_there, self._listening() as lines:
                self._editor.write(prompt.begin())
                while prompt.replies is None:
                    line = await self._next(lines, prompt.sign, prompt.draft) if is_there else None
                    if line is None:
                        prompt.refuse()
                    elif shown := prompt.take(line):
                        self._editor.write(shown)
        return prompt.replies

    @contextmanager
    def _listening(self) -> Iterator[asyncio.Queue[str | None]]:
        self._lines = asyncio.Queue()
        try:
            yield self._lines
        finally:
            self._lines = None
            self._editor.answered()

    async def _next(self, lines: asyncio.Queue[str | None], sign: str, draft: str = "") -> str | None:
        """The next line that answers; None where there is to be none."""
        self._editor.question(sign, draft)
        answer = await lines.get()
        if answer is not None:
            self._editor.write(f"{sign}{exact(answer)}")
        return answer
