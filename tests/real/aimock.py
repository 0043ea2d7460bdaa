"""The emulator of model services, aimock: what it is to answer, how it is to fail, what it was asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.real.components import asked


class Aimock:
    """A running emulator at `url`, driven through its control interface."""

    def __init__(self, url: str) -> None:
        self.url = url

    def reset(self) -> None:
        """Forget answers, faults and what was asked."""
        self._control("POST", "/reset")
        self._control("DELETE", "/chaos")

    def answers(self, said: str, *rounds: Mapping[str, Any], **fields: Any) -> None:
        """Answer a prompt that has these words: first with the first of these, after each round of tools with the next.

        `fields` say how the answers are streamed.
        """
        fixtures = [
            {"match": {"userMessage": said, "turnIndex": turn, "hasToolResult": turn > 0}, "response": answer, **fields}
            for turn, answer in enumerate(rounds)
        ]
        self._control("POST", "/fixtures", {"fixtures": fixtures})

    def always_answers(self, text: str) -> None:
        """Answer everything with this text."""
        self._control("POST", "/fixtures", {"fixtures": [{"match": {}, "response": {"content": text}}]})

    def fail_always(self, **rates: float) -> None:
        """Fail from now on: `dropRate`, `malformedRate`, `disconnectRate` or `rateLimitRate`, each up to 1."""
        self._control("POST", "/chaos", rates)

    def fail_once(self, status: int) -> None:
        """Answer the next request with this status."""
        self._control("POST", "/error", {"status": status, "body": {"message": "injected by the test"}})

    def journal(self) -> Sequence[Mapping[str, Any]]:
        """The model requests so far, the oldest first, as the emulator understood them."""
        entries: list[Mapping[str, Any]] = self._control("GET", "/journal")
        return [entry for entry in entries if entry["method"] == "POST"]

    def _control(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        return asked(f"{self.url}/__aimock{path}", method, body)
