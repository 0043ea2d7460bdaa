"""What stands below `hooks:` in config.yaml: commands of the user's, by the events that start them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from ..api.config import ShellHook
from ..api.errors import ConfigError
from ..util.text import hint_at

_KEYS = ("command", "tools", "sandbox")
_METHODS = ("on_prompt", "system_prompt", "before_request", "before_tool", "after_tool", "on_stop")
_OF_CALLS = ("before_tool", "after_tool", "tool_execution_start", "tool_execution_update", "tool_execution_end")
_LIFECYCLE = {"tool.execute.before": "before_tool", "tool.execute.after": "after_tool"}
"""What the life of a session calls two of the methods; its other events have the names of the types, with dots."""


def event_names() -> tuple[str, ...]:
    """Everything that can start a command: the methods of `Hook`, and the types of events."""
    from ..api import events

    return (*_METHODS, *(kind.type for kind in get_args(events.Event)))


def checked_event(name: str, place: str) -> str:
    """The event that a key below `hooks:` means. Raises `ConfigError`, with the nearest name, where there is none."""
    event = _LIFECYCLE.get(name) or name.replace(".", "_")
    known = event_names()
    if event not in known:
        raise ConfigError(f"{place}: hooks.{name} is no event. {hint_at(event, known, 'Known: ' + ', '.join(known))}")
    return event


def checked_hook(entry: Any, event: str, place: str) -> dict[str, Any]:
    """One entry, its command, tools and sandbox beside the event.

    Args:
        entry: a command as text, or a mapping with `command`.
        place: where it stands, as `FILE, line N: KEY`.

    Raises:
        ConfigError: where it is no entry.
    """
    given: Mapping[Any, Any] = entry if isinstance(entry, dict) else {"command": entry}
    for key in given:
        if key not in _KEYS:
            hint = hint_at(str(key), _KEYS, "An entry has command, tools and sandbox.")
            raise ConfigError(f"{place}: unknown key {str(key)!r} of a hook. {hint}")
    command, sandbox = given.get("command"), given.get("sandbox", False)
    if not isinstance(command, str) or not command.strip() or "\0" in command:
        raise ConfigError(f"{place} has {str(command)!r:.80}. An entry is a command, or a mapping with `command`.")
    if not isinstance(sandbox, bool):
        raise ConfigError(f"{place}: sandbox takes true or false, found {str(sandbox)!r:.80}.")
    tools = _tools(given["tools"], event, place) if "tools" in given else []
    return {"event": event, "command": str(command), "tools": tools, "sandbox": sandbox}


def _tools(value: Any, event: str, place: str) -> Sequence[str]:
    if event not in _OF_CALLS:
        raise ConfigError(f"{place}: tools says which calls start a command, and {event} is about none. Leave it out.")
    if not isinstance(value, list) or not value or not all(isinstance(one, str) and one.strip() for one in value):
        raise ConfigError(f"{place}: tools takes a list of names, with * and ?, found {str(value)!r:.80}.")
    return [str(one).strip() for one in value]


def shell_hooks(settings: Mapping[str, Any]) -> tuple[ShellHook, ...]:
    """The entries of all events, in their order."""
    entries = [entry for entries in settings.values() for entry in entries]
    return tuple(ShellHook(**{**entry, "tools": tuple(entry["tools"])}) for entry in entries)
