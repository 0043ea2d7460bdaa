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

SEARCH = "tool_search"
"""The name of the tool that finds others. The service gives its calls and outputs a form of their own."""


def search_tool(spec: ToolSpec) -> dict[str, Any]:
    """What the service is told of the search."""
    return {
        "type": "tool_search",
        "execution": "client",
        "description": spec.description,
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
    found = [waiting[name] for name in output.reveals if name in waiting]
    return {
        "type": "tool_search_output",
        "call_id": output.call_id,
        "execution": "client",
        "status": "completed",
        "tools": [{**function_tool(spec), "defer_loading": True} for spec in found],
    }


def function_tool(spec: ToolSpec) -> dict[str, Any]:
    """What the service is told of any other tool."""
    return {
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
        "strict": False,
    }
