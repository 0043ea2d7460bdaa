"""The plugin manager, and calling a hook of one plugin at a time."""

from __future__ import annotations

from typing import Any, TypeVar

import pluggy

from ..api import hookspecs
from ..api.errors import PluginError

T = TypeVar("T")


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


def items_of(answer: Any, kind: type[T]) -> list[T]:
    """What a hook returned, as a list.

    Raises:
        PluginError: where it is no collection, or holds something else.
    """
    if answer is not None and not hasattr(answer, "__iter__"):
        raise PluginError(f"a hook returned {answer!r}; it must return a list of {kind.__name__}s")
    return [expect(item, kind) for item in answer or ()]


def expect(item: object, kind: type[T]) -> T:
    """The item, which must be of that kind.

    Raises:
        PluginError: where it is not.
    """
    if not isinstance(item, kind):
        raise PluginError(f"registered {item!r} where a {kind.__name__} was expected")
    return item
