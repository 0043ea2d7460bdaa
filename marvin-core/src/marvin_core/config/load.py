"""Reads flags, environment and config.yaml into one frozen value. No other code reads the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..api.config import ChatPreferences, Config, McpServer, NetworkPolicy, PermissionMode, Source
from ..api.errors import UsageError
from ..api.providers import Secret
from .file.sections import FileSettings, NetworkSettings, record_of
from .folders import chosen_folder, current_folder, own_folders
from .limits import depth, max_cost, sandbox_use, screen_reader_use, tool_search_use
from .secret_files import secrets_of_address, secrets_of_headers, secrets_of_server
from .secrets import Secrets
from .settings import read_settings
from .stored.keys import StoredKeys
from .tiers import tier_models

if TYPE_CHECKING:
    from argparse import Namespace

_ELSEWHERE = frozenset(
    (
        "provider",
        "model",
        "thinking",
        "tier_thinking",
        "tools",
        "tool_search",
        "screen_reader",
        "packs",
        "permission_mode",
        "sandbox",
        "network",
    )
)
"""The keys of config.yaml that do not set the field of `Config` of the same name by themselves: flags and variables do
too, or only they."""
_AS_THEY_ARE = (FileSettings.__annotations__.keys() & Config.__annotations__.keys()) - _ELSEWHERE
"""The keys of config.yaml whose values are fields of `Config` of the same name, unless `fields_of` converts them."""

SERVED_BEHIND = "MARVIN_MCP_TOKEN"
"""The variable with the token that clients of `marvin mcp serve --http` send: a secret, and not part of `Config`."""


def load(
    argv: Sequence[str], env: Mapping[str, str], *, cwd: Path | None = None, with_file: bool = True
) -> tuple[Config, Secrets]:
    """Read flags, environment and config.yaml.

    Args:
        cwd: the base of relative paths; by default the current folder of the process.
        with_file: whether config.yaml is read; false for commands that help to repair an invalid file.

    Raises:
        UsageError: a flag or its value is invalid.
        ConfigError: a variable, a folder or config.yaml is invalid.
    """
    from .flags import parse

    flags = parse(argv)
    cwd = cwd or current_folder()
    home = Path(env.get("HOME") or os.path.expanduser("~"))
    folders = own_folders(env, home, cwd)
    file, cache = folders["config_folder"] / "config.yaml", folders["cache_folder"] / "config.json"
    settings = record_of(FileSettings, read_settings(file, cache) if with_file else {})
    working_dir = chosen_folder(flags.working_dir, cwd, home)
    named, tiers = _models(flags.model)
    model = _named("model", named, ("MARVIN_MODEL", env), settings)
    config = Config(
        working_dir=working_dir,
        in_home=flags.working_dir is None and working_dir == home.resolve(),
        tiers=tier_models({**settings.models, **tiers}, env),
        tools=flags.tools or settings.tools,
        sandbox=sandbox_use(flags.sandbox, env.get("MARVIN_SANDBOX", ""), settings.sandbox),
        tool_search=tool_search_use(flags.tool_search, env.get("MARVIN_TOOL_SEARCH", ""), settings.tool_search),
        max_cost=max_cost(flags.max_cost, env.get("MARVIN_MAX_COST")),
        home=home,
        **folders,
        **_named("provider", flags.provider, ("LLM_PROVIDER", env), settings),
        **model,
        **_thinking(flags.thinking, env.get("MARVIN_THINKING"), settings, model["model"]),
        **_permissions(flags, env, settings.permission_mode),
        **_from_flags(flags, cwd),
        **_from_environment(env, cwd),
        **fields_of(settings, env),
        screen_reader=screen_reader_use(
            flags.screen_reader, env.get("MARVIN_SCREEN_READER", ""), settings.screen_reader
        ),
        network=_network(flags.network, env.get("MARVIN_NETWORK"), settings.network),
    )
    return config, _secrets(config, env, home)


def _secrets(config: Config, env: Mapping[str, str], home: Path) -> Secrets:
    """The secrets: those that are not in `Config`, and the keys in its headers and addresses."""
    stored = StoredKeys(config.config_folder, config.timeouts)
    secrets = Secrets(env, home, config.child_env, stored)
    if config.endpoints or config.http_proxy or config.https_proxy:
        addresses = [config.http_proxy, config.https_proxy]
        for endpoint in config.endpoints.values():
            addresses += [endpoint.base_url, endpoint.auth_url]
            for value in secrets_of_headers(endpoint.headers or {}):
                secrets.learn(Secret(value))
        for value in (one for address in addresses for one in secrets_of_address(address)):
            secrets.learn(Secret(value))
    for server in config.mcp_servers.values():
        for value in secrets_of_server(server):
            if "${" not in value:
                secrets.learn(Secret(value))
    return secrets


def _from_flags(flags: Namespace, cwd: Path) -> dict[str, Any]:
    """The fields that only flags set."""
    return {
        **_of_pipeline(flags, cwd),
        "prompt": _prompt(flags),
        "prompt_file": cwd / flags.prompt_file if flags.prompt_file is not None else None,
        "non_interactive": flags.non_interactive,
        "plain": flags.plain,
        "curses": flags.curses,
        "rooted": flags.working_dir is not None,
        "output_format": flags.output_format,
        "output_schema": _output_schema(flags.output_schema, cwd),
        "continue_session": flags.continue_,
        "resume": flags.resume or "",
        "record": cwd / flags.record if flags.record else None,
    }


def _of_pipeline(flags: Namespace, cwd: Path) -> dict[str, Any]:
    """The fields for the pipeline and for notices. Most runs set none, and skip the import."""
    given = (flags.ntfy, flags.from_, flags.until, flags.upstream, flags.max_time)
    switches = ("design_first", "yes", "strict", "github")
    if not any(getattr(flags, name) for name in switches) and not any(one is not None for one in given):
        nothing = {**dict.fromkeys(switches, False), "upstream": None, "max_time": None}
        return {**nothing, **dict.fromkeys(("pipeline_from", "pipeline_until", "ntfy"), "")}
    from .pipeline import pipeline_fields

    return pipeline_fields(flags, cwd)


def _prompt(flags: Namespace) -> str | None:
    words = " ".join(flags.words)
    for flag, value in (("--prompt", flags.prompt), ("--prompt-file", flags.prompt_file)):
        if words and value is not None:
            raise UsageError(f"The prompt was given twice, with {flag} and as an argument. Give it once.")
    return flags.prompt if flags.prompt is not None else (words or None)


def _network(flag: str | None, variable: str | None, setting: NetworkSettings) -> NetworkPolicy | None:
    if flag is None and not variable and not setting.kind:  # the most common case
        return None
    from .network import network_policy

    return network_policy(flag, variable, setting)


def _thinking(flags: Sequence[str], variable: str | None, settings: FileSettings, model: str) -> dict[str, Any]:
    """The fields for thinking levels. Most runs set none, and skip the import."""
    if not flags and not variable and not settings.thinking and not settings.tier_thinking:
        return {"thinking": "off", "thinking_from": "", "tier_thinking": {}}
    from .thinking import thinking_fields

    return thinking_fields(flags, variable, settings, model)


def _permissions(flags: Namespace, env: Mapping[str, str], setting: PermissionMode | None) -> dict[str, Any]:
    """The fields for permissions. Most runs set none, and skip the import."""
    mode, on_ask = env.get("MARVIN_PERMISSION_MODE"), env.get("MARVIN_ON_ASK")
    said = (flags.on_ask, on_ask, flags.permission_mode, mode, setting)
    if not any(one is not None and one != "" for one in said):
        trust = flags.trust_project
        return {"on_ask": "allow", "on_ask_tools": {}, "permission_mode": None, "trust_project": trust}
    from .permissions import permission_fields

    return permission_fields(flags, mode, on_ask, setting)


def _output_schema(given: str | None, cwd: Path) -> Mapping[str, Any] | None:
    if given is None:
        return None
    from .output_schema import read_schema

    return read_schema(cwd / given)


def _from_environment(env: Mapping[str, str], cwd: Path) -> dict[str, Any]:
    """The fields that only variables set."""
    log = env.get("MARVIN_SUBAGENT_LOG")
    return {
        "packs": frozenset(_list(env["MARVIN_PACKS"])) if env.get("MARVIN_PACKS") else None,
        "trace_hooks": env.get("MARVIN_TRACE_HOOKS", "") not in ("", "0"),
        "depth": depth(env.get("MARVIN_DEPTH", "")),
        "read_only": env.get("MARVIN_READONLY", "") not in ("", "0"),
        "writable_files": _list(env["MARVIN_WRITABLE_FILES"]) if env.get("MARVIN_WRITABLE_FILES") else None,
        "ticket": env.get("MARVIN_TICKET", ""),
        "ledger": env.get("MARVIN_LEDGER", ""),
        "agent_slots": env.get("MARVIN_AGENT_SLOTS", ""),
        "ntfy_url": env.get("MARVIN_URL_NTFY", ""),
        "prices_url": env.get("MARVIN_URL_PRICES", ""),
        "subagent_log": cwd / log if log else None,
        "lifeline": env.get("MARVIN_LIFELINE", ""),
        "color": not env.get("NO_COLOR"),
        "editor": env.get("EDITOR") or "nano",
        "terminal": _terminal(env),
        "http_proxy": _either(env, "HTTP_PROXY"),
        "https_proxy": _either(env, "HTTPS_PROXY"),
        "no_proxy": _either(env, "NO_PROXY"),
    }


def _terminal(env: Mapping[str, str]) -> str:
    """The kind of terminal. TERM is not enough: other terminals claim to be xterm, and tmux claims to be screen."""
    kind = env.get("TERM", "")
    if env.get("XTERM_VERSION"):
        return "xterm"
    return "screen/GNU" if env.get("STY") and kind.startswith("screen") else kind


def fields_of(settings: FileSettings, env: Mapping[str, str]) -> dict[str, Any]:
    """The fields that config.yaml sets, and that have no flag."""
    ui = settings.ui.as_dict()
    return {
        **{name: getattr(settings, name) for name in _AS_THEY_ARE},
        "ca_file": settings.ca_file or env.get("SSL_CERT_FILE", ""),
        "ui": ui.pop("name"),
        "chat": ChatPreferences(**ui),
        "pack_sections": settings.packs.sections,
        "packs_off": frozenset(settings.packs.off),
        "packs_prefer": settings.packs.prefer,
        "shell_hooks": tuple(hook for hooks in settings.hooks.values() for hook in hooks),
        "mcp_servers": {name: McpServer(name=name, **one.as_dict()) for name, one in settings.mcp_servers.items()},
        "endpoints": settings.providers,
        "cache": settings.cache or "",
        "child_env": frozenset(settings.child_env),
    }


def _named(
    what: str, flag: str | None, variable: tuple[str, Mapping[str, str]], settings: FileSettings
) -> dict[str, Any]:
    """A setting and its origin: from a flag, else a variable, else config.yaml."""
    name, env = variable
    candidates: tuple[tuple[str | None, str, Source], ...] = (
        (flag, f"--{what}", "flag"),
        (env.get(name), name, "environment"),
        (getattr(settings, what), "config.yaml", "file"),
    )
    value, origin, source = next((candidate for candidate in candidates if candidate[0]), ("", "", ""))
    return {what: value, f"{what}_origin": origin, f"{what}_from": source}


def _models(given: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The value of --model without a tier, and the models of tiers (`high=...`)."""
    bare, tiers = "", {}
    for value in given:
        tier, equals, model = value.partition("=")
        if not equals:
            bare = value
        elif tier and model:
            tiers[tier] = model
        else:
            raise UsageError(f"--model {value}: write MODEL, or TIER=MODEL as in high=claude-opus-4.6.")
    return bare, tiers


def _list(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _either(env: Mapping[str, str], name: str) -> str:
    return env.get(name) or env.get(name.lower(), "")
