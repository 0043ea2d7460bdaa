"""Prepares a message for the model: attaches the files that it names, and announces a long message."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from ...api.session import SessionControl
from ...util.text import counted
from .attaching import Message, with_attached

Confirm: TypeAlias = Callable[[str, Sequence[str]], Awaitable[str]]
"""Asks the user; the last choice is the default."""
ANNOUNCED = 10_000
"""The length in characters above which a message is announced."""
_OUTPUT = 50_000
"""The length of an attached command output in characters: half from its beginning, half from its end."""
_OF_COMMAND = re.compile(r"(?<!\S)@!(?!\S)")


class Sending:
    """Turns lines into messages. `show` shows a text to the user, `confirm` asks; without it nothing is asked."""

    def __init__(self, session: SessionControl, show: Callable[[str], None], confirm: Confirm | None) -> None:
        self._session = session
        self._show = show
        self._confirm = confirm
        self._command = self._output = ""
        self._told = False

    def ran(self, command: str, output: str) -> None:
        """A command was typed whose output the model does not have; a one-time hint explains how to attach it."""
        self._command, self._output = command, output
        if not self._told and self._session.configured:
            self._told = True
            self._show("(The model does not see this output. Write @! in a message to attach it.)")

    async def message(self, line: str) -> Message | None:
        """The message to send; None if the user withdraws it because it does not fit."""
        message = await with_attached(line, self._session) if "@" in line else Message(text=line)
        if _OF_COMMAND.search(line):
            message = self._with_output(message)
        for note in message.notes:
            self._show(f"({note})")
        return message if await self._fits(message.text) else None

    def _with_output(self, message: Message) -> Message:
        if not self._command:
            return message.replace(notes=(*message.notes, "No !command has run yet, so @! attached nothing."))
        output, left = self._output, len(self._output) - _OUTPUT
        if left > 0:
            half = _OUTPUT // 2
            output = f"{output[:half]}\n[{left:,} characters left out here]\n{output[-half:]}"
        block = f"[Output of the command `{self._command}`, which the user ran]\n{output}\n[End of the output]"
        return message.replace(text=f"{message.text}\n\n{block}")

    async def _fits(self, text: str) -> bool:
        """Announce a long message; one that exceeds the window is sent if the user confirms it."""
        if len(text) <= ANNOUNCED or not self._session.configured:
            return True
        standing = self._session.standing()
        tokens = len(text) // 4
        share = round(tokens * 100 / max(1, standing.window))
        told = f"This message has {counted(len(text), 'character')}, about {tokens:,} tokens: {share}% of the window."
        if tokens <= standing.window or self._confirm is None:
            self._show(f"({told})")
            return True
        question = f"{told} The model will probably refuse it or read only a part. Send it anyway?"
        return await self._confirm(question, ("yes", "no")) == "yes"
