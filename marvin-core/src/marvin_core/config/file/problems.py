"""Converts pydantic's errors in settings to messages with the line, the key, the valid values and similar names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from math import isfinite, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...util.schemas.texts import members_of, reason_text, schema_at
from ...util.text import cut, did_you_mean, hint_at, near_names, one_line, to_json
from .parsing import Place

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_VALUE_SHOWN = 80
_PROBLEMS_SHOWN = 10
_PROBLEMS_SORTED = 1_000
_OF_KEY = "[key]"
"""Pydantic's mark in a location for an error in the key of a mapping, not in its value."""

Location = Sequence[str | int]


def _nothing(location: Location) -> str:
    return ""


class Source(NamedTuple):
    """The origin of settings, with the data for error messages."""

    schema: Mapping[str, Any]
    path: Path
    place: Callable[[Location], Place | None]
    """Returns the place of the value at a location; None if the file cannot be read."""
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

    def line(self, location: Location) -> int:
        """The line of a value; 0 if it is unknown."""
        place = self.place(location)
        return 0 if place is None else place.line

    def where(self, location: Location) -> str:
        """The file and the line of a value."""
        line = self.line(location)
        return f"{self.path}, line {line}" if line else str(self.path)


def told(errors: Iterable[ErrorDetails], source: Source) -> str:
    """The first error messages by line, one line of text for each, and the number of the others."""
    lines: dict[str, None] = {}
    found = list(errors)
    left = sorted(found[:_PROBLEMS_SORTED], key=lambda one: source.line(_location(one)), reverse=True)
    while left and len(lines) < _PROBLEMS_SHOWN:
        lines[_told(left.pop(), source)] = None
    rest = len(left) + len(found[_PROBLEMS_SORTED:])
    more = f"There {'is 1 more problem' if rest == 1 else f'are {rest:,} more problems'}."
    return "\n".join([*lines, *([more] if rest else [])])


def _location(error: ErrorDetails) -> Location:
    """The path of the wrong value; for an error in a key, that of the key."""
    below = error.get("ctx", {}).get("below", ())
    return (*(error["loc"][:-1] if _is_key(error) else error["loc"]), *below)


def _is_key(error: ErrorDetails) -> bool:
    return error["loc"][-1:] == (_OF_KEY,)


def _told(error: ErrorDetails, source: Source) -> str:
    location = _location(error)
    if error["type"] == "extra_forbidden":
        return f"{source.where(location)}: {source.unknown(location) or _unknown(location, source)}"
    head = source.variable(location) or ": ".join(filter(None, (source.where(location), source.name(location))))
    if error["type"] == "said":
        return f"{head}: {_sentence(one_line(error['msg']))}"
    schema = schema_at(source.schema, location)
    reason = reason_text(error, schema, an_object="a mapping")
    is_hidden = _is_key(error) or not location or source.hidden(location)
    received = "" if is_hidden else f"; found {_found(error['input'], location, source)}"
    return f"{head}: {_sentence(reason + received)}{_hint(error['input'], schema)}"


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?")) else f"{text}."


def _found(value: Any, location: Location, source: Source) -> str:
    """The value as JSON; numbers and dates that JSON does not have as YAML writes them."""
    place = None if source.variable(location) else source.place(location)
    written = None if place is None else place.value
    if isinstance(written, float) and not isfinite(written):
        return ".nan" if isnan(written) else ".inf" if written > 0 else "-.inf"
    if isinstance(written, date):
        return str(written)
    return "nothing" if value is None else one_line(cut(source.clean(to_json(value)), _VALUE_SHOWN))


def _hint(value: Any, schema: Mapping[str, Any]) -> str:
    """A suggestion of similar valid words; empty if there are none."""
    words = [word for word in schema.get("enum", ()) if isinstance(word, str)]
    near = did_you_mean(near_names(value, words)) if isinstance(value, str) else ""
    return f" {near}" if near else ""


def _unknown(location: Location, source: Source) -> str:
    above, _, below = str(location[-1]).partition(".")
    if below and "." not in below and below in _keys_in(schema_at(source.schema, (*location[:-1], above))):
        return f"unknown key {source.name(location)!r}. Write `{below}` below `{above}:`."
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
