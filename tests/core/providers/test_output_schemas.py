"""The schema of an answer, in the words of each wire format; and what happens where a service refuses it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

import pytest

from marvin_core.api.messages import user
from marvin_core.api.providers import Request
from marvin_core.http.client import HttpSettings, make_client
from marvin_core.providers.http.schemas import is_strict
from marvin_core.providers.selection.catalog import WIRES
from marvin_core.testing import Answer, ModelServer, error, text
from marvin_core.util.imports import imported
from tests.core.providers.test_pairs import BY_NAME, LOOK
from tests.support import answers_anthropic, answers_responses
from tests.support.chatting import TIMEOUTS, answer_of, endpoint

LOOSE = {"type": "object", "properties": {"a": {"type": "integer"}}}
STRICT = {**LOOSE, "required": ["a"], "additionalProperties": False}
ANTHROPIC = {"output_config": {"format": {"type": "json_schema", "schema": STRICT}}}


def chat_form(schema: Mapping[str, Any], *, strict: bool) -> dict[str, Any]:
    form = {"name": "answer", "schema": schema, "strict": strict}
    return {"response_format": {"type": "json_schema", "json_schema": form}}


def responses_form(schema: Mapping[str, Any], *, strict: bool) -> dict[str, Any]:
    return {"text": {"format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": strict}}}


@pytest.mark.parametrize(
    ("name", "schema", "with_tools", "expected"),
    [
        ("plain", STRICT, True, chat_form(STRICT, strict=True)),
        ("plain", LOOSE, False, chat_form(LOOSE, strict=False)),
        ("mistral", STRICT, True, chat_form(STRICT, strict=True)),
        ("deepseek", STRICT, True, {"response_format": {"type": "json_object"}}),
        ("openai", STRICT, True, responses_form(STRICT, strict=True)),
        ("openai", LOOSE, True, responses_form(LOOSE, strict=False)),
        ("claude", STRICT, True, ANTHROPIC),
        ("ollama", STRICT, False, {"format": STRICT}),
        ("ollama", STRICT, True, {}),
    ],
)
def test_each_wire_asks_in_its_own_words(
    name: str, schema: Mapping[str, Any], with_tools: bool, expected: Mapping[str, Any]
) -> None:
    asked = Request(system="", messages=(user("x"),), tools=(LOOK,) if with_tools else (), output_schema=schema)
    wire = BY_NAME[name]
    body = json.loads(wire.provider()._body(asked))
    wire.check(body)
    named = ("response_format", "text", "output_config", "format")
    assert {field: body[field] for field in named if field in body} == expected


def test_effort_and_form_stand_side_by_side() -> None:
    asked = Request(system="", messages=(user("x"),), output_schema=STRICT, thinking="high")
    body = json.loads(BY_NAME["anthropic"].provider()._body(asked))
    assert body["output_config"] == {"effort": "high", **ANTHROPIC["output_config"]}


@pytest.mark.parametrize(
    ("wire", "said", "answer"),
    [
        ("chat-completions", "This response_format type is unavailable now", text("{}")),
        ("chat-completions", "Cannot use custom grammar constraints with tools.", text("{}")),
        ("chat-completions", "Function calling with a response mime type is unsupported: json mode", text("{}")),
        ("messages", "output_config.format.schema: For 'integer' type, 'minimum' is not supported", None),
        ("responses", "Invalid schema for text.format: additionalProperties is required", None),
    ],
)
def test_a_form_that_is_refused_is_asked_for_no_more(wire: str, said: str, answer: Answer | None) -> None:
    """What comes is checked in any case, so the run goes on without it."""
    answers = {"messages": answers_anthropic.text("{}"), "responses": answers_responses.text("{}")}
    good = answer or answers[wire]
    asked = Request(system="", messages=(user("x"),), output_schema=STRICT)

    async def run(server: ModelServer) -> None:
        settings = HttpSettings(timeouts=TIMEOUTS)
        make = imported("provider", WIRES[wire])
        provider: Any = make(
            endpoint(server.url, timeouts=TIMEOUTS), lambda: make_client(settings, timeout_read=50.0, tls=None)
        )
        async with aclosing(provider):
            for _ in range(2):
                await answer_of(provider, asked)

    with ModelServer(error(400, said), good, good) as server:
        asyncio.run(run(server))
        sent = [json.dumps(STRICT) in json.dumps(request.body) for request in server.requests]
    assert sent == [True, False, False]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (STRICT, True),
        (LOOSE, False),
        ({"type": "string", "enum": ["a"]}, True),
        ({"type": "array", "items": STRICT}, True),
        ({"type": "array", "items": LOOSE}, False),
        ({"type": "integer", "minimum": 1}, False),
        ({**STRICT, "properties": {"a": True}}, False),
        ({**STRICT, "required": []}, False),
        ({"$ref": "#/$defs/A"}, False),
        ({}, True),
    ],
)
def test_which_schemas_are_held_to_word_by_word(schema: Mapping[str, Any], expected: bool) -> None:
    assert is_strict(schema) is expected
