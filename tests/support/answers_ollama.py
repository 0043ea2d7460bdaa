"""Ollama as the tests play it: scripted answers of /api/chat as it sends them, and the server around them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any, cast

from marvin_core.api.messages import Message
from marvin_core.api.providers import Delta, Endpoint, Request, Secret
from marvin_core.http.client import HttpSettings, make_client
from marvin_core.providers.ollama.provider import Ollama, create
from marvin_core.testing import Answer, ModelServer, RecordedRequest, document, error
from tests.support.chatting import TIMEOUTS, Transport, answer_of, request

USAGE: Mapping[str, int] = {"prompt_eval_count": 11, "eval_count": 7}
_STREAM = (("content-type", "application/x-ndjson"),)


class OllamaServer(ModelServer):
    """Answers each POST with the next answer of its script, and GET /api/tags with its models.

    What a model is, which is asked for before the first request, is answered with `shown`, and recorded in `shows`.
    """

    def __init__(self, *script: Answer, shown: Answer | None = None, **options: Any) -> None:
        self.shows: list[RecordedRequest] = []
        self._shown = shown or document({"model_info": {}})
        super().__init__(*script, **options)

    def record(self, request: RecordedRequest) -> None:
        """Take note of a request."""
        if request.path.endswith("/api/show"):
            self.shows.append(request)
        else:
            super().record(request)

    @property
    def url(self) -> str:
        """The address of the server itself."""
        return super().url.removesuffix("/v1")

    def answer_to(self, request: RecordedRequest) -> Answer:
        """What is answered to a request."""
        if request.method == "GET" and request.path == "/api/tags":
            return document({"models": [{"name": model, "model": model, "size": 1} for model in self.models]})
        if request.path.endswith("/api/show"):
            return self._shown
        return self.next_answer() if request.method == "POST" else error(404, "404 page not found")


def text(
    text: str,
    *,
    chunks: int | Sequence[str] = 1,
    thinking: str = "",
    usage: Mapping[str, Any] | None = USAGE,
    finish: str = "stop",
) -> Answer:
    """A plain answer, its text in `chunks` pieces of about the same size, or in the pieces given."""
    pieces: list[dict[str, Any]] = [{"content": "", "thinking": thinking}] if thinking else []
    return _answer([*pieces, *({"content": piece} for piece in _pieces(text, chunks))], finish, usage)


def calls(
    *calls: tuple[str, Mapping[str, Any]],
    text: str = "",
    ids: Sequence[str] = (),
    usage: Mapping[str, Any] | None = USAGE,
    finish: str = "stop",
) -> Answer:
    """An answer with tool calls, each a name and its arguments, after `text`; older versions give no `ids`."""
    items: list[dict[str, Any]] = [
        {"function": {"index": index, "name": name, "arguments": dict(arguments)}}
        for index, (name, arguments) in enumerate(calls)
    ]
    for item, call_id in zip(items, ids, strict=False):
        item["id"] = call_id
    pieces: list[dict[str, Any]] = [{"content": text}] if text else []
    return _answer([*pieces, *({"content": "", "tool_calls": [item]} for item in items)], finish, usage)


def lines(*documents: Mapping[str, Any] | str) -> Answer:
    """A stream of these lines: objects as JSON, text as it is."""
    written = [line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in documents]
    return Answer(headers=_STREAM, steps=tuple(f"{line}\n".encode() for line in written))


def connected(server: ModelServer, *, transport: Transport = "direct", silence: float = 50.0, **changes: Any) -> Ollama:
    """The adapter for a server; `changes` are fields of its endpoint."""
    given = Endpoint(
        provider="ollama", base_url=server.url, model="qwen3:8b", key=Secret(""), key_hint="", timeouts=TIMEOUTS
    ).replace(**changes)
    settings = HttpSettings(transport=transport, timeouts=TIMEOUTS)
    made = create(given, lambda: make_client(settings, timeout_read=silence, tls=None))
    return cast("Ollama", made)


def ask(*script: Answer, asked: Request | None = None, **options: Any) -> tuple[list[Delta], list[RecordedRequest]]:
    """One answer to one request, and what the server was asked for it."""
    models = options.pop("models", ("qwen3:8b",))

    async def run(server: ModelServer) -> list[Delta]:
        async with aclosing(connected(server, **options)) as provider:
            return await answer_of(provider, asked)

    with OllamaServer(*script, models=models) as server:
        return asyncio.run(run(server)), server.requests


def sent(*messages: Message, **options: Any) -> dict[str, Any]:
    """The body of a request with these messages."""
    fields = {name: options.pop(name) for name in list(options) if name in Request._defaults}
    _, requests = ask(text("ok"), asked=request(*messages, **fields), **options)
    body: dict[str, Any] = requests[-1].body
    return body


def _answer(messages: Sequence[Mapping[str, Any]], finish: str, usage: Mapping[str, Any] | None) -> Answer:
    head = {"model": "qwen3:8b", "created_at": "2026-01-01T00:00:00Z"}
    parts = [{**head, "message": {"role": "assistant", **message}, "done": False} for message in messages]
    end = {**head, "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": finish}
    return lines(*parts, {**end, "total_duration": 1, **(usage or {})})


def _pieces(text: str, chunks: int | Sequence[str]) -> Sequence[str]:
    if not isinstance(chunks, int):
        return chunks
    size = max(1, -(-len(text) // chunks))
    return [text[start : start + size] for start in range(0, len(text), size)]
