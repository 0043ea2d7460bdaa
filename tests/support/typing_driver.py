"""A line editor on a terminal of its own, somebody who types, and questions that appear in the middle of words.

Run as a program with a number of rounds, a seed, and the pause in seconds after which a question opens; prints what
went wrong as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import tempfile
import tty
from collections.abc import Callable
from pathlib import Path

from marvin_core.api.timeouts import Timeouts
from marvin_core.ui.plain.editor_parts import EditorSettings, Handlers
from marvin_core.ui.plain.line_editor import LineEditor
from marvin_core.ui.plain.line_history import LineHistory

WORDS = ["yes", "no", "session", "always", "edit", "view", "please", "say", "notes", "you", "a", "yy", "each", "nay!"]
LIMIT = 20.0


async def _no_pager() -> None:
    """Nothing is to be seen here."""


class Typist:
    """Types words, a key at a time, in an editor whose answers and lines are kept."""

    def __init__(self, chosen: random.Random, pause: float, master: int) -> None:
        self._chosen = chosen
        self._pause = pause
        self._master = master
        self.answers: list[str] = []
        self.lines: list[str] = []
        handlers = Handlers(
            line=lambda text, _: self.lines.append(text),
            answer=self.answers.append,
            cycle=lambda: None,
            interrupt=lambda typed: typed,
            escape=lambda: None,
            recall=str,
            end=lambda: None,
            page=_no_pager,
            complete=lambda line: (),
            tell=self.lines.append,
        )
        settings = EditorSettings(
            color=False,
            terminal="screen",
            forgets=False,
            timeouts=Timeouts(answer_key=pause),
            vi=False,
            while_typing=False,
            program="true",
        )
        folder = Path(tempfile.mkdtemp())
        self.editor = LineEditor(handlers, LineHistory(lambda: folder / "history"), settings)

    @property
    def _typed(self) -> str:
        return self.editor._prompt.default_buffer.text

    async def round(self) -> str:
        """One word with a question in its middle; what went wrong, or nothing."""
        word = " ".join(self._chosen.choice(WORDS) for _ in range(self._chosen.randint(1, 3)))
        self.answers.clear()
        self.lines.clear()
        typing = asyncio.ensure_future(self._type(word))
        await asyncio.sleep(self._chosen.uniform(0, self._pause * 0.3 * len(word)))
        begun = bool(self._typed)
        self.editor.question("[yes/session/always/edit/no/view] ", keys=_key)
        await typing
        await self._until(lambda: len(self._typed) >= len(word) or bool(self.answers))
        wrong = "" if self._typed == word else f"{word!r} became {self._typed!r}"
        wrong += f" and answered {self.answers}" if self.answers else ""
        os.write(self._master, b"\r")
        await self._until(lambda: bool(self.lines or self.answers))
        wrong += "" if self.lines == [word] else f" and {word!r} was sent as {self.lines}, answered {self.answers}"
        if not wrong and self._chosen.random() < 0.2:
            wrong = await self._answered()
        self.editor.answered()
        return f"{wrong} (begun before: {begun})" if wrong else ""

    async def _answered(self) -> str:
        """Once nobody has typed for long enough, a key answers."""
        await self._until(lambda: self.editor._question.is_open)
        os.write(self._master, b"y")
        await self._until(lambda: bool(self.answers))
        return "" if self.answers == ["yes"] else f"y answered {self.answers}"

    async def _type(self, word: str) -> None:
        for letter in word:
            os.write(self._master, letter.encode())
            await asyncio.sleep(self._chosen.uniform(0, self._pause * 0.3))

    async def _until(self, reached: Callable[[], bool]) -> None:
        async with asyncio.timeout(LIMIT):
            while not reached():  # noqa: ASYNC110  # what is waited for are keys in a terminal
                await asyncio.sleep(0.001)


def _key(key: str) -> str | None:
    return next((word for word in ("yes", "session", "always", "edit", "no", "view") if word.startswith(key)), None)


async def work(count: int, seed: int, pause: float, master: int) -> list[str]:
    """So many rounds; what went wrong."""
    typist = Typist(random.Random(seed), pause, master)
    loop = asyncio.get_running_loop()
    loop.add_reader(master, lambda: os.read(master, 65_536))
    running = asyncio.ensure_future(typist.editor.run())
    await asyncio.sleep(0.05)
    wrong = [told for _ in range(count) if (told := await typist.round())]
    typist.editor.close()
    await running
    return wrong


def main() -> None:
    """Take the place of a terminal, type, and tell."""
    out = os.fdopen(os.dup(1), "w")
    master, slave = os.openpty()
    tty.setraw(slave)
    os.dup2(slave, 0)
    os.dup2(slave, 1)
    wrong = asyncio.run(work(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), master))
    out.write(json.dumps(wrong))
    out.close()


if __name__ == "__main__":
    main()
