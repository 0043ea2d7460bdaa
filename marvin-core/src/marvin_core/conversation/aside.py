"""One question to a model outside of the conversation. Its usage is counted like that of any answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, cast

from ..api.events import UsageReport
from ..api.messages import Usage
from ..api.providers import Delta, Provider, Request, Retrying, Stop, Switched, TextDelta, UsageDelta
from ..api.record import Record
from ..util.bus import Bus
from ..util.numbers import sound

if TYPE_CHECKING:
    from ..api.models import Meter


class Aside(Record):
    """The model to ask. The meter counts its usage."""

    provider: Provider
    meter: Meter
    bus: Bus

    async def ask(self, request: Request) -> PartialAnswer:
        """One request. Its usage is counted, however it ends. Raises as `Provider.stream` does."""
        provider = self.provider
        came = PartialAnswer(provider)
        complete = False
        try:
            async with aclosing(cast("AsyncGenerator[Delta, None]", provider.stream(request))) as deltas:
                async for delta in deltas:
                    if isinstance(delta, (Retrying, Switched)):
                        self._count_part(came)
                        came = PartialAnswer(provider)
                    else:
                        came.take(delta)
            complete = True
        finally:
            if not complete:
                self._count_part(came)
        usage = sound(came.usage or Usage())
        whole = bool(usage.input_tokens and (usage.output_tokens or not came.text))
        cost = await self.meter.count(came.provider, came.model, usage, whole=whole)
        self.bus.emit(UsageReport(provider=came.provider, model=came.model, usage=usage, cost=cost))
        return came

    def _count_part(self, came: PartialAnswer) -> None:
        """Count the known usage of an incomplete answer."""
        if came.begun:
            self.meter.add(came.provider, came.model, came.usage or Usage(), whole=not came.text)


class PartialAnswer:
    """The partial result of one attempt at an answer."""

    def __init__(self, provider: Provider) -> None:
        self.provider, self.model = provider.name, provider.model
        self.text = ""
        self.begun = False
        self.usage: Usage | None = None
        self.reason = "stop"

    def take(self, delta: Delta) -> None:
        """Add a part."""
        self.begun = True
        if isinstance(delta, TextDelta):
            self.text += delta.text
        elif isinstance(delta, UsageDelta):
            self.usage = delta.usage
        elif isinstance(delta, Stop):
            self.reason = delta.reason
