"""How all adapters encode their requests: as JSON, with each value encoded once."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from math import isfinite
from operator import is_
from typing import Any, Generic, TypeVar

from ...api.messages import ToolCall
from ...api.tools import ToolSpec

T = TypeVar("T")

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_PLAIN_DEPTH = 100
"""The maximum nesting of arguments that are sent unchanged; deeper ones were never run."""


class Encoded(Generic[T]):
    """Caches the encoded form of immutable values while they are part of the next request.

    Values are recognised by identity: comparing a long conversation would cost as much as encoding it. Most requests
    continue the previous one, so that only new values are looked up.
    """

    def __init__(self, encode: Callable[[T], bytes]) -> None:
        self._encode = encode
        self._values: list[T] = []
        self._forms: list[bytes] = []

    def forms(self, values: Sequence[T]) -> list[bytes]:
        """The encoded forms in order, without the empty ones."""
        if len(self._values) > len(values) or not all(map(is_, self._values, values)):
            self._begin_anew(values)
        for value in values[len(self._values) :]:
            self._forms.append(self._encode(value))
            self._values.append(value)
        return list(filter(None, self._forms))

    def _begin_anew(self, values: Sequence[T]) -> None:
        """Keep only the forms of these values."""
        known = {id(value): form for value, form in zip(self._values, self._forms, strict=True)}
        forms = [known[id(value)] if id(value) in known else self._encode(value) for value in values]
        self._values, self._forms = list(values), forms

    def forget(self) -> None:
        """Discard all encoded forms."""
        self._values, self._forms = [], []


class EncodedTools:
    """The offered tools, joined again only after a change. `most` is the maximum number in a request."""

    def __init__(self, encode: Callable[[ToolSpec], bytes], most: int | None = None) -> None:
        self._specs = Encoded(encode)
        self._most = most
        self._joined = b""
        self.offered: tuple[ToolSpec, ...] = ()
        """The tools of the newest request."""

    def joined(self, tools: tuple[ToolSpec, ...]) -> bytes:
        """The encoded forms of these tools, separated by commas; empty if there are none."""
        if tools is not self.offered:
            self.offered = tools
            self._joined = b",".join(self._specs.forms(tools[: self._most]))
        return self._joined


def dump(value: object) -> bytes:
    """The value as JSON; numbers that JSON lacks, such as NaN, become null."""
    try:
        text = _encode(value)
    except ValueError:
        text = _encode(_finite(value))
    # "replace": a lone surrogate, from a file name for instance, cannot be sent.
    return text.encode("utf-8", "replace")


def object_arguments(call: ToolCall, offered: Sequence[ToolSpec]) -> str:
    """The arguments as a JSON object: strict servers parse them, and refuse the whole request otherwise.

    Repaired arguments are sent as they were run, so that the call and its result agree. Unreadable arguments never ran,
    and are replaced by `{}`: the output of the call quotes the received text.
    """
    given = _object(call.arguments)
    if given is not None:
        # An escape may be half of a character, which strict readers refuse.
        return call.arguments if "\\u" not in call.arguments else dump(given).decode()
    from ...tools.argument_errors import ArgumentError  # needed for broken calls only
    from ...tools.arguments import parse_arguments  # needed for broken calls only

    for spec in offered:
        if spec.name == call.name:
            try:
                return dump(parse_arguments(call.arguments, spec, complete=call.complete)).decode()
            except ArgumentError:
                break
    return "{}"


def _object(text: str) -> dict[str, Any] | None:
    """The object that every JSON parser finds in the text: Python's parser accepts more than JSON allows."""
    if text.count("{") + text.count("[") > _PLAIN_DEPTH:
        return None
    try:
        value = _STRICT.decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _number(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(text)
    return number


def _constant(name: str) -> Any:
    raise ValueError(name)


_STRICT = json.JSONDecoder(parse_float=_number, parse_constant=_constant)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not isfinite(value) else value
