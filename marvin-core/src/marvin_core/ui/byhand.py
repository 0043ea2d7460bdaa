"""Calling a tool by hand: `/name key=value ...`, in every interface and in `marvin tools call`."""

from __future__ import annotations

import shlex

from ..arguments import parse_key_values, unknown_name
from ..errors import ToolError
from ..messages import Text, ToolOutput
from .base import SessionControl

BY_HAND = "by_hand"
"""The id of calls made by hand."""


async def call_by_hand(session: SessionControl, name: str, words: str) -> ToolOutput:
    """Call a tool with the words of a line; what is wrong with them is told as the output."""
    spec = next((spec for spec in session.tools if spec.name == name), None)
    if spec is None:
        return await session.call_tool(name, {})  # dispatch knows why it is not there
    try:
        arguments = parse_key_values(shlex.split(words), spec)
    except ToolError as error:
        return refused(name, str(error))
    except ValueError as error:
        return refused(name, f"{error}. Quote values with spaces, as in key='two words'.")
    return await session.call_tool(name, arguments)


def refused(name: str, text: str) -> ToolOutput:
    """The output of a call whose words could not be read."""
    return ToolOutput(call_id=BY_HAND, name=name, content=(Text(text=f"Error: {text}"),), is_error=True)


def help_about(session: SessionControl, name: str) -> str:
    """Help for one tool or command; without a name, what can be typed."""
    from ..toolhelp import tool_help

    name = name.strip().removeprefix("/")
    if not name:
        return help_text(session)
    spec = next((spec for spec in session.tools if spec.name == name), None)
    if spec is not None:
        return tool_help(spec)
    if name in session.commands:
        return f"/{name}  {session.commands[name].help}"
    known = [*(spec.name for spec in session.tools), *session.commands]
    return f"{unknown_name('tool or command', name, known)} /help lists them all."


def help_text(session: SessionControl) -> str:
    """What can be typed."""
    tools = ", ".join(spec.name for spec in session.tools)
    commands = "".join(f"\n  {'/' + command.name:<20} {command.help}" for command in session.commands.values())
    return (
        "Type a request, or:\n"
        "  /name key=value ...  call a tool yourself\n"
        "  !COMMAND             run a shell command; !shell (!sh): every line is one, until !shell\n"
        "  /help                this text; /help NAME: what a tool or command does and takes\n"
        "  /exit                leave (exit, quit and Ctrl+D too)"
        f"{commands}\n"
        "Keys: Enter sends; Alt+Enter, or \\ at the end, begins a new line; Tab completes commands, tools,\n"
        "  parameters, and files behind @; Up and Ctrl+R find earlier lines; Ctrl+C ends an answer or empties\n"
        "  the line; Ctrl+D leaves. A line typed during an answer is sent after it.\n"
        f"Tools: {tools or 'none'}"
    )
