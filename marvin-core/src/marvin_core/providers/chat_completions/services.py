"""Differences between services with the chat completions format: the control of thinking, and the data to send back.

The sources are the services' own pages: ai.google.dev/gemini-api/docs/openai and .../thought-signatures,
console.groq.com/docs/reasoning, openrouter.ai/docs/use-cases/reasoning-tokens, api-docs.deepseek.com/guides/
thinking_mode, platform.moonshot.ai/docs, docs.z.ai/guides/capabilities/thinking-mode, docs.mistral.ai/inference/
conversations/reasoning, docs.x.ai/developers/model-capabilities/text/reasoning, and tools/server/README.md of
llama.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from ...api.providers import Endpoint, ThinkingLevel
from ...api.record import Record
from ..http.call_ids import NINE

Service: TypeAlias = Literal[
    "gemini", "groq", "openrouter", "llama-server", "deepseek", "moonshot", "zhipu", "mistral", "xai", ""
]

_NAMES: Mapping[str, Service] = {
    "gemini": "gemini",
    "groq": "groq",
    "openrouter": "openrouter",
    "llama-server": "llama-server",
    "local": "llama-server",
    "deepseek": "deepseek",
    "moonshot": "moonshot",
    "zhipu": "zhipu",
    "mistral": "mistral",
    "xai": "xai",
}
_HOSTS: Mapping[str, Service] = {
    "generativelanguage.googleapis.com": "gemini",
    "api.groq.com": "groq",
    "openrouter.ai": "openrouter",
    "api.deepseek.com": "deepseek",
    "api.moonshot.ai": "moonshot",
    "api.moonshot.cn": "moonshot",
    "api.z.ai": "zhipu",
    "open.bigmodel.cn": "zhipu",
    "api.mistral.ai": "mistral",
    "api.x.ai": "xai",
}
_ABOUT_THINKING = (
    "reasoning_effort",
    "reasoning",
    "reasoning_format",
    "extra_body",
    "chat_template_kwargs",
    "thinking",
)
_ABOUT_FORMAT = r"(?i)json.?(mode|schema|object)|response.?(format|mime)|structured.output|grammar"
_OLD_GEMINI = r"gemini-[12]\b"
_GEMINI_BUDGETS: Mapping[ThinkingLevel, int] = {"low": 1_024, "medium": 8_192, "high": 24_576}
"""Token budgets; Google's own table gives them for the three levels."""
_LEAST_GEMINI_BUDGET = 128
_GROK = r"grok-(\d+)(?:\.(\d+))?"
_GROK_WITH_LEVELS = (4, 3)
_LARGE_MISTRAL = r"mistral-large-(?:[4-9]|\d\d)\b(?!-\d{4})"
_ANY_ID = r"(?s).{1,40}"
"""The length limit of OpenAI and Azure for call ids; the service that created an id chooses its content."""


class Traits(Record):
    """The form of conversation that a service accepts.

    `ids` is the pattern of accepted call ids; with `keeps_ids`, its own ids are never changed. `alternating` means that
    a user's message may follow neither an output nor another user's message. With `fills`, each answer has a reasoning
    field, even if it is empty. `counts` and `parallel` mean that it supports the fields for token counts and parallel
    calls.
    """

    ids: str = _ANY_ID
    keeps_ids: bool = True
    alternating: bool = False
    fills: bool = False
    counts: bool = True
    parallel: bool = False


_TRAITS: Mapping[Service, Traits] = {
    "groq": Traits(parallel=True),
    "openrouter": Traits(parallel=True),
    "llama-server": Traits(parallel=True),
    "xai": Traits(parallel=True),
    "deepseek": Traits(fills=True),
    "moonshot": Traits(fills=True),
    "mistral": Traits(ids=NINE, keeps_ids=False, alternating=True, counts=False, parallel=True),
}


def service_of(endpoint: Endpoint) -> Service:
    """The service of an endpoint, derived from its host, or else from the provider's name; empty for any other."""
    try:
        host = urlsplit(endpoint.base_url).hostname or ""
    except ValueError:
        host = ""
    return _HOSTS.get(host) or _NAMES.get(endpoint.provider, "")


def traits_of(service: Service) -> Traits:
    """The form of conversation that a service accepts, as far as known before the first request."""
    return _TRAITS.get(service) or Traits()


def learnt(traits: Traits, said: str) -> Traits:
    """The requirements of the model behind a server, learned from a rejection; unchanged if it shows nothing new.

    Models of Mistral and others have requirements of their own, on any server.
    """
    if re.search(r"length (of )?9\b", said):
        return traits.replace(ids=NINE, keeps_ids=False)
    if re.search(r"must alternate|role '?user'? after role '?tool|2 or more assistant messages", said):
        return traits.replace(alternating=True)
    if "reasoning_content" in said and re.search(r"must be (passed|provided|included)|missing|required", said):
        return traits.replace(fills=True)
    return traits


