"""The models of a replay, which return recorded answers. They need no key and no network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..api.errors import ConfigError, StreamBroken
from ..api.models import AgentModel, ModelEntry, Serving
from ..api.providers import (
    CallDelta,
    Delta,
    Provider,
    Request,
    Retrying,
    Stop,
    Switched,
    TextDelta,
    ThinkingDelta,
    UsageDelta,
)
from ..providers.wrapper import WrapperProvider
from .cassette import Recorded, RecordedRequest
from .form import cut_again, error_of, usage_of
from .places import Places

if TYPE_CHECKING:
    from ..api.models import CostCeiling, ModelListener

_STOPS = ("stop", "tool_calls", "length", "refused", "cancelled", "broken")
_LARGE = 1_000_000_000
_PAUSE = 1.2
"""Seconds before an answer at reading speed, for reading the text before it."""
_NO_AGENTS = "A replay starts no sub-agents: what they said is in the cassette."


class Model:
    """A model by name, with its recorded data. Its answers come from `ServedModels.resilient`."""

    def __init__(self, provider: str, model: str, window: int | None = None, max_tools: int | None = None) -> None:
        self.name = provider
        self.model = model
        self.context_window = window
        self.max_tools = max_tools

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """Never used: without a prompt there is no answer."""
        yield Stop(reason="broken")

    async def aclose(self) -> None:
        """Does nothing: there is nothing to close."""


class Tape:
    """The recorded answers of a conversation, in order.

    `heard` is called with each request and the recorded one that answers it, or None if none is left. `steer` sends a
    message during an answer. `pace` is the speed of an answer in characters per second.
    """

    def __init__(
        self,
        of: Recorded,
        places: Places,
        heard: Callable[[Request, RecordedRequest | None], None],
        steer: Callable[[str], None],
        pace: float = 0.0,
    ) -> None:
        self._of = of
        self.places = places
        self._heard = heard
        self.steer = steer
        self.pace = pace
        self.prompt = -1
        self.cancel: Callable[[], object] = _nothing
        """Ends the running prompt."""

    def begin(self, prompt: int) -> None:
        """Continue with the answers to this prompt."""
        self.prompt = prompt
        self._left = list(self._of.prompts[prompt].requests)

    @property
    def left(self) -> Sequence[RecordedRequest]:
        """The answers to the prompt that were not requested yet."""
        return self._left

    def next(self, request: Request) -> RecordedRequest | None:
        """The answer to a request of the prompt."""
        found = self._left.pop(0) if self._left else None
        self._heard(request, found)
        return found

    @property
    def was_cancelled(self) -> bool:
        """Whether a person cancelled the prompt."""
        done = self._of.prompts[self.prompt].done
        return done is not None and done.get("stop_reason") == "cancelled"


class ServedModels:
    """The `ModelSource` of a replay."""

    how_to = "A replay has the models of its cassette, and no others."

    def __init__(self, of: Recorded, tape: Tape) -> None:
        self._of = of
        self._tape = tape

    def first(self) -> Serving | None:
        """The model of the first request."""
        for asked in self._of.requests:
            return Serving(provider=_model(asked), reason="it was recorded")
        return Serving(provider=Model("replay", "none"), reason="nothing was recorded")

    def at(self, asked: RecordedRequest) -> Serving:
        """The model of a request."""
        return Serving(provider=_model(asked), reason="it was recorded")

    def named(self, name: str, current: Provider | None) -> Serving:
        """None: the recording determines which model answers."""
        raise ConfigError(self.how_to)

    def for_agent(self, name: str, current: Provider | None) -> AgentModel:
        """None: sub-agents are not started."""
        raise ConfigError(_NO_AGENTS)

    def know(self, name: str | None, current: Provider | None) -> None:
        """Does nothing: no information about models is needed."""

    def ending(self, provider: Provider) -> str:
        """Always empty: there is no information about models."""
        return ""

    def refresh(self, provider: Provider) -> None:
        """Does nothing: nothing needs to be looked up."""

    def pro(self, current: Provider | None) -> Serving:
        """Like `named`."""
        raise ConfigError(self.how_to)

    def resilient(
        self, provider: Provider, follower: ModelListener, *, restarts: bool, ceiling: CostCeiling | None
    ) -> Provider:
        """The provider of one prompt: retries and fallbacks are replayed as recorded."""
        return Replaying(provider, follower, self._tape)

    def listed(self) -> Sequence[ModelEntry]:
        """None: no model can be selected."""
        return ()

    def patient(self, coding: bool) -> None:
        """Does nothing: there is nothing to wait for."""

    async def aclose(self) -> None:
        """Does nothing: there is nothing to close."""


def _model(asked: RecordedRequest) -> Model:
    return Model(asked.provider, asked.model, asked.window, asked.max_tools)


class Replaying(WrapperProvider):
    """A provider for one prompt with recorded answers."""

    def __init__(self, provider: Provider, follower: ModelListener, tape: Tape) -> None:
        super().__init__(provider)
        self._follower = follower
        self._tape = tape

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """The recorded answer, with the folders of this machine.

        Raises:
            ProviderError: if the recorded answer failed, and if none is left.
        """
        found = self._tape.next(request)
        if found is None or found.answer is None:
            if self._tape.was_cancelled:
                await self._cancelled()
            raise StreamBroken("The cassette has no answer to this request.", provider=self.name, final=True)
        for text in found.steered:
            self._tape.steer(self._tape.places.put_back(text))
        answer = found.answer
        if self._tape.pace:
            await asyncio.sleep(_PAUSE)
        for part in answer["parts"]:
            if part.get("kind") == "switched":
                yield self._switched(part)
                continue
            for delta in self._deltas(part):
                if self._tape.pace and isinstance(delta, (TextDelta, CallDelta)):
                    length = len(delta.text if isinstance(delta, TextDelta) else delta.arguments)
                    await asyncio.sleep(length / self._tape.pace)
                yield delta
        if answer.get("cancelled"):
            await self._cancelled()
        error = answer.get("error")
        if isinstance(error, Mapping):
            raise error_of({**error, "text": self._tape.places.put_back(str(error.get("text", "")))})

    async def _cancelled(self) -> None:
        """Cancel the prompt, as the person did."""
        self._tape.cancel()
        await asyncio.Event().wait()

    def _switched(self, part: Mapping[str, Any]) -> Switched:
        other = Model(str(part.get("provider")), str(part.get("name")), _size(part, "window"), _size(part, "max_tools"))
        self._provider = other
        if part.get("how") == "moved":
            self._follower.moved(other)
        else:
            self._follower.lent(other)
        reason = self._tape.places.put_back(str(part.get("reason", "")))
        return Switched(previous=str(part.get("previous")), model=str(part.get("model")), reason=reason)

    def _deltas(self, part: Mapping[str, Any]) -> list[Delta]:
        kind, written = part.get("kind"), str(part.get("text", ""))
        text = self._tape.places.put_back(written, in_json=kind == "call")
        pieces: Sequence[Sequence[float]] = part.get("pieces", [])
        before = sum(int(length) for _, length in pieces)
        if kind == "text":
            return [TextDelta(text=piece) for _, piece in cut_again(text, pieces, before)]
        if kind == "thinking":
            return [ThinkingDelta(text=piece) for _, piece in cut_again(text, pieces, before)]
        if kind == "call":
            cuts = [piece for _, piece in cut_again(text, pieces, before)]
            key = _size(part, "key") or 0
            first = CallDelta(key=key, id=str(part.get("id", "")), name=str(part.get("name", "")), arguments=cuts[0])
            return [first, *(CallDelta(key=key, arguments=piece) for piece in cuts[1:])]
        if kind == "usage":
            return [UsageDelta(usage=usage_of(part.get("usage")))]
        if kind == "retrying":
            return [Retrying(text=text)]
        if kind == "stop" and part.get("reason") in _STOPS:
            return [Stop(reason=part["reason"])]
        return []


def _size(part: Mapping[str, Any], name: str) -> int | None:
    value = part.get(name)
    return value if isinstance(value, int) and 0 <= value < _LARGE else None


def _nothing() -> None:
    """Does nothing: nothing is running."""
