"""config.yaml: what it may hold, read with the place of every mistake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..api.errors import ConfigError
from ..api.limits import Limits
from ..api.timeouts import Timeouts
from ..util.state_files import read_trusted_json, write_cache
from ..util.text import cut, hint_at

_VALUE_SHOWN = 40
_SHORTEST_KEY = 12
"""Characters that the keys of services have at least."""

_ENDPOINT = {
    "wire": str,
    "base_url": str,
    "key": str,
    "models": list,
    "context_window": int,
    "windows": {str: int},
    "max_tools": int,
    "headers": dict,
    "auth_url": str,
    "free": bool,
}
_SERVER = {
    "command": str,
    "args": list,
    "env": {str: str},
    "cwd": str,
    "url": str,
    "headers": {str: str},
    "sandbox": bool,
    "read_only": list,
    "off": bool,
}
_TIMEOUTS = {name: (list if isinstance(value, tuple) else float) for name, value in Timeouts().as_dict().items()}
KEYS: Mapping[str, Any] = {
    "provider": str,
    "model": str,
    "models": {str: str},
    "thinking": str,
    "tier_thinking": {str: str},
    "cache": str,
    "providers": {str: _ENDPOINT},
    "fallback": list,
    "tools": str,
    "tool_search": str,
    "ui": (
        str,
        {
            "name": str,
            "markdown": str,
            "thinking": str,
            "status": list,
            "keys": str,
            "completion": str,
            "pictures": str,
            "attention": list,
        },
    ),
    "theme": str,
    "screen_reader": str,
    "packs": {"off": list, "prefer": list, str: dict},
    "permission_mode": str,
    "permissions": {"allow": list, "ask": list, "deny": list},
    "labels": {"web": list, "repository": list, "private": list, "secret": list, "tools": list, "unattended": bool},
    "hooks": {str: list},
    "mcp_servers": {str: _SERVER},
    "child_env": list,
    "sandbox": str,
    "transport": str,
    "ca_file": str,
    "prices": {str: {"input": float, "output": float, "cache_read": float, "cache_write": float}},
    "instructions": str,
    "allow_addresses": list,
    "network": (str, {"hosts": list}),
    "seed": str,
    "timeouts": _TIMEOUTS,
    "limits": dict.fromkeys(Limits().as_dict(), int),
}
"""Every key of config.yaml and the type of its value; a `str` key stands for any name.

