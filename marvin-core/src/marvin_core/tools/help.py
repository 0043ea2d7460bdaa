"""Help for calling a tool by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..api.tools import ToolSpec
from ..config.program import command_name
from ..util.schemas.texts import type_text
from ..util.text import one_line, to_json
from ..util.untrusted_json import parse_json
from .argument_errors import example_arguments
from .arguments import key_value_words

_SENTENCE = re.compile(r".*?[.!?](?=\s|$)", re.DOTALL)
_CALL = re.compile(r"\b([a-z][a-z0-9_]*)\((\{.*?\})\)")
_SAID = 5
"""The maximum number of phrases."""


IN_CHAT = "/"
"""The prefix of a call by hand in a chat."""


def in_shell() -> str:
    """The prefix of a call by hand in a shell."""
    return f"{command_name()} tools call "


def tool_help(spec: ToolSpec, where: str = IN_CHAT) -> str:
    """A tool's description, parameters and access, and a line that calls it in a chat or a shell."""
    lines = [f"{spec.name} ({spec.source}, group {spec.group})" if spec.group else f"{spec.name} ({spec.source})"]
    lines += ["", spec.description, ""]
    required = spec.parameters.get("required", ())
    for name, schema in spec.parameters.get("properties", {}).items():
        default = f"default {to_json(schema['default'])}" if "default" in schema else "optional"
        need = "required" if name in required else default
        lines.append(f"  {name}  {type_text(schema)}, {need}: {schema.get('description', '')}".rstrip(": "))
    if not spec.parameters.get("properties"):
        lines.append("  It has no parameters.")
    lines += ["", f"Access: {', '.join(sorted(spec.access))}"]
    lines += [f"Example: {typed_call(spec.name, one_line_example(spec), where)}"]
    if spec.phrases:
        lines.append("Without a model: " + "; ".join(phrase["say"] for phrase in spec.phrases[:_SAID]))
    return "\n".join(lines)


def typed_call(name: str, arguments: Mapping[str, Any], where: str = IN_CHAT) -> str:
    """The line for this call as the user types it: `/name key=value ...` in a chat."""
    return f"{where}{name} {key_value_words(arguments)}".rstrip(" ")


def with_typed_calls(text: str, where: str = IN_CHAT) -> str:
    """The error of a tool, with its example calls as users type them instead of the form for models."""

    def typed(call: re.Match[str]) -> str:
        try:
            return typed_call(call[1], parse_json(call[2]), where)
        except ValueError:  # it is not a call
            return call[0]

    return _CALL.sub(typed, text).replace("\nCorrect call: ", "\nFor example: ")


def with_typed_note(text: str) -> str:
    """A result with the calls in its note, the last line in brackets, as users type them. The rest is unchanged."""
    before, bracket, note = text.rpartition("\n[")
    return f"{before}{bracket}{with_typed_calls(note)}" if bracket and note.endswith("]") else text


def one_line_example(spec: ToolSpec) -> dict[str, Any]:
    """Example arguments of the tool; of longer texts only the first line."""
    made = example_arguments(spec)
    return {name: value.partition("\n")[0] if isinstance(value, str) else value for name, value in made.items()}


def summary(spec: ToolSpec) -> str:
    """The first sentence of the tool's description."""
    paragraph = one_line(spec.description.partition("\n\n")[0])
    sentence = _SENTENCE.match(paragraph)
    return sentence.group() if sentence else paragraph
