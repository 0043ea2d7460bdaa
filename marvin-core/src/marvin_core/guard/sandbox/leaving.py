"""The parameter `outside`, added to tools so that a call can request to leave the sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...api.tools import ToolSpec

PARAMETER = "outside"
_SCHEMA: Mapping[str, Any] = {
    "type": "string",
    "description": "Why this call must run outside of the sandbox. The user is asked. Leave it out unless the "
    "sandbox blocked something that the task needs",
}


def with_parameter(spec: ToolSpec) -> ToolSpec:
    """The tool as offered if calls may leave the sandbox: a tool that runs programs gets the parameter."""
    if not spec.command:  # looked at first: the parameters of most tools are not parsed at the start
        return spec
    properties = spec.parameters.get("properties", {})
    if PARAMETER in properties:
        return spec
    return spec.replace(parameters={**spec.parameters, "properties": {**properties, PARAMETER: _SCHEMA}})


def takes(spec: ToolSpec) -> bool:
    """Whether the guard added the parameter to a tool."""
    return spec.parameters.get("properties", {}).get(PARAMETER) is _SCHEMA


def without(spec: ToolSpec, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments that are passed to the tool itself."""
    if PARAMETER not in arguments or not takes(spec):
        return arguments
    return {name: value for name, value in arguments.items() if name != PARAMETER}
