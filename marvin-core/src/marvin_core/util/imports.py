"""Imports what a pack names: a module, or a file of the user."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from ..api.errors import PluginError
from .failures import is_failure, told
from .garbage import exempt_from_collection


def load_module(name: str) -> ModuleType:
    """The module of a pack; if the name is a path, the module of that file."""
    known = file_module(name) if name.endswith(".py") else name
    if known not in sys.modules:
        exempt_from_collection()
    if known == name:
        return import_module(name)
    from importlib.util import module_from_spec, spec_from_file_location

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


def file_module(path: str) -> str:
    """The module name under which a file of the user is imported."""
    return "marvin_user_" + "".join(c if c.isalnum() else "_" for c in path)


def imported(kind: str, name: str) -> Any:
    """The factory of a pack by its name, `module:attribute`; `kind` says what it creates.

    Raises:
        PluginError: it cannot be imported.
    """
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except BaseException as error:  # a third-party module may raise anything
        if not is_failure(error):
            raise
        raise PluginError(
            f"The {kind} {name!r} cannot be loaded: {told(error)}. Correct or remove its pack."
        ) from error
