"""The code of packs and users: importing what they name, and what it means where their code raises."""

from __future__ import annotations

import asyncio
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from ..api.errors import PluginError


def load_module(name: str) -> ModuleType:
    """The module of a pack, or that of a file, where the name is a path."""
    if not name.endswith(".py"):
        return import_module(name)
    from importlib.util import module_from_spec, spec_from_file_location

    known = "marvin_user_" + "".join(c if c.isalnum() else "_" for c in name)
    if known in sys.modules:
        return sys.modules[known]
    spec = spec_from_file_location(known, name)
    if spec is None or spec.loader is None:
        raise PluginError(f"{name} is not a Python file")
    module = sys.modules[known] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[known]
        raise
    return module


def imported(kind: str, name: str) -> Any:
    """What a pack's factory is, by its name, `module:attribute`; `kind` says what it makes.

    Raises:
        PluginError: where it cannot be had.
    """
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except Exception as error:  # a stranger's module may raise anything
        why = f"{type(error).__name__}: {error}"
        raise PluginError(f"The {kind} {name!r} cannot be loaded: {why}. Correct or remove its pack.") from error


def is_failure(error: BaseException) -> bool:
    """Whether what a hook, a tool or a provider raised is its own failure, which ends nothing but itself.

    SystemExit is one, and so is a cancellation that nobody asked for. To be asked in the task that caught it.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and not task.cancelling()
    return not isinstance(error, (KeyboardInterrupt, GeneratorExit))
