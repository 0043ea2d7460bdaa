"""Error texts for wrong arguments, with which a model can correct a call."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..api.errors import ToolError
from ..api.tools import ToolSpec
from ..util.schemas.texts import type_text
from ..util.text import cut, to_json
from .samples import sample

# If nothing is required: parameters that make a call meaningful together, the best first.
_MEANINGFUL: tuple[frozenset[str], ...] = (
    frozenset({"path", "old_str", "new_str"}),
    *(frozenset({name}) for name in ("patch", "location", "near", "query", "url", "path")),
)


class ArgumentError(ToolError):
    """The arguments of a call are invalid; the text says why and shows a correct call."""


class CutOff(ArgumentError):
    """The arguments of a call were truncated, so it was not run."""


def example_call(spec: ToolSpec, also: Collection[str] = ()) -> str:
    """A correct call of the tool with its required parameters and those in `also`, as text."""
    return f"{spec.name}({to_json(example_arguments(spec, also))})"


def example_arguments(spec: ToolSpec, also: Collection[str] = ()) -> dict[str, Any]:
    """Valid arguments: those of a phrase of the tool, else samples of the required parameters and those in `also`."""
    properties = spec.parameters.get("properties", {})
    shown = {*spec.parameters.get("required", ()), *also}
    for phrase in spec.phrases:
        if not phrase["slots"] and shown <= phrase["arguments"].keys() and (phrase["arguments"] or not properties):
            return dict(phrase["arguments"])
    if not shown:
        shown.update(next((names for names in _MEANINGFUL if names <= properties.keys()), ()))
    return {name: sample(name, schema) for name, schema in properties.items() if name in shown}


def refusal(spec: ToolSpec, problem: str, received: str | None = None, also: Collection[str] = ()) -> ArgumentError:
    """An error with the problem, the received arguments, the expected ones, and a correct call.

    `also` names optional parameters of the correct call.
    """
    lines = [problem]
    if received is not None:
        lines.append(f"Received: {cut(received) or 'nothing'}")
    properties = spec.parameters.get("properties", {})
    required = spec.parameters.get("required", ())
    lines.append("Expected parameters:" if properties else f"{spec.name} has no parameters.")
    for name, schema in properties.items():
        default = f"default {to_json(schema['default'])}" if "default" in schema else "optional"
        lines.append(f"- {name}: {type_text(schema)} ({'required' if name in required else default})")
    lines.append(f"Correct call: {example_call(spec, also)}")
    return ArgumentError("\n".join(lines))


_TOO_LONG = "Give large content in sections, one in each call, if the tool allows that."


def cut_off(raw: str, spec: ToolSpec, place: str = "") -> CutOff:
    return CutOff(
        f"The arguments of {spec.name} were cut off after {len(raw):,} characters{place}. Nothing was run.\n"
        f"Received: {cut(raw) or 'nothing'}\n"
        f"Make the call again from its beginning, with shorter arguments. {spec.too_long or _TOO_LONG}"
    )
