"""Messages for the model that wait for its next request."""

from __future__ import annotations

from collections.abc import Sequence

from ..api.messages import Message, user


class Inbox:
    """What people, hooks and the session itself send to the model in the middle of a prompt."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def send(self, text: str) -> None:
        """Add a message; it goes along with the next request."""
        self._texts.append(text)

    def take(self) -> Sequence[Message]:
        """The messages that wait; they count as delivered."""
        messages = [user(text) for text in self._texts]
        self._texts.clear()
        return messages

    @property
    def waiting(self) -> bool:
        """Whether a message waits."""
        return bool(self._texts)
