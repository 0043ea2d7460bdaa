"""The plugin manager, and calling a hook of one plugin at a time."""

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
"""What one hook may register. A generator that never ends is told by it before it takes all memory."""
_SHOWN = 100
_PUBLIC = tuple(name for name in vars(Hook) if not name.startswith("_"))
_METHODS = tuple(name for name in _PUBLIC if inspect.iscoroutinefunction(vars(Hook)[name]))


def plugin_manager() -> pluggy.PluginManager:
    """An empty plugin manager that knows Marvin's hooks."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    return manager


def call_hook(manager: pluggy.PluginManager, plugin: object, hook: str, **arguments: Any) -> Any:
    """What one plugin returns for one hook; None where it does not implement it."""
    # Those without the hook are not asked for it: a module may answer such a question with any error.
    implementations: list[pluggy.HookImpl] = getattr(manager.hook, hook).get_hookimpls()
    others = [one.plugin for one in implementations if one.plugin is not plugin]
    results = manager.subset_hook_caller(hook, remove_plugins=others)(**arguments)
    return results[0] if results else None


def items_of(answer: Any, kind: type[T]) -> list[T]:
    """What a hook returned, as a list.

    Raises:
        PluginError: where it is no collection, holds something else, or has no end.
    """
    if answer is not None and not hasattr(answer, "__iter__"):
        raise PluginError(f"a hook returned {cut(repr(answer), _SHOWN)}; it must return a list of {kind.__name__}s")
    items = list(islice(answer or (), _MOST + 1))
    if len(items) > _MOST:
        raise PluginError(f"a hook returned more than {_MOST:,} {kind.__name__}s; it must return a list that ends")
    return [expect(item, kind) for item in items]


def expect(item: object, kind: type[T]) -> T:
    """The item, which must be of that kind.

    Raises:
        PluginError: where it is not.
    """
    if not isinstance(item, kind):
        raise PluginError(f"registered {cut(repr(item), _SHOWN)} where a {kind.__name__} was expected")
    return item


def hooks_in(answer: Any) -> list[Hook]:
    """The hooks that a pack registered.

    Raises:
        PluginError: where there is no list, one is no hook, or has a method that could not be awaited or would never
            be called.
    """
    if answer is None:  # a `return` that was forgotten: what it was to guard would be open, and nobody would know
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
