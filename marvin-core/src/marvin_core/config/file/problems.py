"""Converts pydantic's errors in settings to messages with the line, the key, the valid values and similar names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...util.schemas.texts import members_of, reason_text, schema_at
from ...util.text import cut, did_you_mean, hint_at, near_names, one_line, to_json

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_VALUE_SHOWN = 80
_PROBLEMS_SHOWN = 10
_OF_KEY = "[key]"
"""Pydantic's mark in a location for an error in the key of a mapping, not in its value."""

Location = Sequence[str | int]


def _nothing(location: Location) -> str:
    return ""


class Source(NamedTuple):
    """The origin of settings, with the data for error messages."""

    schema: Mapping[str, Any]
    where: Callable[[Location], str]
    """Returns the file and the line of the value at a location."""
    prefix: str = ""
    """The prefix of the names of all keys."""
    variable: Callable[[Location], str] = _nothing
    """Returns the variable that the value comes from; empty if it comes from the file."""
    unknown: Callable[[Location], str] = _nothing
    """Returns the message for an unknown key; empty to suggest the nearest name instead."""
    clean: Callable[[str], str] = str
    """Redacts secrets in a value that is shown."""
    hidden: Callable[[Location], bool] = lambda location: False
    """Returns whether a value is hidden because it may be a secret."""

    def name(self, location: Location) -> str:
        """The full name of a key."""
        below = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
        return f"{self.prefix}{below}".removeprefix(".")


def told(errors: Iterable[ErrorDetails], source: Source) -> str:
    """The error messages, one line for each."""
    lines = dict.fromkeys(_told(error, source) for error in errors)
    return "\n".join([*lines][:_PROBLEMS_SHOWN])


def _told(error: ErrorDetails, source: Source) -> str:
    is_key = error["loc"][-1:] == (_OF_KEY,)
    below = error.get("ctx", {}).get("below", ())
    location = (*(error["loc"][:-1] if is_key else error["loc"]), *below)
    if error["type"] == "extra_forbidden":
        return f"{source.where(location)}: {source.unknown(location) or _unknown(location, source)}"
    head = source.variable(location) or ": ".join(filter(None, (source.where(location), source.name(location))))
    if error["type"] == "said":
        return f"{head}: {_sentence(one_line(error['msg']))}"
    schema = schema_at(source.schema, location)
    reason = reason_text(error, schema)
    received = "" if is_key or not location or source.hidden(location) else f"; found {_found(error['input'], source)}"
    return f"{head}: {_sentence(reason + received)}{_hint(error['input'], schema)}"


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?")) else f"{text}."


def _found(value: Any, source: Source) -> str:
    return "nothing" if value is None else one_line(cut(source.clean(to_json(value)), _VALUE_SHOWN))


def _hint(value: Any, schema: Mapping[str, Any]) -> str:
    """A suggestion of similar valid words; empty if there are none."""
    words = [word for word in schema.get("enum", ()) if isinstance(word, str)]
    near = did_you_mean(near_names(value, words)) if isinstance(value, str) else ""
    return f" {near}" if near else ""


def _unknown(location: Location, source: Source) -> str:
    known = sorted(_keys_in(schema_at(source.schema, location[:-1])))
    otherwise = did_you_mean(_elsewhere(location, source)) or f"Known keys: {', '.join(known) or 'none'}."
    return f"unknown key {source.name(location)!r}. {hint_at(str(location[-1]), known, otherwise)}"


def _elsewhere(location: Location, source: Source) -> list[str]:
    """The full names of the keys with this name at the top or in a section: the nesting may be wrong."""
    name = location[-1]
    sections = _keys_in(source.schema)
    found: list[Location] = [(name,)] if name in sections else []
    found += [(section, name) for section, schema in sections.items() if name in _keys_in(schema)]
    return [source.name(place) for place in found]


def _keys_in(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    keys: Mapping[str, Any] = members_of(schema).get("properties", {})
    return keys
