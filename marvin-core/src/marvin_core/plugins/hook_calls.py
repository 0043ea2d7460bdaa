"""The plugin manager, and calls of one hook of one plugin."""

from __future__ import annotations

import inspect
from itertools import islice
from typing import Any, TypeVar

import pluggy

from ..api import hookspecs
from ..api.errors import PluginError
from ..api.hooks import Hook
from ..util.text import cut, is_misspelled

T = TypeVar("T")

_MOST = 10_000
"""The maximum number of objects from one hook, which stops endless generators."""
_SHOWN = 100
_PUBLIC = tuple(name for name in vars(Hook) if not name.startswith("_"))
_METHODS = tuple(name for name in _PUBLIC if inspect.iscoroutinefunction(vars(Hook)[name]))


def plugin_manager() -> pluggy.PluginManager:
    """A plugin manager with Marvin's hook specifications, and no plugins."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    return manager


def call_hook(manager: pluggy.PluginManager, plugin: object, hook: str, **arguments: Any) -> Any:
    """The result of a hook of one plugin; None if it does not implement it."""
    # Plugins without the hook are not asked for it: a module attribute may raise any error.
    implementations: list[pluggy.HookImpl] = getattr(manager.hook, hook).get_hookimpls()
    others = [one.plugin for one in implementations if one.plugin is not plugin]
    results = manager.subset_hook_caller(hook, remove_plugins=others)(**arguments)
    return results[0] if results else None


def items_of(answer: Any, kind: type[T]) -> list[T]:
    """The result of a hook as a list.

    Raises:
        PluginError: the result is not a collection, has items of another type, or has no end.
    """
    if answer is not None and not hasattr(answer, "__iter__"):
        raise PluginError(f"a hook returned {cut(repr(answer), _SHOWN)}; it must return a list of {kind.__name__}s")
    items = list(islice(answer or (), _MOST + 1))
    if len(items) > _MOST:
        raise PluginError(f"a hook returned more than {_MOST:,} {kind.__name__}s; it must return a list that ends")
    return [expect(item, kind) for item in items]


def expect(item: object, kind: type[T]) -> T:
    """The item, with its type checked.

    Raises:
        PluginError: the item has another type.
    """
    if not isinstance(item, kind):
        raise PluginError(f"registered {cut(repr(item), _SHOWN)} where a {kind.__name__} was expected")
    return item


def hooks_in(answer: Any) -> list[Hook]:
    """The `Hook` objects that a pack registered.

    Raises:
        PluginError: the result is not a list, an item is not a hook, or a method is not async or is
            never called.
    """
    if answer is None:  # a missing `return`: the hooks would silently not apply
        raise PluginError("marvin_register_hooks returned None; it must return a list of Hooks, which may be empty")
    hooks = items_of(answer, Hook)
    for kind in dict.fromkeys(map(type, hooks)):
        for name in dir(kind):
            if name.startswith("_") or getattr(kind, name) is getattr(Hook, name, None):
                continue
            if name in _PUBLIC:
                _check_member(kind, name)
                continue
            meant = next((member for member in _PUBLIC if is_misspelled(name, member)), "")
            if meant:
                never = "called" if meant in _METHODS else "looked at"
                raise PluginError(
                    f"{kind.__name__}.{name} is not a hook, so it is never {never}. Did you mean {meant}?"
                )
    return hooks


def _check_member(kind: type[Hook], name: str) -> None:
    member = getattr(kind, name)
    if name not in _METHODS:
        if not isinstance(member, bool):
            raise PluginError(f"{kind.__name__}.{name} is {cut(repr(member), _SHOWN)}. Write `{name} = True`")
    elif not inspect.iscoroutinefunction(inspect.unwrap(member)):
        raise PluginError(f"{kind.__name__}.{name} cannot be awaited. Write `async def {name}`")
