"""What the tests of providers share: an adapter on a real client, and its answer as a list."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Literal, cast

from marvin_core.api.messages import Message, user
from marvin_core.api.providers import CallDelta, Delta, Endpoint, Provider, Request, Secret, TextDelta, ThinkingDelta
from marvin_core.api.timeouts import Timeouts
from marvin_core.http.client import HttpSettings, make_client
from marvin_core.providers.chat_completions.provider import ChatCompletions
from marvin_core.testing import Answer, ModelServer, RecordedRequest

KEY = "sk-test-0123456789abcdef"
TIMEOUTS = Timeouts(http=50.0, retry_backoff=(0.0, 0.0, 0.0), model_list=50.0)
Transport = Literal["direct", "stock"]
TRANSPORTS: Sequence[Transport] = ("direct", "stock")


def endpoint(base_url: str, **changes: Any) -> Endpoint:
    given = Endpoint(provider="acme", base_url=base_url, model="scripted", key=Secret(KEY), key_hint="ACME_API_KEY")
    return given.replace(**changes)


def chat(
    base_url: str,
    *,
    transport: Transport = "direct",
    silence: float = 50.0,
    timeouts: Timeouts = TIMEOUTS,
    **changes: Any,
) -> ChatCompletions:
    """The adapter; `changes` are fields of its endpoint."""
    settings = HttpSettings(transport=transport, timeouts=timeouts)
    return ChatCompletions(
        endpoint(base_url, timeouts=timeouts, **changes),
        lambda: make_client(settings, timeout_read=silence, tls=None),
    )


def request(*messages: Message, **fields: Any) -> Request:
    return Request(**{"system": "Be brief.", "messages": messages or (user("Hello"),), **fields})


async def answer_of(
    provider: Provider, asked: Request | None = None, *, into: list[Delta] | None = None
) -> list[Delta]:
    """All deltas of one answer; `into` also has those that came before an error."""
    deltas: list[Delta] = [] if into is None else into
    stream = cast("AsyncGenerator[Delta, None]", provider.stream(asked or request()))
    async with aclosing(stream):
        async for delta in stream:
            deltas.append(delta)  # noqa: PERF401  # what came before an error stays
    return deltas


def ask(*script: Answer, asked: Request | None = None, **options: Any) -> tuple[list[Delta], list[RecordedRequest]]:
    """One answer to one request, and what the server was asked for it."""

    async def run(server: ModelServer) -> list[Delta]:
        provider = chat(server.url, **options)
        try:
            return await answer_of(provider, asked)
        finally:
            await provider.aclose()

    with ModelServer(*script) as server:
        return asyncio.run(run(server)), server.requests


def merged(deltas: Sequence[Delta]) -> list[Delta]:
    """The deltas with neighbours of one kind joined: what does not depend on how reads fell."""
    out: list[Delta] = []
    for delta in deltas:
        last = out[-1] if out else None
        if isinstance(delta, TextDelta) and isinstance(last, TextDelta):
            out[-1] = TextDelta(text=last.text + delta.text)
        elif isinstance(delta, ThinkingDelta) and isinstance(last, ThinkingDelta):
            data = last.provider_data or delta.provider_data
            out[-1] = ThinkingDelta(text=last.text + delta.text, provider_data=data)
        elif isinstance(delta, CallDelta) and isinstance(last, CallDelta) and delta.key == last.key:
            out[-1] = last.replace(arguments=last.arguments + delta.arguments)
        else:
            out.append(delta)
    return out


def text_of(deltas: Sequence[Delta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


def calls_of(deltas: Sequence[Delta]) -> list[tuple[str, str, str]]:
    """Each call as (id, name, arguments)."""
    found: dict[int, tuple[str, str, str]] = {}
    for delta in deltas:
        if isinstance(delta, CallDelta):
            call_id, name, arguments = found.get(delta.key, ("", "", ""))
            found[delta.key] = (call_id or delta.id, name or delta.name, arguments + delta.arguments)
    return list(found.values())


def chunk(delta: Mapping[str, Any], finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chunk of a stream, as a service sends it."""
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **fields}


def call_piece(arguments: object = "", **fields: Any) -> dict[str, Any]:
    """A chunk with one entry of `tool_calls`; `name` goes into its function."""
    function = {"arguments": arguments}
    if "name" in fields:
        function["name"] = fields.pop("name")
    return chunk({"tool_calls": [{**fields, "function": function}]})
