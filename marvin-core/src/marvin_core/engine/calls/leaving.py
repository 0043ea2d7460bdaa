"""Calls that request to run outside of the sandbox, and their notes about blocked actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...api.errors import ToolError
from ...api.hooks import Ask
from ...api.messages import Text
from ...api.tools import ToolResult, ToolSpec
from ...guard.sandbox.leaving import PARAMETER, takes

if TYPE_CHECKING:
    from ..parts import SessionParts

_HOW = (
    "If the task needs this, make the call again with outside='REASON': the user is asked, and can let that one "
    "call run outside of the sandbox."
)


async def asked(parts: SessionParts, spec: ToolSpec, arguments: Mapping[str, Any]) -> Ask | None:
    """The question for a call that requests to leave the sandbox; None if it does not, or if there is no sandbox.

    Raises:
        ToolError: if nobody can approve it.
    """
    why = arguments.get(PARAMETER) if takes(spec) else None
    if not why or (await parts.sandbox.state()).kind == "none":
        return None
    if parts.setup.asker is None and parts.config.on_ask != "allow-all":
        raise ToolError(
            f"{spec.name} was not run: it asks to leave the sandbox, and nobody can approve that in this run. Do it "
            "another way, or leave it to the user."
        )
    return Ask(reason=f"it asks to run outside of the sandbox, because: {why}")


def held_back(parts: SessionParts, spec: ToolSpec, lines: Sequence[str]) -> str:
    """The actions of a call that the sandbox blocked, and how to request permission if it can be granted."""
    return "\n".join([*lines, _HOW] if takes(spec) and not parts.workspace.playing else lines)


def noted(parts: SessionParts, spec: ToolSpec, result: ToolResult, lines: Sequence[str]) -> ToolResult:
    """The result, with a line about actions of its programs that the sandbox blocked."""
    if not lines or not isinstance(result.content, (str, tuple)):
        return result
    return result.replace(content=(*result.blocks, Text(text=f"\n{held_back(parts, spec, lines)}")))
