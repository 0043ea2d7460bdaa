"""Assembles an answer from its streamed parts."""

from __future__ import annotations

import os

from ..api.errors import StreamBroken
from ..api.messages import Block, Message, ProviderData, StopReason, Text, Thinking, ToolCall, Usage
from ..api.providers import CallDelta, Delta, Stop, TextDelta, ThinkingDelta, UsageDelta
from ..util.numbers import sound

CANCELLED = "[Cancelled]"
_PIECES = 1_000
"""The maximum number of separate parts. A short part takes far more memory than its characters."""


class _Part:
    """One growing block; its parts are joined at the end, and earlier if there are many."""

    __slots__ = ("_joined", "_pieces", "id", "kind", "name", "provider_data")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.id = ""
        self.name = ""
        self._joined: list[str] = []
        self._pieces: list[str] = []
        self.provider_data: ProviderData | None = None

    def add(self, piece: str) -> None:
        """Add a part of its text."""
        self._pieces.append(piece)
        if len(self._pieces) == _PIECES:
            self._joined.append("".join(self._pieces))
            self._pieces.clear()

    @property
    def texts(self) -> list[str]:
        """Its text, in parts."""
        return self._joined + self._pieces


class Assembly:
    """The answer so far. Pass every delta to `feed`, in order."""

    def __init__(self, provider: str, model: str) -> None:
        self.provider = provider
        self.model = model
        self._parts: list[_Part] = []
        self._calls: dict[int, _Part] = {}
        self._ids: set[str] = set()
        self.usage: Usage | None = None
        self.stop_reason: StopReason | None = None

    def feed(self, delta: Delta) -> _Part | None:
        """Add a part; returns the part of a call, if it belongs to one."""
        if isinstance(delta, TextDelta):
            self._last("text").add(delta.text)
        elif isinstance(delta, CallDelta):
            return self._feed_call(delta)
        elif isinstance(delta, ThinkingDelta):
            part = self._last("thinking")
            part.add(delta.text)
            part.provider_data = delta.provider_data or part.provider_data
        elif isinstance(delta, UsageDelta):
            self.usage = sound(delta.usage)
        elif isinstance(delta, Stop):
            self.stop_reason = delta.reason
        else:
            raise StreamBroken(
                f"{self.provider} gave {delta!r:.100}, which is not a part of an answer. Its pack is faulty.",
                provider=self.provider,
                final=True,
            )
        return None

    def _last(self, kind: str) -> _Part:
        if not self._parts or self._parts[-1].kind != kind:
            self._parts.append(_Part(kind))
        return self._parts[-1]

    def _feed_call(self, delta: CallDelta) -> _Part:
        part = self._calls.get(delta.key)
        if part is None:
            part = self._calls[delta.key] = _Part("call")
            part.id = self._own_id(delta.id)
            self._parts.append(part)
        part.name = delta.name or part.name
        part.provider_data = delta.provider_data or part.provider_data
        part.add(delta.arguments)
        return part

    def _own_id(self, given: str) -> str:
        """Every call needs a unique id; some services omit it or use one twice."""
        own = given if given and given not in self._ids else f"call_{os.urandom(8).hex()}"
        self._ids.add(own)
        return own

    @property
    def started(self) -> bool:
        """Whether any part has arrived."""
        return bool(self._parts)

    @property
    def is_empty(self) -> bool:
        """Whether only thinking has arrived."""
        return not any(part.kind == "call" or any(map(str.strip, part.texts)) for part in self._visible())

    def _visible(self) -> list[_Part]:
        return [part for part in self._parts if part.kind != "thinking"]

    def message(self, ended: StopReason | None = None) -> Message:
        """The answer. `ended` is the stop reason if the provider gave none."""
        reason: StopReason = ended or self.stop_reason or "broken"
        blocks = [self._block(part, reason) for part in self._parts]
        if reason == "cancelled":
            said = blocks[-1].text if blocks and isinstance(blocks[-1], Text) else ""
            blocks.append(Text(text=CANCELLED if not said or said.endswith("\n") else f"\n{CANCELLED}"))
        return self._message(blocks).replace(stop_reason=reason)

    def so_far(self) -> Message:
        """The answer while it streams; its last call may be incomplete."""
        return self._message([self._block(part, "broken") for part in self._parts])

    def _message(self, blocks: list[Block]) -> Message:
        return Message(
            role="assistant", content=tuple(blocks), provider=self.provider, model=self.model, usage=self.usage
        )

    def _block(self, part: _Part, reason: StopReason) -> Block:
        text = "".join(part.texts)
        if part.kind == "text":
            return Text(text=text)
        if part.kind == "thinking":
            return Thinking(text=text, provider_data=part.provider_data)
        cut_off = reason in ("length", "broken", "cancelled") and part is self._parts[-1]
        return ToolCall(
            id=part.id, name=part.name, arguments=text, complete=not cut_off, provider_data=part.provider_data
        )
