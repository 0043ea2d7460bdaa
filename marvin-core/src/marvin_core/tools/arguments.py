"""Parses the arguments of a call, with error texts for the model.

Nothing is guessed: a bare string is never assigned to the only matching parameter, and truncated text is never
completed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..api.tools import ToolSpec
from ..util.schemas.texts import Schema
from ..util.text import cut, storable, to_json, unknown_name
from . import json_repair
from .argument_errors import cut_off, refusal

_NESTED_STRINGS = 2
_WRAPPERS = ("arguments", "parameters", "input")
_PATCH_BEGIN = "*** Begin Patch"
_PATCH_END = "*** End Patch"
_INTEGER = re.compile(r"[+-]?[0-9]{1,300}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,300}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")


class _UnexpectedPatch(json_repair.Malformed):
    """A patch was sent to a tool that does not take one."""


def parse_arguments(
    raw: str, spec: ToolSpec, *, complete: bool = True, others: Sequence[ToolSpec] = ()
) -> dict[str, Any]:
    """Parse the arguments that a model sent for a tool, and convert values to the types of its schema.

    Names and values are not validated here. Blank text and null are an empty object.

    Args:
        raw: the text as received.
        complete: false if the model's answer is known to have ended inside this call.
        others: the offered tools; an error may name a better one.

    Raises:
        CutOff: the text was truncated.
        ArgumentError: it cannot be parsed as one object without guessing.
    """
    if not complete:
        raise cut_off(raw, spec)
    try:
        return coerce(_unwrapped(_object_in(raw, spec, _NESTED_STRINGS), spec), spec)
    except json_repair.Unclosed as place:
        raise cut_off(raw, spec, f", {place}") from None
    except _UnexpectedPatch:
        raise refusal(spec, f"{spec.name} does not accept a patch{_better_for_patch(others)}.", raw) from None
    except json_repair.Malformed as reason:
        raise refusal(spec, f"The arguments of {spec.name} are not a JSON object: {reason}.", raw) from None


def parse_key_values(pairs: Sequence[str], spec: ToolSpec) -> dict[str, Any]:
    """Parse the arguments of a call typed by hand, as words `key=value`, and convert values to their types.

    Raises:
        ArgumentError: a word without `=`, an unknown key, or a duplicate key.
    """
    properties = spec.parameters.get("properties", {})
    arguments: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if storable(pair) != pair:
            problem = f"{cut(pair)!r} is not valid UTF-8."
        elif not equals or not key:
            problem = f"{cut(pair)!r} is not of the form key=value; put quotes around a value with spaces."
        elif key not in properties and not spec.parameters.get("additionalProperties"):
            problem = unknown_name("parameter", key, properties)
        elif key in arguments:
            problem = f"{key} is given twice."
        else:
            arguments[key] = value
            continue
        raise refusal(spec, f"{spec.name}: {problem}")
    return coerce(arguments, spec)


def key_value_words(arguments: Mapping[str, Any]) -> str:
    """The words `key=value` from which `parse_key_values` gets these arguments, after splitting by a shell or shlex."""
    import shlex

    texts = {name: value if isinstance(value, str) else to_json(value) for name, value in arguments.items()}
    return " ".join(f"{name}={shlex.quote(storable(text))}" for name, text in texts.items())


def coerce(arguments: Mapping[str, Any], spec: ToolSpec) -> dict[str, Any]:
    """Convert values to the types of the tool's schema, if there is only one way to do so.

    Text becomes a number, true or false, null, a list (JSON, lines, or comma-separated) or an object, as the schema
    requires; a whole number becomes text, and 3.0 becomes 3. Other values are left to the validation.
    """
    properties = spec.parameters.get("properties", {})
    return {name: _fit(value, properties.get(name, {})) for name, value in arguments.items()}


def _object_in(text: str, spec: ToolSpec, layers: int) -> dict[str, Any]:
    """The object in the text; up to `layers` JSON strings around it are removed."""
    if text[:1] != "{":
        text = json_repair.unfence(text)
        if _is_patch(text):
            return _from_patch(text, spec)
    value = json_repair.read(text)
    if isinstance(value, dict):
        return value
    if value is None or value == []:
        return {}
    if isinstance(value, list):
        if len(value) == 1 and isinstance(value[0], dict):
            return value[0]
        raise json_repair.Malformed("it is a list; make one call for each object")
    if not isinstance(value, str):
        raise json_repair.Malformed("it is a single value")
    if not layers:
        raise json_repair.Malformed("it is a string in a string in a string")
    if value.strip() and not _may_hold_object(value) and not _is_patch(value):
        raise json_repair.Malformed("it is a bare string; write the name of its parameter too")
    return _object_in(value, spec, layers - 1)


def _may_hold_object(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[", '"', "`", "*")


def _takes_patch(spec: ToolSpec) -> bool:
    return "patch" in spec.parameters.get("properties", {})


def _better_for_patch(others: Sequence[ToolSpec]) -> str:
    """The call to make instead, if an offered tool takes a patch."""
    name = next((other.name for other in others if _takes_patch(other)), "")
    return f'; call {name}({{"patch": "{_PATCH_BEGIN}…"}}) instead' if name else ""


def _from_patch(text: str, spec: ToolSpec) -> dict[str, Any]:
    if not _takes_patch(spec):
        raise _UnexpectedPatch
    lines = [line.strip() for line in text.split("\n")]
    if _PATCH_BEGIN in lines:
        if _PATCH_END not in lines:
            raise json_repair.Unclosed(f"before {_PATCH_END!r}")
        behind = [line for line in lines[len(lines) - lines[::-1].index(_PATCH_END) :] if line]
        if behind and (text.startswith(_PATCH_BEGIN) or len(behind) > 1):  # a word may end what is around it
            raise json_repair.Malformed(f"there is text after {_PATCH_END!r}")
    return {"patch": text}


def _is_patch(text: str) -> bool:
    """Whether a text that is not JSON is a patch in a known format."""
    if text.lstrip()[:1] in ("", "{", "[", '"'):
        return False
    from ..kit.editing.formats import is_patch

    return text.startswith(_PATCH_BEGIN) or is_patch(text)


def _unwrapped(arguments: dict[str, Any], spec: ToolSpec) -> dict[str, Any]:
    """The object without a wrapper such as `{"arguments": {...}}` or `{"name": TOOL, "arguments": {...}}`."""
    properties = spec.parameters.get("properties", {})
    if spec.parameters.get("additionalProperties"):
        return arguments
    names = [name for name in arguments if name not in properties]
    if len(names) == 2 == len(arguments) and arguments.get("name") == spec.name:
        names.remove("name")
    elif not len(names) == 1 == len(arguments):
        return arguments
    if names[0] not in (*_WRAPPERS, spec.name):
        return arguments
    inner = arguments[names[0]]
    if inner is None:
        return {}
    if isinstance(inner, str) and (_may_hold_object(inner) or _is_patch(inner)):
        return _object_in(inner, spec, 1)
    return inner if isinstance(inner, dict) else arguments


def _fit(value: Any, schema: Schema) -> Any:
    kind = schema.get("type")
    if isinstance(value, str):
        return value if kind in (None, "string") else _from_text(value, kind, schema)
    if kind == "string" and type(value) is int:
        return str(value)
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind == "array" and isinstance(value, list):
        items = schema.get("items", {})
        return [_fit(item, items) for item in value]
    if kind == "object" and isinstance(value, dict):
        properties = schema.get("properties", {})
        return {name: _fit(inner, properties.get(name, {})) for name, inner in value.items()}
    return value


def _from_text(text: str, kind: str, schema: Schema) -> Any:
    """The value of another type in the text, or the text itself."""
    bare = text.strip()
    if bare in ("null", "None"):
        return None
    if kind == "boolean":
        return {"true": True, "false": False}.get(bare.lower(), text)
    if kind in ("integer", "number"):
        return _number(bare, kind, text)
    if (kind, bare[:1], bare[-1:]) in (("array", "[", "]"), ("object", "{", "}")):
        try:
            return _fit(json_repair.read(bare), schema)
        except (json_repair.Malformed, json_repair.Unclosed):
            return text
    items = schema.get("items", {})
    if kind == "array" and items.get("type") in ("string", "integer", "number"):
        lines = [line.rstrip().removesuffix(",") for line in bare.split("\n")]
        parts = [part.strip() for part in (bare.split(",") if len(lines) == 1 else lines)]
        return [_fit(part, items) for part in parts if part]
    return text


def _number(bare: str, kind: str, text: str) -> int | float | str:
    if _INTEGER.fullmatch(bare):
        return int(bare)
    if not _NUMBER.fullmatch(bare):
        return text
    number = float(bare)
    if number.is_integer() and kind == "integer":
        return int(number)
    return number if kind == "number" and number not in (float("inf"), float("-inf")) else text
