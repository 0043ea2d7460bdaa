"""From the raw text of a call to its arguments, and the error texts that let a model correct a call.

What cannot be read without guessing is refused: a bare string is never put into the only parameter that
could take it, and text that was cut off is never completed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ..api.errors import ToolError
from ..api.tools import ToolSpec
from . import json_repair
from .samples import Schema, sample

RECEIVED_LIMIT = 200
"""Characters of what was received that an error shows."""

_NESTED_STRINGS = 2
_WRAPPERS = ("arguments", "parameters", "input")
_PATCH_BEGIN = "*** Begin Patch"
_PATCH_END = "\n*** End Patch"
_NAMES_LISTED = 20
_NAME_COMPARED = 64
_LIKE_ENOUGH = 0.6
# Where nothing is required: the parameters that make a call meaningful together, the best first.
_MEANINGFUL: tuple[frozenset[str], ...] = (
    frozenset({"path", "old_str", "new_str"}),
    *(frozenset({name}) for name in ("patch", "location", "near", "query", "url", "path")),
)
_TYPE_TEXTS: Mapping[str, str] = {
    "string": "text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
}
_LIMITS = (
    ("minimum", "maximum", ""),
    ("minLength", "maxLength", " characters"),
    ("minItems", "maxItems", " items"),
)
_INTEGER = re.compile(r"[+-]?[0-9]{1,300}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,300}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")


class ArgumentError(ToolError):
    """The arguments of a call cannot be used; the text says why and shows a correct call."""


class CutOff(ArgumentError):
    """The arguments of a call were cut off, so it was not run."""


def parse_arguments(raw: str, spec: ToolSpec, *, complete: bool = True) -> dict[str, Any]:
    """The arguments that a model sent for a tool, with values brought to the types of its schema.

    Names and values are not validated here. Blank text and null are an empty object.

    Args:
        raw: the text as received.
        complete: false where the answer of the model is known to have ended inside this call.

    Raises:
        CutOff: where the text was cut off.
        ArgumentError: where it cannot be read as one object without guessing.
    """
    if not complete:
        raise _cut_off(raw, spec)
    try:
        return coerce(_unwrapped(_object_in(raw, spec, _NESTED_STRINGS), spec), spec)
    except json_repair.Unclosed as place:
        raise _cut_off(raw, spec, f", {place}") from None
    except json_repair.Malformed as reason:
        raise refusal(spec, f"The arguments of {spec.name} are not a JSON object: {reason}.", raw) from None


def parse_key_values(pairs: Sequence[str], spec: ToolSpec) -> dict[str, Any]:
    """The arguments of a call typed by hand, as words `key=value`, with values brought to their types.

    Raises:
        ArgumentError: for a word without `=`, an unknown key, and a key that is given twice.
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
    """The words `key=value` that `parse_key_values` reads as these arguments, once a shell or shlex has split them."""
    import shlex

    texts = {name: value if isinstance(value, str) else to_json(value) for name, value in arguments.items()}
    return " ".join(f"{name}={shlex.quote(storable(text))}" for name, text in texts.items())


def coerce(arguments: Mapping[str, Any], spec: ToolSpec) -> dict[str, Any]:
    """The arguments with values brought to the types of the tool's schema where there is only one way to.

    Text becomes a number, true or false, null, a list (JSON or comma-separated) or an object where the schema
    wants one; a whole number becomes text, and 3.0 becomes 3. Everything else stays for validation to judge.
    """
    properties = spec.parameters.get("properties", {})
    return {name: _fit(value, properties.get(name, {})) for name, value in arguments.items()}


def example_call(spec: ToolSpec, also: Collection[str] = ()) -> str:
    """A correct call of the tool with its required parameters and those of `also`, as text."""
    return f"{spec.name}({to_json(example_arguments(spec, also))})"


def example_arguments(spec: ToolSpec, also: Collection[str] = ()) -> dict[str, Any]:
    """Arguments that the tool takes: what one of its phrases means, else samples of what is required and of `also`."""
    properties = spec.parameters.get("properties", {})
    shown = {*spec.parameters.get("required", ()), *also}
    for phrase in spec.phrases:
        if not phrase["slots"] and shown <= phrase["arguments"].keys() and (phrase["arguments"] or not properties):
            return dict(phrase["arguments"])
    if not shown:
        shown.update(next((names for names in _MEANINGFUL if names <= properties.keys()), ()))
    return {name: sample(name, schema) for name, schema in properties.items() if name in shown}


def refusal(spec: ToolSpec, problem: str, received: str | None = None, also: Collection[str] = ()) -> ArgumentError:
    """An error that says what is wrong, what was received, what is expected, and shows a correct call.

    `also` names optional parameters that the correct call shows.
    """
    lines = [problem]
    if received is not None:
        lines.append(f"Received: {cut(received) or 'nothing'}")
    properties = spec.parameters.get("properties", {})
    required = spec.parameters.get("required", ())
    lines.append("Expected parameters:" if properties else f"{spec.name} takes no parameters.")
    for name, schema in properties.items():
        default = f"default {to_json(schema['default'])}" if "default" in schema else "optional"
        lines.append(f"- {name}: {type_text(schema)} ({'required' if name in required else default})")
    lines.append(f"Correct call: {example_call(spec, also)}")
    return ArgumentError("\n".join(lines))