def thinking_fields(service: Service, model: str, level: ThinkingLevel) -> dict[str, Any]:
    """The fields that set the thinking effort. Off is the lowest effort that the service supports."""
    off = level == "off"
    match service:
        case "gemini":
            return _gemini(model, level)
        case "groq":
            return _groq(model, level)
        case "xai":
            return _xai(model, level)
        case "openrouter":
            return {"reasoning": {"effort": "none" if off else level}}
        case "deepseek":
            return {"thinking": {"type": "disabled"}} if off else {**_ENABLED, "reasoning_effort": level}
        case "moonshot":
            return {"thinking": {"type": "disabled"}} if off else dict(_ENABLED)
        case "zhipu":
            # Otherwise the service drops the thinking of earlier turns, which invalidates the cache and loses context.
            return {"thinking": {"type": "disabled"} if off else {"type": "enabled", "clear_thinking": False}}
        case "mistral":
            return _mistral(model, level)
        case "llama-server":
            # The options of different models' templates; each ignores unknown ones.
            effort = "low" if off else level
            return {"chat_template_kwargs": {"enable_thinking": not off, "reasoning_effort": effort}}
    return {} if off else {"reasoning_effort": level}


_ENABLED: Mapping[str, Any] = {"thinking": {"type": "enabled"}}


def format_field(service: Service, schema: Mapping[str, Any], *, strict: bool) -> dict[str, Any]:
    """The field that requests an answer of this JSON schema; services without schemas at least support JSON."""
    if service == "deepseek":
        return {"response_format": {"type": "json_object"}}
    form = {"name": "answer", "schema": schema, "strict": strict}
    return {"response_format": {"type": "json_schema", "json_schema": form}}


def cache_control(service: Service, endpoint: Endpoint) -> Mapping[str, Any] | None:
    """The mark by which a gateway uses Claude's cache, which is off by default; None if no mark is needed."""
    if service != "openrouter" or "claude" not in endpoint.model:
        return None
    return {"type": "ephemeral", "ttl": "1h"} if endpoint.cache == "1h" else {"type": "ephemeral"}


def placeholder_signature(service: Service, model: str) -> Mapping[str, Any] | None:
    """The placeholder for the signature of a call that another model made; None if none is required.

    Since Gemini 3, Google rejects a request with an unsigned call.
    """
    if service != "gemini" or re.search(_OLD_GEMINI, model):
        return None
    return {"extra_content": {"google": {"thought_signature": "skip_thought_signature_validator"}}}


def refused_fields(sent: Collection[str], said: str) -> set[str]:
    """The optional fields that the text of a rejection names."""
    named = {field for field in sent if re.search(rf"(?<!\w){field}(?!\w)", said)}
    if "response_format" in sent and re.search(_ABOUT_FORMAT, said):
        return {"response_format"}
    if named or not re.search(r"reasoning|think", said, re.IGNORECASE):
        return named
    return {field for field in sent if field in _ABOUT_THINKING}


def refused_in_answers(sent: Collection[str], said: str) -> set[str]:
    """The fields sent back with answers that the text of a rejection names."""
    return {field for field in sent if re.search(_named(field), said)}


def _named(field: str) -> str:
    # Only in quotation marks if the name is also a common word.
    return rf"\b{field}\b" if "_" in field else rf"[^\w\s]{field}[^\w\s]"


def _gemini(model: str, level: ThinkingLevel) -> dict[str, Any]:
    if not re.search(_OLD_GEMINI, model):
        return _google(thinking_level=_gemini_level(model, level), **_shown(level))
    if "2.5" not in model:
        return {}
    if level == "off" and "flash" in model:
        return {"reasoning_effort": "none"}
    return _google(thinking_budget=_GEMINI_BUDGETS.get(level, _LEAST_GEMINI_BUDGET), **_shown(level))


def _gemini_level(model: str, level: ThinkingLevel) -> str:
    if level == "off":
        return "minimal" if "flash" in model else "low"  # their thinking cannot be disabled
    # The first of them supports two levels; Google's table maps medium to the upper one.
    return "high" if level == "medium" and "gemini-3-pro" in model else level


def _shown(level: ThinkingLevel) -> dict[str, bool]:
    return {} if level == "off" else {"include_thoughts": True}


def _google(**config: Any) -> dict[str, Any]:
    # The name is sent unchanged. `reasoning_effort` together with it is rejected.
    return {"extra_body": {"google": {"thinking_config": config}}}


def _groq(model: str, level: ThinkingLevel) -> dict[str, Any]:
    if "gpt-oss" in model:
        return {"reasoning_effort": "low" if level == "off" else level}
    if "qwen3" in model:
        return {"reasoning_effort": "none" if level == "off" else "default", "reasoning_format": "parsed"}
    return {}


def _xai(model: str, level: ThinkingLevel) -> dict[str, Any]:
    if "reasoning" in model:
        return {}  # these exist as two models, one with thinking and one without
    found = re.search(_GROK, model)
    version = (int(found[1]), int(found[2] or 0)) if found else _GROK_WITH_LEVELS
    if level == "off":
        return {"reasoning_effort": "none"} if version >= _GROK_WITH_LEVELS else {}
    return {"reasoning_effort": level}


def _mistral(model: str, level: ThinkingLevel) -> dict[str, Any]:
    large = re.search(_LARGE_MISTRAL, model) is not None
    if level == "off":
        return {"reasoning_effort": "none"} if large else {}  # the others do not think by default
    return {"reasoning_effort": level if large else "high"}
