"""What `.marvin/config.yaml` of a trusted folder may set: what helps with the project, and nothing that widens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..api.config import Config
from .settings import parse_settings
from .shell_hooks import shell_hooks

_FILE = ".marvin/config.yaml"
_TAKEN = ("hooks", "permissions", "model", "thinking")
_RULES = ("ask", "deny")


def with_settings(config: Config, content: bytes) -> tuple[Config, list[str]]:
    """The configuration with the settings of a project, and the keys that count for nothing there.

    What the user said, by a flag, a variable or in their own config.yaml, comes first. Rules only tighten, and hooks
    run in the sandbox.

    Raises:
        ConfigError: where it is none; the text names the line.
    """
    settings = parse_settings(content, Path(_FILE))
    left_out = [name for name in settings if name not in _TAKEN]
    rules = settings.get("permissions", {})
    left_out += [f"permissions.{name}" for name in rules if name not in _RULES]
    own = config.permissions
    hooks = [hook.replace(sandbox=True, file=_FILE) for hook in shell_hooks(settings.get("hooks", {}))]
    return config.replace(
        permissions=own.replace(
            ask=(*own.ask, *map(str, rules.get("ask", ()))), deny=(*own.deny, *map(str, rules.get("deny", ())))
        ),
        shell_hooks=(*config.shell_hooks, *hooks),
        **_model(config, settings),
    ), left_out


def _model(config: Config, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The model and how hard it thinks, where nobody named one."""
    found: dict[str, Any] = {}
    if settings.get("model") and not config.model:
        found |= {"model": settings["model"], "model_origin": _FILE, "model_from": "file"}
    if settings.get("thinking") and not config.thinking_from:
        from .thinking import thinking_fields

        named = thinking_fields((), None, {"thinking": settings["thinking"]}, config.model)
        found |= {name: named[name] for name in ("thinking", "thinking_from")}
    return found
