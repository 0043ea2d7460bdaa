"""The tool search of the Responses API in which the client searches.

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
    """The declaration of the search."""
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
    """The output of a search: the model can call these tools from then on."""
    found = found_by(output, waiting)
    return {
        "type": "tool_search_output",
        "call_id": output.call_id,
        "execution": "client",
        "status": "completed",
        "tools": [{**function_tool(spec), "defer_loading": True} for spec in found],
    }


def found_by(output: ToolOutput, waiting: Mapping[str, ToolSpec]) -> list[ToolSpec]:
    """The deferred tools that a search found."""
    return [waiting[name] for name in dict.fromkeys(output.reveals) if name in waiting]


def said_by(output: ToolOutput, offered: Sequence[ToolSpec]) -> dict[str, Any]:
    """The text of a search without new tools, as a separate item: the output can only contain tools."""
    names = ", ".join(spec.name for spec in offered if spec.name in output.reveals)
    found = f"You can already call these: {names}." if names else ("The tools that were found are no longer available.")
    content = [
        {"type": "input_text", "text": f"tool_search: {found if output.reveals else output.text or 'no output'}"}
    ]
    return {"type": "message", "role": "developer", "content": content}


def function_tool(spec: ToolSpec) -> dict[str, Any]:
    """The declaration of any other tool."""
    return {
        "type": "function",
        "name": spec.name,
        "description": described(spec, LONGEST_AT_OPENAI),
        "parameters": spec.parameters,
        "strict": False,
    }
