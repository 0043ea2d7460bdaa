"""Tool calls by the user: `/name key=value ...`, in every interface and in `marvin tools call`."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable

from ..api.errors import ToolError
from ..api.messages import Image, Text, ToolOutput
from ..api.session import Command, SessionControl
from ..api.tools import ToolSpec
from ..config.program import command_name
from ..tools.arguments import parse_key_values
from ..util.text import unknown_name

_LISTED_TOOLS = 20
"""The maximum number of tools that help lists by name; otherwise it lists their groups."""
_SHELL = ("!COMMAND", "run a shell command; !shell (or !sh) turns shell mode on and off")
_LINES = (
    ("/name key=value ...", "call a tool directly"),
    ("/tool name key=value ...", "the same, if a command has the same name"),
    ("/help [NAME]", "show this text, or the description and parameters of a tool or command"),
    ("/exit", "end the chat (exit, quit and Ctrl+D too)"),
)
_KEYS = (
    "Keys: Enter sends; Alt+Enter, or \\ at the end, begins a new line; Tab completes commands, what they take, tools, "
    "parameters, and files after @, which are attached; Up and Ctrl+R find earlier lines, Up on an empty line those "
    "that wait; Ctrl+G opens your editor; Ctrl+O shows all that happened in full; Shift+Tab changes the permission "
    "mode; Esc ends an answer, Ctrl+C too, or empties the line; Ctrl+D leaves. A line typed during an answer is sent "
    "after it."
)


def command_of(session: SessionControl, name: str) -> str:
    """The parameter of a tool that holds a shell command; empty if there is none."""
    return next((spec.command for spec in session.tools if spec.name == name), "")


def shell_tool(session: SessionControl) -> ToolSpec | None:
    """The available tool that runs the text after `!`."""
    return next((spec for spec in session.tools if spec.typed == "!"), None)


async def call_by_hand(session: SessionControl, name: str, words: str) -> ToolOutput:
    """Call a tool with the words of a line; errors in them become the output."""
    from ..tools.help import with_typed_calls, with_typed_note

    spec = next((spec for spec in session.tools if spec.name == name), None)
    if spec is None:
        return _refused(name, _not_there(session, name))
    try:
        arguments = parse_key_values(shlex.split(words), spec)
    except ToolError as error:
        return _refused(name, with_typed_calls(str(error)))
    except ValueError as error:
        return _refused(name, f"{error}. Quote values with spaces, as in key='two words'.")
    output = await session.call_tool(name, arguments)
    typed = with_typed_calls if output.is_error else with_typed_note
    return output.replace(content=tuple(_typed_block(block, typed) for block in output.content))


def _typed_block(block: Text | Image, typed: Callable[[str], str]) -> Text | Image:
    return Text(text=typed(block.text)) if isinstance(block, Text) else block


def is_call(session: SessionControl, name: str, words: str) -> bool:
    """Whether a line means the tool if a command has the same name: it sets a parameter of the tool."""
    spec = next((spec for spec in session.tools if spec.name == name), None)
    parameter, equals, _ = words.partition("=")
    return spec is not None and bool(equals) and parameter in spec.parameters.get("properties", {})


def _not_there(session: SessionControl, name: str) -> str:
    """Why a name is neither a tool nor a command here, and what to type instead."""
    if name in session.toolbox.missing:
        return f"{name} is not available: {session.toolbox.missing[name]}."
    known = dict.fromkeys([*session.commands, *(spec.name for spec in session.tools), "help", "exit", "tool"])
    return f"{unknown_name('command or tool', name, known)} /help lists them all."


def _refused(name: str, text: str) -> ToolOutput:
    """The output of a rejected call."""
    return ToolOutput(call_id="", name=name, content=(Text(text=f"Error: {text}"),), is_error=True)


def help_about(session: SessionControl, name: str) -> str:
    """Help for one tool or command; without a name, list the commands and keys."""
    from ..tools.help import IN_CHAT, tool_help

    name = name.strip().removeprefix("/")
    if not name:
        return help_text(session)
    spec = next((spec for spec in session.tools if spec.name == name), None)
    told = [_command_help(session.commands[name])] if name in session.commands else []
    if spec is not None and told:
        told.append(f"A tool has this name too. With values, as in the example, {IN_CHAT}{name} calls it:")
    if spec is not None:
        told.append(tool_help(spec))
    if told:
        return "\n\n".join(told)
    known = dict.fromkeys([*(spec.name for spec in session.tools), *session.commands])
    return f"{unknown_name('tool or command', name, known)} /help lists them all."


def _command_help(command: Command) -> str:
    return f"{_typed(command)}\n  {command.help[:1].upper()}{command.help[1:]}."


def _typed(command: Command) -> str:
    """The syntax of a command."""
    return f"/{command.name} {command.takes}".rstrip()


def help_text(session: SessionControl) -> str:
    """The help text: everything that can be typed."""
    shell = [_SHELL] if shell_tool(session) else []
    rows = [_LINES[0], *shell, *_LINES[1:], *((_typed(command), command.help) for command in session.commands.values())]
    width = max(len(typed) for typed, _ in rows)
    listed = "\n".join(f"  {typed:{width}}  {meaning}" for typed, meaning in rows)
    return f"Type a request, or:\n{listed}\n{_KEYS}\nTools: {_tools(session)}"


def _tools(session: SessionControl) -> str:
    """The names of the tools if they are few, otherwise their number in each group."""
    names = [spec.name for spec in session.tools]
    if len(names) <= _LISTED_TOOLS:
        return ", ".join(names) or "none"
    groups = Counter(spec.group or "others" for spec in session.tools)
    counted = ", ".join(f"{group} {count}" for group, count in groups.items())
    return f"{len(names)} ({counted}). `{command_name()} tools list` lists them."
