"""The adapter for GitHub Copilot through the SDK of its own program, and for other services through the same SDK.

The runtime behind the SDK keeps the conversation and runs the loop of tool calls itself. So one session of the runtime
is kept for one conversation. A new session is created, with the transcript as its first message, if ours does not
continue what the session has received: after a switch of the model, a compaction, a fork, or an incomplete answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from ...api.errors import ConfigError, ProviderError
from ...api.providers import ClientFactory, Delta, Endpoint, Provider, Request, ServedModel, Stop
from ..wrapper import EndpointProvider
from .answer import CopilotAnswer
from .installation import required_program
from .patience import Patience
from .runtime import Runtime
from .session import CopilotSession, Setup
from .transcript import RuntimeTranscript, whole, with_news


def create(endpoint: Endpoint, client: ClientFactory) -> Provider:
    """The provider for an endpoint; with a base URL it uses the service there, without a login.

    Raises:
        ConfigError: the SDK or its program is missing.
    """
    return Copilot(endpoint, client)


class Copilot(EndpointProvider):
    """A model that Copilot's runtime serves."""

    unlimited = True

    def __init__(self, endpoint: Endpoint, client: ClientFactory) -> None:
        if endpoint.environment is None:
            raise ConfigError("Copilot's program needs the environment that it is to run in.")
        environment = endpoint.environment()
        super().__init__(endpoint)
        self._make_client = client
        self._runtime = Runtime(endpoint, required_program(environment), environment)
        self._session: CopilotSession | None = None
        self._known: RuntimeTranscript | None = None

    async def aclose(self) -> None:
        """End the runtime and everything it is doing."""
        self._session = self._known = None
        await self._runtime.stop()

    async def served(self) -> list[ServedModel]:
        """The models available to the account; see `Lists`."""
        if self._endpoint.base_url:
            return []
        from .errors import typed

        client = await self._runtime.client()
        try:
            return [ServedModel(name=model.id) for model in await client.list_models()]
        except Exception as error:  # the SDK raises whatever its parts raise
            raise typed(self._endpoint, str(error)) from None

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """The answer, piece by piece; see `Provider.stream`."""
        setup = Setup(request)
        answer = CopilotAnswer(self._endpoint, {tool.name for tool in setup.tools})
        known, self._known = self._known, None
        now = asyncio.get_running_loop().time
        try:
            session = await self._sent(request, setup, known)  # which may have to start the runtime first
            patience = Patience(self._endpoint, self._make_client().timeout.read, now())
            while True:
                for delta in answer.feed(await self._next_event(session, patience)):
                    yield delta
                if answer.failure is not None:
                    raise answer.failure
                if answer.stop is not None:
                    break
                late = patience.heard(answer.progress, now())
                if late is not None:
                    raise late
            if answer.whole:
                self._known = RuntimeTranscript(
                    messages=request.messages,
                    provider=self.name,
                    model=self.model,
                    text=answer.text,
                    calls=answer.calls,
                )
        finally:
            if self._known is None:
                await self._drop()
        yield Stop(reason=answer.stop)

    async def _sent(self, request: Request, setup: Setup, known: RuntimeTranscript | None) -> CopilotSession:
        """The session for the answer: the current one if the request continues it, otherwise a new one."""
        session = self._session
        try:
            if session is not None and known is not None and session.setup.allows(setup):
                step = known.step(request.messages)
                if step is not None:
                    prompt = step.prompt
                    if prompt is not None and setup.news != session.news:
                        prompt, session.news = with_news(prompt, setup.news), setup.news
                    if prompt is not None:
                        await session.send(prompt, steering=bool(step.outputs))
                    session.answer(step.outputs)
                    return session
            await self._drop()
            self._session = session = CopilotSession(self._runtime, setup)
            await session.begin(self._endpoint)
            await session.send(whole(request.messages))
            return session
        except ProviderError:
            raise
        except Exception as error:  # the SDK raises whatever its parts raise
            from .errors import typed

            raise typed(self._endpoint, str(error)) from None

    async def _next_event(self, session: CopilotSession, patience: Patience) -> Any:
        now = asyncio.get_running_loop().time
        try:
            event = await session.next_event(patience.left(now()), self._endpoint.timeouts.runtime_poll)
        except TimeoutError:
            raise patience.over(now()) from None
        if event is None:
            from .errors import died

            raise died(self._endpoint)
        return event

    async def _drop(self) -> None:
        """Discard the current session, and stop what it is doing."""
        session, self._session = self._session, None
        if session is not None:
            await session.end(self._endpoint.timeouts.close)
