"""What pydantic finds wrong in settings, as people are told it: the place, the key, what it takes, the nearest name."""

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
"""How pydantic says that the key of a mapping is wrong, and not its value."""

Location = Sequence[str | int]


def _nothing(location: Location) -> str:
    return ""


class Source(NamedTuple):
    """Where settings come from, and what is known of them."""

    schema: Mapping[str, Any]
    where: Callable[[Location], str]
    """The file and the line in which the value at a location was written."""
    prefix: str = ""
    """What stands before the names of all keys."""
    variable: Callable[[Location], str] = _nothing
    """The variable that the value comes from; empty where it stands in the file."""
    unknown: Callable[[Location], str] = _nothing
    """What is said of a key that there is not, in place of the nearest name; empty for that."""
    clean: Callable[[str], str] = str
    """Takes secrets out of a value that is shown."""
    hidden: Callable[[Location], bool] = lambda location: False
    """Whether a value is not shown, as it may be a secret."""

    def name(self, location: Location) -> str:
        """The full name of a key."""
        below = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
        return f"{self.prefix}{below}".removeprefix(".")


def told(errors: Iterable[ErrorDetails], source: Source) -> str:
    """What is wrong, a line for each thing."""
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
    """Which of several words may be meant."""
    words = [word for word in schema.get("enum", ()) if isinstance(word, str)]
    near = did_you_mean(near_names(value, words)) if isinstance(value, str) else ""
    return f" {near}" if near else ""


def _unknown(location: Location, source: Source) -> str:
    known = sorted(members_of(schema_at(source.schema, location[:-1])).get("properties", {}))
    hint = hint_at(str(location[-1]), known, f"Known keys: {', '.join(known) or 'none'}.")
    return f"unknown key {source.name(location)!r}. {hint}"
