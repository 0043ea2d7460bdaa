"""Help for calling a tool by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .arguments import example_arguments, key_value_words, to_json, type_text
from .tools import ToolSpec

_SENTENCE = re.compile(r".*?[.!?](?=\s|$)", re.DOTALL)
_SAID = 5
"""How many phrases are shown."""


def tool_help(spec: ToolSpec) -> str:
    """What a tool does, what it takes and may touch, and a line that calls it."""
    lines = [f"{spec.name} ({spec.source}, group {spec.group})" if spec.group else f"{spec.name} ({spec.source})"]
    lines += ["", spec.description, ""]
    required = spec.parameters.get("required", ())
    for name, schema in spec.parameters.get("properties", {}).items():
        default = f"default {to_json(schema['default'])}" if "default" in schema else "optional"
        need = "required" if name in required else default
        lines.append(f"  {name}  {type_text(schema)}, {need}: {schema.get('description', '')}".rstrip(": "))
    if not spec.parameters.get("properties"):
        lines.append("  It takes no parameters.")
    lines += ["", f"Access: {', '.join(sorted(spec.access))}"]
    lines += [f"Example: {typed_call(spec.name, example_arguments(spec))}"]
    if spec.phrases:
        lines.append("Without a model: " + "; ".join(phrase["say"] for phrase in spec.phrases[:_SAID]))
    return "\n".join(lines)


def typed_call(name: str, arguments: Mapping[str, Any]) -> str:
    """The line that makes this call when it is typed into a chat: `/name key=value ...`."""
    return f"/{name} {key_value_words(arguments)}".rstrip(" ")


def summary(spec: ToolSpec) -> str:
    """The first sentence of the tool's description."""
    paragraph = " ".join(spec.description.partition("\n\n")[0].split())
    sentence = _SENTENCE.match(paragraph)
    return sentence.group() if sentence else paragraph
