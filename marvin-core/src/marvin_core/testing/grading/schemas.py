"""Checks whether model services accept the tools of a pack, with the adapters that send their schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from jsonschema import Draft202012Validator, SchemaError

from ...api.messages import user
from ...api.providers import Endpoint, Request, Secret
from ...api.tools import ToolSpec
from ...providers.anthropic.request import AnthropicWire
from ...providers.chat_completions.request import ChatWire
from ...providers.ollama.request import OllamaWire
from ...providers.responses.request import ResponsesWire
from .findings import Finding, found

# The limits of OpenAI for a description (platform.openai.com/docs/api-reference), and of Anthropic for a parameter name
# (platform.claude.com/docs/en/api/messages).
_LONGEST_DESCRIPTION = 1024
_IS_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}").fullmatch
_ADAPTERS: Mapping[str, Callable[[Request], bytes]] = {
    "anthropic": lambda request: AnthropicWire(_endpoint("anthropic")).body(request),
    "openai": lambda request: ChatWire(_endpoint("openai")).body(request, {}),
    "gemini": lambda request: ChatWire(_endpoint("gemini")).body(request, {}),
    "responses": lambda request: ResponsesWire(_endpoint("openai")).body(request),
    "ollama": lambda request: OllamaWire("ollama", "model", None).body(request, window=8192, with_think=False),
}


def schema_findings(tools: Sequence[ToolSpec]) -> list[Finding]:
    """The findings about the schemas and their descriptions."""
    return [
        found("schemas", [problem for spec in tools for problem in _problems(spec)]),
        found("described", [problem for spec in tools for problem in _undescribed(spec)]),
    ]


def _endpoint(provider: str) -> Endpoint:
    return Endpoint(provider=provider, base_url="https://example.com/v1", model="model", key=Secret(""), key_hint="")


def _problems(spec: ToolSpec) -> Iterator[str]:
    try:
        Draft202012Validator.check_schema(dict(spec.parameters))
    except SchemaError as error:
        yield f"{spec.name}: its schema is not valid JSON Schema: {error.message}"
    if len(spec.description) > _LONGEST_DESCRIPTION:
        yield f"{spec.name}: its description has more than {_LONGEST_DESCRIPTION} characters"
    for name in spec.parameters.get("properties", {}):
        if not _IS_PROPERTY(name):
            yield f"{spec.name}: some services refuse the parameter name {name!r}"
    request = Request(system="", messages=(user("hello"),), tools=(spec,))
    for adapter, body in _ADAPTERS.items():
        try:
            json.loads(body(request))
        except Exception as error:  # any error of an adapter is caused by the pack
            yield f"{spec.name}: the adapter of {adapter} cannot send it: {type(error).__name__}: {error}"


def _undescribed(spec: ToolSpec) -> Iterator[str]:
    for name, schema in spec.parameters.get("properties", {}).items():
        if not schema.get("description"):
            yield f"{spec.name}: its parameter {name} has no description"
