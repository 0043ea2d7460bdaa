"""The form of requests and answers in a cassette: plain JSON values, independent of any wire format."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..api import errors
from ..api.errors import ConfigError, MarvinError, ProviderError
from ..api.messages import Message, Usage, from_dict, to_dict
from ..api.providers import CallDelta, Delta, Request, Retrying, Stop, TextDelta, ThinkingDelta, UsageDelta
from ..api.tools import ToolSpec

_OPAQUE = ("provider_data", "usage")
"""Data that a service adds for its own use: a replay does not need it, and it may be large."""
_TOLD: Mapping[str, type] = {
    "status": int,
    "retry_after": float,
    "window": int,
    "served": list,
    "sent": bool,
    "final": bool,
}
"""The attributes of provider errors besides their text, with their JSON types."""
_LARGE = 1e12


def message_value(message: Message) -> dict[str, Any]:
    """A message without data that belongs to one service."""
    value = {name: inner for name, inner in to_dict(message).items() if name not in _OPAQUE}
    value["content"] = [_block(block) for block in value["content"]]
    return value


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    return {name: inner for name, inner in block.items() if name not in _OPAQUE}


def request_value(request: Request) -> dict[str, Any]:
    """A request as passed to the provider, independent of the wire format."""
    return {
        "system": request.system,
        "messages": [message_value(message) for message in request.messages],
        "tools": [_offered(spec) for spec in request.tools],
        "waiting": sorted(spec.name for spec in request.waiting),
        "tool_choice": request.tool_choice,
        "thinking": request.thinking,
        "max_output_tokens": request.max_output_tokens,
        "output_schema": json.loads(json.dumps(request.output_schema, default=dict)),
    }


def _offered(spec: ToolSpec) -> dict[str, Any]:
    parameters = json.loads(json.dumps(spec.parameters, default=dict))
    return {"name": spec.name, "description": spec.description, "parameters": parameters}


def digest(value: Any) -> str:
    """The SHA-256 of a JSON value, independent of the order of its keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class Answered:
    """Collects the parts of an answer. The parts of one block are joined, so that no secret hides between two parts."""

    def __init__(self) -> None:
        self.parts: list[dict[str, Any]] = []

    def take(self, delta: Delta, at: float) -> None:
        """Add a piece; `at` is in seconds."""
        if isinstance(delta, TextDelta):
            self._grow({"kind": "text"}, delta.text, at)
        elif isinstance(delta, ThinkingDelta):
            self._grow({"kind": "thinking"}, delta.text, at)
        elif isinstance(delta, CallDelta):
            part = self._grow({"kind": "call", "key": delta.key}, delta.arguments, at)
            part.update({name: value for name, value in (("id", delta.id), ("name", delta.name)) if value})
        elif isinstance(delta, UsageDelta):
            used = {name: value for name, value in delta.usage.as_dict().items() if value}
            self.parts.append({"kind": "usage", "usage": used, "at": at})
        elif isinstance(delta, Retrying):
            self.parts.append({"kind": "retrying", "text": delta.text, "at": at})
        elif isinstance(delta, Stop):
            self.parts.append({"kind": "stop", "reason": delta.reason, "at": at})

    def add(self, part: Mapping[str, Any]) -> None:
        """Add an event that is not a part of the answer itself."""
        self.parts.append(dict(part))

    def clean(self, texts: Callable[[list[str]], list[str]]) -> None:
        """Change the texts of the answer and of its thinking, each as joined texts."""
        for kind in ("text", "thinking"):
            parts = [part for part in self.parts if part["kind"] == kind]
            for part, text in zip(parts, texts([part["text"] for part in parts]) if parts else (), strict=True):
                part["text"] = text

    def _grow(self, head: Mapping[str, Any], text: str, at: float) -> dict[str, Any]:
        part = self._open(head)
        if part is None:
            part = {**head, "text": "", "pieces": []}
            self.parts.append(part)
        part["text"] += text
        part["pieces"].append([at, len(text)])
        return part

    def _open(self, head: Mapping[str, Any]) -> dict[str, Any] | None:
        """The block of a part; the parts of several calls may be interleaved."""
        part: dict[str, Any]
        for part in reversed(self.parts):
            if part["kind"] == head["kind"] and part.get("key") == head.get("key"):
                return part
            if part["kind"] != "usage" and not part["kind"] == head["kind"] == "call":
                return None
        return None


def cut_again(text: str, pieces: Sequence[Sequence[float]], before: int) -> list[tuple[float, str]]:
    """The text in its original number of parts, each with its time.

    Args:
        before: its length when it was recorded; if the length has changed, the parts are scaled in proportion.
    """
    if not pieces:
        return [(0.0, text)]
    found: list[tuple[float, str]] = []
    begin = place = 0
    for at, length in pieces:
        place += int(length)
        end = place if len(text) == before else round(place * len(text) / max(1, before))
        end = min(max(begin, end), len(text))
        found.append((float(at), text[begin:end]))
        begin = end
    last_at, last = found[-1]
    found[-1] = (last_at, last + text[begin:])
    return found


def error_value(error: BaseException) -> dict[str, Any]:
    """An error of a provider."""
    told = {name: getattr(error, name) for name in _TOLD if getattr(error, name, None)}
    return {"kind": type(error).__name__, "text": str(error), **each_as_list(told)}


def each_as_list(values: Mapping[str, Any]) -> dict[str, Any]:
    """Tuples as JSON lists."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def error_of(value: Mapping[str, Any]) -> MarvinError:
    """The error object; an unknown kind becomes a `ProviderError`."""
    kind = getattr(errors, str(value.get("kind")), None)
    text = str(value.get("text", ""))
    if kind is ConfigError:
        return ConfigError(text)
    if not (isinstance(kind, type) and issubclass(kind, ProviderError)) or kind.__name__.startswith("_"):
        kind = ProviderError
    made: ProviderError = kind(text)
    for name, sort in _TOLD.items():
        said = value.get(name)
        if isinstance(said, sort) and hasattr(made, name):
            setattr(made, name, tuple(map(str, said)) if isinstance(said, list) else said)
    return made


def usage_of(value: Any) -> Usage:
    """Token counts; invalid ones are left out."""
    given = value if isinstance(value, Mapping) else {}
    known = Usage().as_dict()
    counted: dict[str, Any] = {
        name: one
        for name, one in given.items()
        if name in known and isinstance(one, float if name in ("cost", "estimate") else int) and 0 <= one < _LARGE
    }
    return Usage(**counted)


def message_of(value: Mapping[str, Any]) -> Message:
    """The message object. Raises ValueError if it is invalid."""
    return from_dict(value)
