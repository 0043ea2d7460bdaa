"""Undo calls of tools, as data."""

from __future__ import annotations

import inspect
from typing import Any

from ..api.errors import ToolError
from ..api.messages import Call
from ..api.tools import Tool


def call_of(tool: Tool, /, **arguments: Any) -> Call:
    """A call of a tool with these arguments, for `ToolResult(undo=...)`, from its function.

    The names of the tool and of its arguments are checked. Nothing is called.

    Raises:
        ToolError: the tool has no such parameter, or requires another one.
    """
    signature = inspect.signature(tool.function)
    context = {name for name, one in signature.parameters.items() if "ToolContext" in str(one.annotation)}
    try:
        signature.bind(**dict.fromkeys(context), **arguments)
    except TypeError as error:
        raise ToolError(
            f"{tool.name} cannot be called like this: {error}. Use the parameter names that it declares."
        ) from error
    return Call(name=tool.name, arguments=arguments)