Of a pair, a value is the first or has the keys of the second.
"""

MEANINGS: Mapping[str, str] = {
    "provider": "The model service, where neither --provider nor LLM_PROVIDER names one.",
    "model": "The model, where neither --model nor MARVIN_MODEL names one.",
    "models.NAME": "The model of a tier.",
    "thinking": "How hard models think: off, low, medium or high. Default: off, the least that they can do.",
    "tier_thinking.NAME": "How hard the model of this tier thinks, whatever else is said.",
    "cache": "How long services keep what they read, where one may choose: 5m, or 1h, which costs more to write.",
    "providers.NAME.wire": "The format that the service speaks; default: chat-completions.",
    "providers.NAME.base_url": "Its address, up to the version: https://models.example.com/v1.",
    "providers.NAME.key": "The name of the variable with its key, never the key itself.",
    "providers.NAME.models": "What it serves, the default first.",
    "providers.NAME.context_window": "How many tokens its models take.",
    "providers.NAME.windows.NAME": "The context window, in tokens, of models whose name starts with NAME.",
    "providers.NAME.max_tools": "How many tools a request may carry.",
    "providers.NAME.headers": "Sent with every request.",
    "providers.NAME.auth_url": "Where `marvin login` logs in.",
    "providers.NAME.free": "Whether its requests cost nothing. Without it, those of a server on this machine that runs "
    "its models itself do; those of a gateway on this machine cost what its model costs.",
    "fallback": "The models that go on where one fails, in this order: `PROVIDER` or `PROVIDER/MODEL`.",
    "tools": "Tool sets, groups and names, as in --tools.",
    "tool_search": "Whether tools wait until the model looks for them, where neither --tool-search nor "
    "MARVIN_TOOL_SEARCH says so: `auto`, where there are many; `on`, all but a few; `off`, only where the service "
    "takes no more. Default: `auto`.",
    "ui": "The interface of the chat, as `ui.name`; or the keys below it, which are those of the plain chat.",
    "ui.name": "The interface of the chat; packs bring others beside `plain`.",
    "ui.markdown": "`off`: answers are written as models typed them, to be copied; `on` without it: they are drawn.",
    "ui.thinking": "`on`: what a model thinks is shown, dim and folded; `off` without it. Ctrl+O shows it in any case.",
    "ui.status": "The parts of the status row, in their order: model, mode, thinking, folder, branch, context, cost, "
    "running, profile, shell, messages, tokens. An empty list hides it.",
    "ui.keys": "The keys that edit the line: `emacs`, or `vi`. `emacs` without it.",
    "ui.completion": "When completions are shown: `typing`, while a name or a file is typed, or `tab`. `typing` "
    "without it.",
    "ui.pictures": "`off`: pictures of tools are told by their paths alone; `on` without it: they are drawn where the "
    "terminal says that it can.",
    "ui.attention": "How the chat calls for somebody who looks elsewhere: bell, notify, title. The bell without it.",
    "theme": "What the chat is drawn with: dark, light, contrast, colorblind, or a theme of your own; default: dark.",
    "screen_reader": "`on`: the chat is written for a screen reader, as with --screen-reader.",
    "packs.off": "Packs that are not used, by their names or those of their distributions.",
    "packs.prefer": "Packs that come first where several bring the same name; Marvin's own come before all of them.",
    "packs.NAME": "The settings of a pack, by the name in `marvin packs list`; see below for ours.",
    "permission_mode": "How much is asked before calls run: ask, edit, auto or readonly. Without it a chat begins with "
    "auto where the sandbox holds, else with ask.",
    "permissions.allow": "Calls that are not asked about: `TOOL` or `TOOL(PATTERN)`, with *, ? and [...]; see "
    "[Permissions](../how-to/permissions.md).",
    "permissions.ask": "Calls that are asked about.",
    "permissions.deny": "Calls that never run.",
    "labels.web": "What asks once something was read from the network: tools that send, spend or run, or that reach "
    "the network at all; see [Permissions](../how-to/permissions.md#after-what-was-read). `[send, spend, run]` without "
    "it.",
    "labels.repository": "The same for files of the working directory and what commands print; `[send]` without it.",
    "labels.private": "The same for stored data, as notes and calendars; `[send]` without it.",
    "labels.secret": "The same for results that a key or password was taken out of; `[send]` without it.",
    "labels.tools": "The same once a request carried descriptions of tools that neither Marvin nor you wrote, as "
    "those of packs of others and of projects; `[send]` without it.",
    "labels.unattended": "Whether that counts where nobody is there to ask: such calls are denied then.",
    "hooks.NAME": "Commands that this event starts: a method of `Hook`, as before_tool, or the type of an event; see "
    "[Commands on events](../how-to/shell-hooks.md).",
    "mcp_servers.NAME.command": "The program of a server with tools (MCP), started when one of them is wanted; see "
    "[MCP servers](../how-to/mcp-servers.md). `${NAME}` stands for a variable here and below.",
    "mcp_servers.NAME.args": "Its arguments.",
    "mcp_servers.NAME.env.NAME": "A variable for it.",
    "mcp_servers.NAME.cwd": "The folder that it runs in; without it, the working directory.",
    "mcp_servers.NAME.url": "The address of a server that runs already, in place of a command.",
    "mcp_servers.NAME.headers.NAME": "Sent with every request to that address.",
    "mcp_servers.NAME.sandbox": "Whether its program runs in the sandbox; default: true.",
    "mcp_servers.NAME.read_only": "Its tools that change nothing, with * and ?: they are not asked about as such that "
    "write are.",
    "mcp_servers.NAME.off": "Whether it is left out.",
    "child_env": "Secret variables that programs which tools start may see all the same.",
    "sandbox": "Whether commands run in a sandbox, where neither --sandbox nor MARVIN_SANDBOX says so: `auto`, where "
    "one works; `required`, only in one; `off`, never. Default: `auto`.",
    "transport": "`direct`, Marvin's own connections to model services, or `stock`, those of the library httpx.",
    "ca_file": "A file with the certificate authorities to trust; default: that of SSL_CERT_FILE.",
    "prices.NAME.input": "What a million input tokens of this model cost, in USD.",
    "prices.NAME.output": "What a million output tokens cost.",
    "prices.NAME.cache_read": "What a million tokens cost that come from the service's cache.",
    "prices.NAME.cache_write": "What a million tokens cost that go into it.",
    "instructions": "Text that every system prompt carries.",
    "allow_addresses": "Hosts and networks that tools may reach, though they are private or this machine itself.",
    "network": "What commands reach in the sandbox: none, loopback or all, where --network and MARVIN_NETWORK name "
    "nothing. Without it that is loopback in a chat, which asks about further hosts, and all elsewhere.",
    "network.hosts": "Reach these hosts only: example.org for all of its ports, example.org:443 for one, "
    "*.example.com for sub-domains.",
    "seed": "`off`: a chat does not begin with what was said last in its folder; default: `on`.",
    "timeouts": "See below.",
    "limits": "See below.",
}
"""What each key means, by its full name; the reference page shows it."""

KIND_NAMES = {
    bool: "true or false",
    str: "text",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a mapping",
}


def read_settings(path: Path, cache: Path) -> dict[str, Any]:
    """The content of config.yaml, checked; an absent file is empty.

    What was parsed is kept in `cache` by path, time and size, since the YAML library takes longer to
    import than everything else here.

    Raises:
        ConfigError: where the file cannot be read, is not YAML, or holds an unknown key or a value of
            the wrong type; the text names the file and the line.
    """
    try:
        status = path.stat()
        stamp = [str(path), status.st_mtime_ns, status.st_size, sorted(KEYS)]
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}. Make it readable or remove it.") from error
    kept = read_trusted_json(cache)
    if isinstance(kept, dict) and kept.get("stamp") == stamp and isinstance(kept.get("data"), dict):
        return dict(kept["data"])
    data = _parse(path)
    if not _may_hold_keys(data):  # they stay where the user put them
        write_cache(cache, {"stamp": stamp, "data": data})
    return data


def _may_hold_keys(data: Mapping[str, Any]) -> bool:
    if any("headers" in entry for entry in data.get("providers", {}).values()):
        return True
    servers = data.get("mcp_servers", {}).values()
    texts = (text for one in servers for name in ("env", "headers") for text in one.get(name, {}).values())
    return any(len(text) >= _SHORTEST_KEY and "${" not in text for text in texts)


def _parse(path: Path) -> dict[str, Any]:
    try:
        return parse_settings(path.read_bytes(), path)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}. Make it readable or remove it.") from error


def parse_settings(content: bytes, path: Path) -> dict[str, Any]:
    """What a config.yaml with this content would set; `path` is named in errors, which are those of `read_settings`."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    from ..util.yaml.checked import check_yaml

    try:
        text = content.decode("utf-8")
        check_yaml(text)
        data = YAML().load(text)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 (byte {error.start}). Save it as UTF-8.") from error
    except MarkedYAMLError as error:
        # What never ends is noticed at the end of the file; the mistake is where it begins.
        mark = error.context_mark if "stream end" in (error.problem or "") else error.problem_mark
        line = mark.line + 1 if mark else 1
        raise ConfigError(f"{path}, line {line}: {error.problem or 'not YAML'}. Correct that line.") from error
    except (YAMLError, ValueError, RecursionError) as error:  # the library lets wrong dates and numbers through
        raise ConfigError(f"{path}: {error}. Correct it, or move it away to start from defaults.") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(f"{path}, line 1: expected keys such as `provider: groq`, found {_kind(data)}.")
    return _checked(data, KEYS, path, "")


