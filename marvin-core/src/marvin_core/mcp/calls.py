"""Tools that call the tools of servers. Arguments are validated against the server's schema before approval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from ..api.tool_context import ToolContext
from ..api.tools import Tool, ToolResult, ToolSpec
from .arguments.checks import Check
from .connection import Connection
from .listed import ListedTool
from .results import resource_blocks


def tool_of(spec: ToolSpec, listed: ListedTool, connection: Connection) -> Tool:
    """The tool that calls a server's tool."""
    model = _arguments(listed.schema)

    async def call(context: ToolContext, arguments: Any) -> ToolResult:
        return await connection.call(listed.called, arguments.model_extra or {}, context)

    call.__name__ = spec.name
    call.__doc__ = spec.description
    call.__annotations__ = {"context": ToolContext, "arguments": model, "return": ToolResult}
    return Tool(call, access=tuple(spec.access), parallel=True)


def resource_tool(spec: ToolSpec, connection: Connection) -> Tool:
    """The tool that reads a server's resources."""

    async def read(context: ToolContext, uri: str) -> ToolResult:
        found = await connection.use(lambda client: client.read_resource(uri), context)
        return ToolResult(content=resource_blocks(found.contents) or "The resource is empty.")

    read.__name__ = spec.name
    read.__doc__ = spec.description
    read.__annotations__ = {"context": ToolContext, "uri": str, "return": ToolResult}
    return Tool(read, access=tuple(spec.access), parallel=True)


def _arguments(schema: Mapping[str, Any]) -> type[BaseModel]:
    """A Pydantic model that validates arguments against the schema."""
    check = Check(schema)

    class Arguments(BaseModel):
        model_config = ConfigDict(extra="allow", protected_namespaces=())

        @model_validator(mode="before")
        @classmethod
        def fits(cls, values: Any) -> Any:
            """Reject arguments that the server would reject."""
            if problems := check.problems(values):
                raise ValueError("; ".join(problems))
            return values

    return Arguments
