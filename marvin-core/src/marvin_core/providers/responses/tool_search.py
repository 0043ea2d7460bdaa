"""The search for tools as the Responses API knows it, where the client does the searching.

https://developers.openai.com/api/docs/guides/tools-tool-search#client-executed-tool-search
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ...api.messages import ToolCall, ToolOutput
from ...api.tools import ToolSpec
from ..http.encoding import object_arguments
from ..http.tool_forms import LONGEST_AT_OPENAI, described


def search_tool(spec: ToolSpec) -> dict[str, Any]:
    """What the service is told of the search."""
    return {
        "type": "tool_search",
        "execution": "client",
        "description": described(spec),
        "parameters": spec.parameters,
    }


def search_call(call: ToolCall, offered: Sequence[ToolSpec]) -> dict[str, Any]:
    """A call of the search."""
    return {
        "type": "tool_search_call",
        "call_id": call.id,
        "execution": "client",
        "status": "completed",
        "arguments": json.loads(object_arguments(call, offered)),
    }


def search_output(output: ToolOutput, waiting: Mapping[str, ToolSpec]) -> dict[str, Any]:
    """What it found: the model can call these from then on."""
    found = found_by(output, waiting)
    return {
        "type": "tool_search_output",
        "call_id": output.call_id,
        "execution": "client",
        "status": "completed",
        "tools": [{**function_tool(spec), "defer_loading": True} for spec in found],
    }


def found_by(output: ToolOutput, waiting: Mapping[str, ToolSpec]) -> list[ToolSpec]:
    """The tools among those that wait that a search found."""
    return [waiting[name] for name in dict.fromkeys(output.reveals) if name in waiting]


def said_by(output: ToolOutput, offered: Sequence[ToolSpec]) -> dict[str, Any]:
    """What a search said that found nothing new, as an item of its own: its output has room for tools alone."""
    names = ", ".join(spec.name for spec in offered if spec.name in output.reveals)
    found = f"You can already call these: {names}." if names else ("The tools that were found are no longer available.")
    content = [
        {"type": "input_text", "text": f"tool_search: {found if output.reveals else output.text or 'no output'}"}
    ]
    return {"type": "message", "role": "developer", "content": content}


def function_tool(spec: ToolSpec) -> dict[str, Any]:
    """What the service is told of any other tool."""
    return {
        "type": "function",
        "name": spec.name,
        "description": described(spec, LONGEST_AT_OPENAI),
        "parameters": spec.parameters,
        "strict": False,
    }
