"""What services that speak chat completions differ in: how they are told to think, and what they want back.

The sources are the services' own pages: ai.google.dev/gemini-api/docs/openai and .../thought-signatures,
console.groq.com/docs/reasoning, openrouter.ai/docs/use-cases/reasoning-tokens, and tools/server/README.md of
llama.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from ...api.providers import Endpoint, ThinkingLevel

Service: TypeAlias = Literal["gemini", "groq", "openrouter", "llama-server", ""]

_NAMES: Mapping[str, Service] = {
    "gemini": "gemini",
    "groq": "groq",
    "openrouter": "openrouter",
    "llama-server": "llama-server",
}
_HOSTS: Mapping[str, Service] = {
    "generativelanguage.googleapis.com": "gemini",
    "api.groq.com": "groq",
    "openrouter.ai": "openrouter",
}
_ABOUT_THINKING = ("reasoning_effort", "reasoning", "reasoning_format", "extra_body", "chat_template_kwargs")
_OLD_GEMINI = re.compile(r"gemini-[12]\b")
_GEMINI_BUDGETS: Mapping[ThinkingLevel, int] = {"low": 1_024, "medium": 8_192, "high": 24_576}
"""Tokens; those that Google's own table gives for the three levels."""


def service_of(endpoint: Endpoint) -> Service:
    """The service behind an endpoint, told by its host, else by the provider's name; empty for any other."""
    try:
        host = urlsplit(endpoint.base_url).hostname or ""
    except ValueError:
        host = ""
    return _HOSTS.get(host) or _NAMES.get(endpoint.provider, "")


def thinking_fields(service: Service, model: str, level: ThinkingLevel) -> dict[str, Any]:
    """The fields that set how much a model thinks. Off is the field that says so, where there is one."""
    if service == "gemini":
        return _gemini(model, level)
    if service == "groq":
        return _groq(model, level)
    if service == "openrouter":
        return {"reasoning": {"effort": "none" if level == "off" else level}}
    if service == "llama-server":
        effort = {} if level == "off" else {"reasoning_effort": level}
        return {"chat_template_kwargs": {"enable_thinking": level != "off", **effort}}
    return {} if level == "off" else {"reasoning_effort": level}


def placeholder_signature(service: Service, model: str) -> Mapping[str, Any] | None:
    """What stands for the signature of a call that another model made; None where none is asked for.

    From Gemini 3 on, a call without a signature makes Google refuse the request.
    """
    if service != "gemini" or _OLD_GEMINI.search(model):
        return None
    return {"extra_content": {"google": {"thought_signature": "skip_thought_signature_validator"}}}


def refused_fields(sent: Collection[str], said: str) -> set[str]:
    """Which of the optional fields that were sent the text of a refusal is about."""
    named = {field for field in sent if field in said}
    if named or not re.search(r"reasoning|think", said, re.IGNORECASE):
        return named
    return {field for field in sent if field in _ABOUT_THINKING}


def _gemini(model: str, level: ThinkingLevel) -> dict[str, Any]:
    if level == "off":
        # The others cannot be told not to think.
        return {"reasoning_effort": "none"} if "gemini-2.5-flash" in model else {}
    config: dict[str, Any] = {"include_thoughts": True}
    if _OLD_GEMINI.search(model):
        if "2.5" not in model:
            return {}
        config["thinking_budget"] = _GEMINI_BUDGETS[level]
    else:
        # The first of them knows two levels; Google's table takes medium for the upper one.
        config["thinking_level"] = "high" if level == "medium" and "gemini-3-pro" in model else level
    # The name is sent as it stands. `reasoning_effort` beside it is refused.
    return {"extra_body": {"google": {"thinking_config": config}}}


def _groq(model: str, level: ThinkingLevel) -> dict[str, Any]:
    if "gpt-oss" in model:
        return {} if level == "off" else {"reasoning_effort": level}
    if "qwen3" in model:
        return {"reasoning_effort": "none" if level == "off" else "default", "reasoning_format": "parsed"}
    return {}
