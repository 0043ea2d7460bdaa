"""What packs may import: one sorted list, equal in the three places that name it, loaded only when used."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import marvin_core
import marvin_core.testing

MODULES = [marvin_core, marvin_core.testing]


def type_checked(module: ModuleType) -> dict[str, str]:
    """The names of the TYPE_CHECKING block that are public, with the modules that they come from."""
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom) and node.module != "typing"]
    return {alias.asname or alias.name: node.module or "" for node in imports for alias in node.names}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_the_list_is_sorted_and_agrees_with_what_type_checkers_and_the_loader_see(module: ModuleType) -> None:
    def in_order(name: str) -> tuple[int, str]:  # constants, classes, the rest, as ruff sorts them
        return (0 if name.isupper() else 1 if name[:1].isupper() else 2), name

    names = list(module.__all__)
    assert names == sorted(names, key=in_order)
    assert len(names) == len(set(names))
    homes: dict[str, str] = dict(module._HOME_OF)
    if module is marvin_core:
        homes["Field"] = "pydantic"
        names.remove("__version__")
        names.remove("API")
    assert set(names) == set(homes)
    assert type_checked(module) == homes


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_name_loads_and_is_the_one_of_its_home(module: ModuleType) -> None:
    for name, home in module._HOME_OF.items():
        assert getattr(module, name) is getattr(importlib.import_module(f"{module.__name__}.{home}"), name)
    assert dir(module) == sorted(module.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = module.nonsense


def test_field_is_that_of_pydantic() -> None:
    import pydantic

    assert marvin_core.Field is pydantic.Field


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_class_and_function_is_documented(module: ModuleType) -> None:
    for name in module._HOME_OF:
        value = getattr(module, name)
        if isinstance(value, (type, FunctionType)):
            assert re.search(r"\w+ \w+", value.__dict__.get("__doc__") or value.__doc__ or ""), name


def test_importing_the_package_imports_nothing_else() -> None:
    code = (
        "import sys, json\nbefore = set(sys.modules)\nimport marvin_core\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=150, check=True)
    ours = {"marvin_core", "marvin_core.version"}
    assert set(json.loads(done.stdout)) <= {*ours, "typing", "__future__", "collections.abc", *BY_TYPING}


# What the standard library's own typing brings along.
BY_TYPING = {"collections", "contextlib", "copyreg", "functools", "heapq", "itertools", "keyword", "operator", "re",
             "reprlib", "types", "enum", "warnings", "_typing", "_collections", "_functools", "_heapq", "_operator",
             "_sre", "re._casefix", "re._compiler", "re._constants", "re._parser"}  # fmt: skip


def test_the_version_is_that_of_the_installed_distribution() -> None:
    from importlib.metadata import version

    assert version("marvin-core") == marvin_core.__version__
