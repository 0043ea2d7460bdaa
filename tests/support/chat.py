"""A session with its slash commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from marvin_core.api.errors import MarvinError
from marvin_core.sessions.reader import load
from marvin_core.ui.commands.core import core_commands

from .engine import Made, run

COMMANDS = {command.name: command for command in core_commands()}


class Chat:
    """A session and its commands, as an interface has them."""

    def __init__(self, made: Made) -> None:
        self.made = made
        self.session = made.session

    async def do(self, line: str) -> str:
        """What a command says."""
        name, _, rest = line.removeprefix("/").partition(" ")
        try:
            return await COMMANDS[name].run(self.session, rest) or ""
        except (MarvinError, OSError) as error:  # as interfaces show it
            return f"Error: {error}"

    @property
    def texts(self) -> list[str]:
        """What the model would be sent."""
        return [message.text for message in self.made.parts.conversation.messages]

    @property
    def files(self) -> list[Path]:
        """The session files, oldest first."""
        return sorted((self.made.config.data_folder / "sessions").glob("*.jsonl"))


def chatting(made: Made, work: Callable[[Chat], Awaitable[Any]]) -> Chat:
    """Do some work in a session, then close it."""
    chat = Chat(made)

    async def go() -> None:
        try:
            await work(chat)
        finally:
            await chat.session.close()

    run(go())
    return chat


def kept(path: Path) -> list[str]:
    """The texts in a session file."""
    return [message.text for message in load(path).messages]