def _checked(data: Any, schema: Mapping[Any, Any], path: Path, where: str) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in data.items():
        line = (data.lc.data or {}).get(key, (data.lc.line,))[0] + 1  # a key that was merged in (<<) has no line
        expected = schema.get(key, schema.get(str))
        name = f"{where}{key}"
        if isinstance(expected, tuple):
            expected = expected[isinstance(value, dict)]
        if expected is None:
            raise ConfigError(f"{path}, line {line}: unknown key {name!r}. {_nearest(str(key), schema)}")
        if isinstance(expected, Mapping):
            if not isinstance(value, dict):
                raise ConfigError(f"{path}, line {line}: {name} takes keys below it, found {_kind(value)}.")
            result[str(key)] = _checked(value, expected, path, f"{name}.")
        elif where == "permissions.":
            result[str(key)] = _rules(value, path, name, line)
        elif where == "hooks.":
            result[str(key)] = _hooks(value, path, name, line)
        else:
            result[str(key)] = _value(value, expected, f"{path}, line {line}: {name}")
    return result


def _rules(value: Any, path: Path, name: str, line: int) -> list[str]:
    from .rules import checked_rule

    return [checked_rule(item, place) for item, place in _with_places(value, path, name, line)]


def _hooks(value: Any, path: Path, name: str, line: int) -> list[dict[str, Any]]:
    from .shell_hooks import checked_event, checked_hook

    event = checked_event(name.partition(".")[2], f"{path}, line {line}")
    return [checked_hook(item, event, place) for item, place in _with_places(value, path, name, line)]


