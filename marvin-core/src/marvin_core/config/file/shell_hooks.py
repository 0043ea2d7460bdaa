"""The section `hooks:` of config.yaml: the user's commands by the events that start them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from ...util.text import hint_at, to_json

_KEYS = ("command", "tools", "sandbox")
_METHODS = ("on_prompt", "system_prompt", "before_request", "before_tool", "after_tool", "on_stop")
_OF_CALLS = ("before_tool", "after_tool", "tool_execution_start", "tool_execution_update", "tool_execution_end")
_LIFECYCLE = {"tool.execute.before": "before_tool", "tool.execute.after": "after_tool"}
"""Alternative names of two methods. Types of events may also be written with dots."""


def event_names() -> tuple[str, ...]:
    """The names that can start a command: the methods of `Hook`, and the types of events."""
    from ...api import events

    return (*_METHODS, *(kind.type for kind in get_args(events.Event)))


class HookProblem(ValueError):
    """An error in `hooks:`. `said` is the message, `below` the path to the wrong value."""

    def __init__(self, said: str, *below: str | int) -> None:
        super().__init__(said)
        self.said = said
        self.below = below


def checked_hooks(value: Any) -> dict[str, list[dict[str, Any]]]:
    """The checked entries of `hooks:`, each with its event, command, tools and sandbox.

    Raises:
        HookProblem: an entry is invalid.
    """
    if not isinstance(value, dict):
        raise HookProblem(f"must be a mapping; found {to_json(value):.80}.")
    found = {}
    for name, entries in value.items():
        event = _event(name)
        if not isinstance(entries, list):
            raise HookProblem(f"must be a list; found {to_json(entries):.80}.", name)
        found[name] = [_hook(entry, event, name, at) for at, entry in enumerate(entries)]
    return found


def _event(name: str) -> str:
    event = _LIFECYCLE.get(name) or name.replace(".", "_")
    known = event_names()
    if event not in known:
        raise HookProblem(f"there is no such event. {hint_at(event, known, 'Known: ' + ', '.join(known))}", name)
    return event


def _hook(entry: Any, event: str, *below: str | int) -> dict[str, Any]:
    """One entry: a command as text, or a mapping with `command`."""
    given: Mapping[Any, Any] = entry if isinstance(entry, dict) else {"command": entry}
    for key in given:
        if key not in _KEYS:
            hint = hint_at(str(key), _KEYS, "An entry has command, tools and sandbox.")
            raise HookProblem(f"unknown key {str(key)!r} of a hook. {hint}", *below)
    command, sandbox = given.get("command"), given.get("sandbox", False)
    if not isinstance(command, str) or not command.strip() or "\0" in command:
        raise HookProblem(
            f"{to_json(command):.80} is not a command. "
            "An entry must be a command, or a mapping with the key `command`.",
            *below,
        )
    if not isinstance(sandbox, bool):
        raise HookProblem(f"sandbox must be true or false; found {to_json(sandbox):.80}.", *below)
    tools = _tools(given["tools"], event, below) if "tools" in given else []
    return {"event": event, "command": str(command), "tools": tools, "sandbox": sandbox}


def _tools(value: Any, event: str, below: tuple[str | int, ...]) -> Sequence[str]:
    if event not in _OF_CALLS:
        said = f"`tools` selects the calls that start a command, but {event} is about no call. Remove it"
        raise HookProblem(said, *below)
    if not isinstance(value, list) or not value or not all(isinstance(one, str) and one.strip() for one in value):
        raise HookProblem(
            f"tools must be a list of names or patterns with * and ?; found {to_json(value):.80}.", *below
        )
    return [str(one).strip() for one in value]