def type_text(schema: Schema) -> str:
    """What a schema (in the normal form) allows, in plain words: `an integer from 1 to 20`."""
    if "enum" in schema:
        return "one of " + ", ".join(to_json(choice) for choice in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(type_text(member) for member in schema["anyOf"]))
    kind = schema.get("type", "")
    text = _TYPE_TEXTS.get(kind, "any value") + _bounds(schema)
    if kind == "array" and schema.get("items"):
        text += f", each {type_text(schema['items'])}"
    if "format" in schema:
        text += f" in the form {schema['format']}"
    if "pattern" in schema:
        text += f" that matches {schema['pattern']}"
    return text


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """A sentence saying that there is no such tool or parameter, and which names are nearest."""
    names = list(known)
    near = [repr(other) for other in nearest(name, names)]
    if near:
        hint = f" Did you mean {' or '.join(near)}?"
    elif len(names) <= _NAMES_LISTED:
        hint = f" There is {', '.join(names) or 'none'}."
    else:
        hint = ""
    return f"Unknown {kind} {cut(name)!r}.{hint}"


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Up to three of the known names that are most like this one, the best first."""
    # Only errors come here, and difflib costs milliseconds to import.
    from difflib import SequenceMatcher

    asked = name[:_NAME_COMPARED].lower()
    words = set(asked.split("_"))

    def likeness(other: str) -> float:
        shared = len(words & set(other.lower().split("_")))
        return SequenceMatcher(None, asked, other.lower()).ratio() + 0.2 * shared

    ranked = sorted(((likeness(other), other) for other in known), key=lambda pair: (-pair[0], pair[1]))
    return [other for score, other in ranked[:3] if score >= _LIKE_ENOUGH]


def to_json(value: Any) -> str:
    """The value as JSON on one line, and as whatever Python shows where JSON cannot hold it."""
    try:
        return storable(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError):
        return f"a {type(value).__name__}"


def storable(text: str) -> str:
    """The text with lone surrogates, which cannot be encoded, written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def _object_in(text: str, spec: ToolSpec, layers: int) -> dict[str, Any]:
    """The object that the text holds; up to `layers` JSON strings may be wrapped around it."""
    if text[:1] != "{":
        text = json_repair.unfence(text)
        if text.startswith(_PATCH_BEGIN):
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
    if value.strip() and not _may_hold_object(value):
        raise json_repair.Malformed("it is a bare string; write the name of its parameter as well")
    return _object_in(value, spec, layers - 1)


def _may_hold_object(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[", '"', "`", "*")


def _from_patch(text: str, spec: ToolSpec) -> dict[str, Any]:
    if "patch" not in spec.parameters.get("properties", {}):
        raise json_repair.Malformed('it is a patch; call apply_patch({"patch": "*** Begin Patch…"}) instead')
    if text.endswith(_PATCH_END):
        return {"patch": text}
    if _PATCH_END in text:
        raise json_repair.Malformed("there is text behind '*** End Patch'")
    raise json_repair.Unclosed("before '*** End Patch'")


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
    if isinstance(inner, str) and _may_hold_object(inner):
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
    """The value of another type that the text writes, or the text itself."""
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
        parts = [part.strip() for part in bare.split(",")]
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


def _bounds(schema: Schema) -> str:
    for low_name, high_name, noun in _LIMITS:
        low, high = schema.get(low_name), schema.get(high_name)
        if low is None and high is None:
            continue
        nouns = noun if high != 1 and (low, high) != (1, None) else noun.removesuffix("s")
        if high is None:
            return f" of at least {low}{nouns}"
        if low is None:
            return f" of at most {high}{nouns}"
        return f" of {low}{nouns}" if low == high else f" from {low} to {high}{nouns}"
    if "exclusiveMinimum" in schema:
        return f" above {schema['exclusiveMinimum']}"
    return f" below {schema['exclusiveMaximum']}" if "exclusiveMaximum" in schema else ""


def _cut_off(raw: str, spec: ToolSpec, place: str = "") -> CutOff:
    return CutOff(
        f"The arguments of {spec.name} were cut off after {len(raw):,} characters{place}. Nothing was run.\n"
        f"Received: {cut(raw) or 'nothing'}\n"
        "Make the call again from its beginning, with shorter arguments. Write large content in sections: "
        "create_file with the first part, then append_file with one further part in each call."
    )


def cut(text: str, limit: int = RECEIVED_LIMIT) -> str:
    """The text up to the limit (in characters), without lone surrogates; an ellipsis marks a cut."""
    return storable(text if len(text) <= limit else text[:limit] + "…")
