"""The live context: the messages for the model, and their size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ..api.messages import Message
from ..guard.redaction import Redactor
from .window import characters

if TYPE_CHECKING:

    class Journal(Protocol):
        """Stores a conversation as it grows, so that nothing is lost when the process dies."""

        def save(self, message: Message, origin: str = "", *, within: float | None = None) -> None:
            """Add a message; `origin` is its sender if it stands for the user but does not come from the user.

            `within` is the number of seconds for which it may wait for the next one.
            """
            ...

        def compacted(self, messages: Sequence[Message]) -> None:
            """Replace all earlier messages by these."""
            ...


class Conversation:
    """A growing list of messages, of which the oldest may be replaced. The journal receives each change.

    Secrets are redacted from every message, since the next request would contain them.
    """

    def __init__(self, journal: Journal, redactor: Redactor) -> None:
        self._redactor = redactor
        self._messages: list[Message] = []
        self._whole: tuple[Message, ...] | None = None
        self._journal = journal
        self._characters = 0
        self._of_tools: dict[str, int] | None = None
        self._answers: list[str] = []

    def load(self, messages: Sequence[Message]) -> None:
        """Start with messages that are already saved."""
        self._messages = self._redactor.messages(messages)
        self._characters = characters(messages)
        self._whole = self._of_tools = None

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages, oldest first; the same object until they change."""
        if self._whole is None:
            self._whole = tuple(self._messages)
        return self._whole

    @property
    def characters(self) -> int:
        """The characters of all messages."""
        return self._characters

    def append(self, message: Message, origin: str = "", *, within: float | None = None) -> Message:
        """Add a message and save it; returns the stored form.

        Args:
            origin: its sender, if it stands for the user but does not come from the user.
            within: the seconds for which saving it may wait for the next message; by default it is saved at once.
        """
        message = self._redactor.message(message)
        self._messages.append(message)
        self._whole = None
        self._characters += characters([message])
        if self._of_tools is not None:
            _add_outputs(self._of_tools, message)
        if message.role == "assistant":
            self._answers.append(message.text)
        self._journal.save(message, origin, within=within)
        return message

    def replace(self, messages: Sequence[Message]) -> None:
        """Replace the earlier messages by these."""
        self.load(messages)
        self._journal.compacted(self._messages)

    def begin_answers(self) -> Sequence[str]:
        """Collects the texts of all answers from now on, including those that are removed later to make room."""
        self._answers = []
        return self._answers

    def output_characters(self, tool_name: str) -> int:
        """The characters of this tool's outputs among the messages."""
        if self._of_tools is None:
            found: dict[str, int] = {}
            for message in self.messages:
                _add_outputs(found, message)
            self._of_tools = found
        return self._of_tools.get(tool_name, 0)


def _add_outputs(sums: dict[str, int], message: Message) -> None:
    """Add the characters of each tool's outputs in a message."""
    for output in message.outputs if message.role == "tool" else ():
        sums[output.name] = sums.get(output.name, 0) + len(output.text)
