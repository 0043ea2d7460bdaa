"""The plugin manager, and calling a hook of one plugin at a time."""

from __future__ import annotations

from typing import Any

import pluggy

from . import hookspecs


def plugin_manager() -> pluggy.PluginManager:
    """An empty plugin manager that knows Marvin's hooks."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    return manager


def call_hook(manager: pluggy.PluginManager, plugin: object, hook: str, **arguments: Any) -> Any:
    """What one plugin returns for one hook; None where it does not implement it."""
    others = [other for other in manager.get_plugins() if other is not plugin]
    results = manager.subset_hook_caller(hook, remove_plugins=others)(**arguments)
    return results[0] if results else None
