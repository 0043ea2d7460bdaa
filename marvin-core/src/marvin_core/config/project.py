"""Applies `.marvin/config.yaml` of a trusted folder. It may set a few keys, and cannot extend permissions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..api.config import Config
from .file.sections import FileSettings, record_of
from .settings import parse_settings

_FILE = ".marvin/config.yaml"
_TAKEN = ("hooks", "permissions", "model", "thinking")
_RULES = ("ask", "deny")


def with_settings(config: Config, content: bytes) -> tuple[Config, list[str]]:
    """The configuration with the settings of a project, and the ignored keys.

    The user's flags, variables and own config.yaml take precedence. The rules of a project can only restrict, and its
    hooks run in the sandbox.

    Raises:
        ConfigError: the file is invalid; the text names the line.
    """
    written = parse_settings(content, Path(_FILE))
    left_out = [name for name in written if name not in _TAKEN]
    left_out += [f"permissions.{name}" for name in written.get("permissions", {}) if name not in _RULES]
    settings, own = record_of(FileSettings, written), config.permissions
    entries = (hook for hooks in settings.hooks.values() for hook in hooks)
    hooks = [hook.replace(sandbox=True, file=_FILE) for hook in entries]
    rules = settings.permissions
    return config.replace(
        permissions=own.replace(ask=(*own.ask, *rules.ask), deny=(*own.deny, *rules.deny)),
        shell_hooks=(*config.shell_hooks, *hooks),
        **_model(config, settings),
    ), left_out


def _model(config: Config, settings: FileSettings) -> dict[str, Any]:
    """The model and the thinking level of the project, if the user has not set them."""
    found: dict[str, Any] = {}
    if settings.model and not config.model:
        found |= {"model": settings.model, "model_origin": _FILE, "model_from": "file"}
    if settings.thinking and not config.thinking_from:
        from .thinking import thinking_fields

        named = thinking_fields((), None, FileSettings(thinking=settings.thinking), config.model)
        found |= {name: named[name] for name in ("thinking", "thinking_from")}
    return found
