"""The end dates of models as announced by their services, and the replacements that the services name.

The sources, read in November 2026: developers.openai.com/api/docs/deprecations, help.openai.com "Using Codex with your
ChatGPT plan", platform.claude.com/docs/en/about-claude/model-deprecations, ai.google.dev/gemini-api/docs/deprecations,
console.groq.com/docs/deprecations. A date in a service's own list of models takes precedence.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import TypeAlias

from ..generations import base_name

SOON = 60
"""The number of days before the end of a model from which on the user is notified."""

_Ends: TypeAlias = Mapping[str, tuple[str, str]]
_DATED = r"-(20\d{6}|20\d\d-\d\d-\d\d)$"
"""The ending of the name of a model's snapshot; the snapshot ends with the model."""

ENDS: Mapping[str, _Ends] = {
    "openai": {
        "o1": ("2026-10-23", "gpt-5.6-sol"),
        "o3-mini": ("2026-10-23", "gpt-5.6-sol"),
        "o4-mini": ("2026-10-23", "gpt-5.6-terra"),
        "gpt-4": ("2026-10-23", "gpt-5.6-sol"),
        "gpt-4-turbo": ("2026-10-23", "gpt-5.6-sol"),
        "gpt-4.1-nano": ("2026-10-23", ""),
        "gpt-5": ("2026-12-11", "gpt-6.1-sol"),
        "gpt-5-mini": ("2026-12-11", "gpt-6.1-terra"),
        "gpt-5-nano": ("2026-12-11", "gpt-6-luna"),
        "gpt-5-pro": ("2026-12-11", "gpt-5.6-sol"),
        "o3": ("2026-12-11", "gpt-5.6-sol"),
        "o3-pro": ("2026-12-11", "gpt-5.6-sol"),
        "gpt-4.1": ("2027-01-14", "gpt-6-luna"),
        "gpt-4.1-mini": ("2027-01-14", "gpt-6-luna"),
        "gpt-4o": ("2027-01-14", "gpt-6-luna"),
        "gpt-4o-mini": ("2027-01-14", "gpt-6-luna"),
        "gpt-5.1": ("2027-04-01", ""),
        "gpt-5.3-codex": ("2027-04-01", ""),
        "gpt-5.4-nano": ("2027-04-01", ""),
    },
    "codex": {
        "gpt-5.1": ("2026-04-14", "gpt-5.6-sol"),
        "gpt-5.2": ("2026-06-02", "gpt-5.6-sol"),
        "gpt-5.3-codex": ("2026-06-02", "gpt-5.6-sol"),
        "gpt-5.4": ("2026-08-31", "gpt-5.6-terra"),
        "gpt-5.4-mini": ("2026-08-31", "gpt-5.6-luna"),
    },
    "anthropic": {
        "claude-sonnet-4": ("2026-06-15", "claude-sonnet-4-6"),
        "claude-opus-4": ("2026-06-15", "claude-opus-4-8"),
        "claude-opus-4-1": ("2026-08-05", ""),
        "claude-sonnet-4-5": ("2026-11-30", "claude-sonnet-4-6"),
    },
    "gemini": {
        "gemini-3-pro-preview": ("2026-03-09", "gemini-3.1-pro-preview"),
        "gemini-2.0-flash": ("2026-06-01", "gemini-3.5-flash-lite"),
        "gemini-2.5-pro": ("2026-12-01", "gemini-3.8-flash"),
        "gemini-2.5-flash": ("2026-12-01", "gemini-3.5-flash-lite"),
    },
    "groq": {
        "qwen/qwen3-32b": ("2026-07-17", "openai/gpt-oss-120b"),
        "llama-3.3-70b-versatile": ("2026-08-16", "openai/gpt-oss-120b"),
        "llama-3.1-8b-instant": ("2026-08-16", "openai/gpt-oss-20b"),
    },
}
"""For each service and model, the end date and the replacement that the service names, if any."""


def end_of(provider: str, model: str) -> str:
    """The end date of a model, such as 2026-12-11; empty if unknown."""
    return _entry(provider, model)[0]


def heir_of(provider: str, model: str) -> str:
    """The replacement that the service names for a model; empty if it names none."""
    return _entry(provider, model)[1]


def has_ended(day: str) -> bool:
    """Whether this date is past; false for an empty one."""
    return bool(day) and day < _day(0)


def ends_soon(day: str) -> bool:
    """Whether this date is past, or within the next sixty days; false for an empty one."""
    return bool(day) and day <= _day(SOON)


def _entry(provider: str, model: str) -> tuple[str, str]:
    ends = ENDS.get(provider)
    if ends is None:
        return "", ""
    name = model.lower()
    return ends.get(name) or ends.get(re.sub(_DATED, "", base_name(name))) or ("", "")


def _day(ahead: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(time.time() + ahead * 24 * 3600))
