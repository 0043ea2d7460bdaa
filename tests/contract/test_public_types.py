"""Whoever writes a type down needs its name: each type in a public signature is public itself."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

import marvin_core
import marvin_core.testing

MODULES = [marvin_core, marvin_core.testing]


class Name(NamedTuple):
    """A class, a function or an alias, by the module that defines it."""

    module: str
    name: str


def public() -> dict[Name, str]:
    """What packs may import, and under which name."""
    found = {}
    for module in MODULES:
        for name, home in module._HOME_OF.items():
            found[_origin(Name(f"{module.__name__}.{home}", name))] = name
    return found


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(Path(str(importlib.import_module(module).__file__)).read_text(encoding="utf-8"))


@cache
def _statements(module: str) -> tuple[ast.stmt, ...]:
    """The statements of a module, those for type checkers included."""
    inside = [node.body for node in _tree(module).body if isinstance(node, ast.If)]
    return (*_tree(module).body, *(statement for body in inside for statement in body))


def _definitions(name: Name) -> list[ast.stmt]:
    """A class, an alias, or a function with its overloads; nothing for what is none of them, as a type variable."""
    found: list[ast.stmt] = []
    for node in _statements(name.module):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name.name:
            found.append(node)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name.name:
            found.append(node)
    return found


def _origin(name: Name) -> Name:
    """Where a name is defined that a module may have imported."""
    if _definitions(name):
        return name
    for node in _statements(name.module):
        if isinstance(node, ast.ImportFrom) and node.level:
            package = name.module.rsplit(".", node.level)[0]
            for alias in node.names:
                if (alias.asname or alias.name) == name.name:
                    return _origin(Name(f"{package}.{node.module}", alias.name))
    return name


def _annotations(node: ast.AST) -> Iterator[ast.expr]:
    """What a definition says of its types."""
    if isinstance(node, ast.ClassDef):
        yield from (base for base in node.bases if not ast.unparse(base).startswith("_"))
        for inner in node.body:
            if isinstance(inner, ast.AnnAssign) and not ast.unparse(inner.target).startswith("_"):
                yield inner.annotation
            elif isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)) and _is_public(inner.name):
                yield from _annotations(inner)
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        yield from (argument.annotation for argument in every if argument is not None and argument.annotation)
        if node.returns is not None:
            yield node.returns
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.value


def _is_public(name: str) -> bool:
    return not name.startswith("_") or name in ("__init__", "__call__")


def _names(annotation: ast.expr) -> Iterator[str]:
    """The plain names in an annotation; the values of a `Literal` are none."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        yield from _names(ast.parse(annotation.value, mode="eval").body)
    elif isinstance(annotation, ast.Name):
        yield annotation.id
    elif isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) in ("Literal", "typing.Literal"):
        return
    else:
        for inner in ast.iter_child_nodes(annotation):
            if isinstance(inner, ast.expr):
                yield from _names(inner)


def missing_from(names: dict[Name, str]) -> dict[str, set[str]]:
    """The types of ours that these public names use and that are not public, each with the names that use it."""
    missing: dict[str, set[str]] = {}
    for origin, name in names.items():
        annotations = [one for definition in _definitions(origin) for one in _annotations(definition)]
        for annotation in annotations:
            for used in [_origin(Name(origin.module, used)) for used in _names(annotation)]:
                if _definitions(used) and used not in names:
                    missing.setdefault(f"{used.module}.{used.name}", set()).add(name)
    return missing


def test_every_type_in_a_public_signature_is_public() -> None:
    missing = missing_from(public())
    told = [f"{name}, which {', '.join(sorted(users))} uses" for name, users in sorted(missing.items())]
    assert not told, "not in __all__:\n" + "\n".join(told)


def test_a_type_that_is_taken_away_is_found() -> None:
    """The test looks where types stand: in fields, parameters, results, members of unions, and behind aliases."""
    names = public()
    for taken, user in [("Mode", "ToolContext"), ("MessageUpdate", "Event"), ("Usage", "Message"),
                        ("Outcome", "ToolRunner"), ("StopReason", "Stop"), ("Paths", "ToolContext")]:  # fmt: skip
        left = {origin: name for origin, name in names.items() if name != taken}
        (found,) = [users for name, users in missing_from(left).items() if name.endswith(f".{taken}")]
        assert user in found


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_what_is_public_has_a_definition_that_type_checkers_see(module: ModuleType) -> None:
    for name, home in module._HOME_OF.items():
        origin = _origin(Name(f"{module.__name__}.{home}", name))
        constant = name in vars(importlib.import_module(origin.module))
        assert _definitions(origin) or constant, name
