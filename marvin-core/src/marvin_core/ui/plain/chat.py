"""The plain chat: with a line editor on a terminal, otherwise or on request line by line."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ...api.providers import OFFLINE
from ...api.session import SessionControl
from ...config.program import command_name
from ...util.garbage import collect_again
from ...util.streams import StandardStreams
from ...util.text import counted

if TYPE_CHECKING:
    from ...api.controls import Picking
    from ...api.permissions import Question, Reply
    from .simple_chat import SimpleChat
    from .terminal_chat import TerminalChat
    from .terminal_reach import TerminalReach

NO_MODEL = (
    "No model is set up yet, so only tools work. /login NAME sets a key, /model says what else works.\n"
    "/name key=value calls a tool, Tab completes, a plain request finds the nearest one. /help shows what works."
)
_DUMB = frozenset({"", "dumb", "unknown"})


class PlainChat:
    """Text in, text out, from top to bottom."""

    def __init__(self) -> None:
        self._chat: TerminalChat | SimpleChat | None = None

    def run(self, session: SessionControl, prompt: str | None) -> int:
        """Chat until the user leaves; returns the exit code."""
        greeting = _greeting(session)
        settings = session.chat
        is_drawn = settings.terminal not in _DUMB and not settings.screen_reader and not settings.plain
        if os.isatty(0) and os.isatty(1) and is_drawn:
            # Imported for a terminal only: the line editor takes 195 ms.
            from .terminal_chat import TerminalChat

            terminal = TerminalChat(session)
            self._chat = terminal
            collect_again()
            return _left(session, terminal.run(greeting, prompt))
        from .simple_chat import SimpleChat

        simple = SimpleChat(session)
        self._chat = simple
        collect_again()
        return _left(session, simple.run(greeting, prompt))

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """Ask the user; before the chat starts, the answer is the last choice."""
        return choices[-1] if self._chat is None else await self._chat.ask(question, choices)

    async def ask_text(self, question: str, choices: Sequence[str]) -> str:
        """Ask the user for free text; before the chat starts, the answer is empty."""
        return "" if self._chat is None else await self._chat.ask_text(question, choices)

    async def permit(self, question: Question) -> Sequence[Reply]:
        """Ask the user about calls; before the chat starts, each is refused."""
        return () if self._chat is None else await self._chat.permit(question)

    async def ask_secret(self, question: str) -> str:
        """Read a line that is neither shown nor stored; before the chat starts, it is empty."""
        return "" if self._chat is None else await self._chat.ask_secret(question)

    async def pick(self, picking: Picking) -> str | None:
        """Let the user pick one of several with keys; None if nothing can be drawn."""
        from .simple_chat import SimpleChat

        reach = self._reach
        return None if reach is None or isinstance(reach, SimpleChat) else await reach.pick(picking)

    def copy(self, text: str) -> bool:
        """Copy a text to the clipboard of the terminal, if there is one."""
        reach = self._reach
        return reach is not None and reach.copy(text)

    async def run_editor(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Leave the terminal to a program until it ends; returns its exit code."""
        reach = self._reach
        return 1 if reach is None else await reach.run_editor(command, environment)

    @property
    def _reach(self) -> TerminalReach | SimpleChat | None:
        from .simple_chat import SimpleChat

        return self._chat if self._chat is None or isinstance(self._chat, SimpleChat) else self._chat.reach


def _left(session: SessionControl, code: int) -> int:
    """After the chat, show on a terminal how to resume the session; returns the exit code."""
    if session.id and os.isatty(1):
        with suppress(OSError):  # the terminal is gone
            StandardStreams().out(f"This session: {command_name()} --resume {session.id}\n")
    return code


def _greeting(session: SessionControl) -> str:
    goes_on = f"Continuing the session {session.id}." if session.id else _seeded(session)
    return "\n".join(filter(None, [_who_answers(session), goes_on]))


def _seeded(session: SessionControl) -> str:
    """A note about messages of earlier chats in the first request; empty without a model."""
    if not session.configured or session.models.provider_name == OFFLINE:
        return ""
    count = session.profile.earlier()
    if not count:
        return ""
    return (
        f"{counted(count, 'message')} of earlier chats in this folder will be sent with the first request. /clear "
        "starts without them; `seed: off` in config.yaml turns this off."
    )


def _who_answers(session: SessionControl) -> str:
    models = session.models
    if not session.configured:
        return "Marvin. The model cannot be used, so only tools can be called: /name key=value. /help shows more."
    if models.provider_name == OFFLINE:
        return NO_MODEL
    origin = f" ({models.reason})" if models.reason else ""
    return (
        f"Marvin, with {models.model or 'the default model'} of {models.provider_name}{origin}. /help shows what works."
    )
