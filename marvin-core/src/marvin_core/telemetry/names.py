"""Names in OpenTelemetry's conventions for generative AI, and Marvin's own names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
AGENT = "gen_ai.agent.name"
CONVERSATION = "gen_ai.conversation.id"
REQUEST_MODEL = "gen_ai.request.model"
MAX_TOKENS = "gen_ai.request.max_tokens"
FINISH_REASONS = "gen_ai.response.finish_reasons"
FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHE_READ = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE = "gen_ai.usage.cache_creation.input_tokens"
USAGE_KIND = "gen_ai.token.type"
TOOL_NAME = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_CALL = "gen_ai.tool.call.id"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"
INSTRUCTIONS = "gen_ai.system_instructions"
INPUT = "gen_ai.input.messages"
OUTPUT = "gen_ai.output.messages"
ERROR = "error.type"
STATUS = "http.response.status_code"
ADDRESS = "server.address"
PORT = "server.port"
COST = "marvin.cost"
STOP_REASON = "marvin.stop_reason"
ORIGIN = "marvin.tool.origin"
ROUNDS = "marvin.rounds"

USAGE = "gen_ai.client.token.usage"
DURATION = "gen_ai.client.operation.duration"
TOOL_DURATION = "marvin.tool.duration"

CANCELLED = "cancelled"
OTHER = "_OTHER"

_PROVIDERS: Mapping[str, str] = {"gemini": "gcp.gemini", "mistral": "mistral_ai", "xai": "x_ai", "codex": "openai"}
"""The names of services in the conventions, where they differ."""
_REASONS: Mapping[str, str] = {"tool_calls": "tool_call", "refused": "content_filter"}
_PORTS: Mapping[str, int] = {"http": 80, "https": 443}


def provider_name(name: str) -> str:
    """The name of a model service in the conventions."""
    return _PROVIDERS.get(name, name)


def finish_reason(reason: str) -> str:
    """The stop reason of an answer in the conventions."""
    return _REASONS.get(reason, reason)


def server(base_url: str) -> dict[str, Any]:
    """The attributes of a service's address: its host and port only."""
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname, parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return {}
    if not host:
        return {}
    return {ADDRESS: host} if port is None else {ADDRESS: host, PORT: port}