def _with_places(value: Any, path: Path, name: str, line: int) -> list[tuple[Any, str]]:
    """The entries of a list, each with the place that a mistake in it is told with."""
    items = value if isinstance(value, list) else _value(value, list, f"{path}, line {line}: {name}")
    lines = getattr(getattr(value, "lc", None), "data", None) or {}
    places = [f"{path}, line {lines[at][0] + 1 if at in lines else line}: {name}" for at in range(len(items))]
    return list(zip(items, places, strict=True))


def _value(value: Any, expected: type, place: str) -> Any:
    accepted: tuple[type, ...] = (int, float) if expected is float else (expected,)
    if isinstance(value, bool) != (expected is bool) or not isinstance(value, accepted):
        raise ConfigError(f"{place} takes {KIND_NAMES[expected]}, found {_kind(value)}.")
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return _plain_mapping(value, place)
    return expected(value)


def _plain_mapping(value: dict[Any, Any], place: str) -> dict[str, Any]:
    """The mapping with nothing in it but what JSON knows. What stands there as YAML may hold itself, or grow."""
    from ..util.plain_data import plain

    try:
        found: dict[str, Any] = plain(value)
    except ValueError as error:
        raise ConfigError(f"{place} cannot be used: {error}. Make it simpler.") from error
    return found


def pack_sections(settings: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The sections of packs among settings: what `packs:` holds, less the keys there that are Marvin's own."""
    return {name: section for name, section in settings.get("packs", {}).items() if name not in KEYS["packs"]}


def line_of(content: bytes, keys: Sequence[str | int]) -> int:
    """The line of a config.yaml in which the value at this path stands, or the nearest one around it that is there."""
    from ruamel.yaml import YAML

    node: Any = YAML().load(content.decode("utf-8"))
    line = 1
    for key in keys:
        places = getattr(getattr(node, "lc", None), "data", None) or {}
        if key not in places:
            break
        line, node = places[key][0] + 1, node[key]
    return line


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, float)) else str(value)


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    return next(
        (f"{name} ({cut(str(value), _VALUE_SHOWN)!r})" for kind, name in KIND_NAMES.items() if isinstance(value, kind)),
        "it",
    )


def _nearest(key: str, schema: Mapping[Any, Any]) -> str:
    names = [name for name in schema if isinstance(name, str)]
    return hint_at(key, names, f"Known keys: {', '.join(sorted(names))}.")
