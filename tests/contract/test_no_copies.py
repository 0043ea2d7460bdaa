"""No helper is written twice: what two distributions need is in the kit of the core."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DISTRIBUTIONS = sorted(folder.name for folder in ROOT.glob("marvin-*") if (folder / "src").is_dir())
SMALLEST = 30
"""Nodes of the syntax tree of a function from which on it counts as a helper: about three lines."""


class Renamed(ast.NodeTransformer):
    """Gives what a function names itself numbers, so that a copy with other names is the same."""

    def __init__(self) -> None:
        self._numbers: dict[str, str] = {}

    def _number(self, name: str) -> str:
        return self._numbers.setdefault(name, f"name{len(self._numbers)}")

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(arg=self._number(node.arg), annotation=None)

    def visit_Name(self, node: ast.Name) -> ast.Name:  # the name that the library looks for
        own = isinstance(node.ctx, ast.Store) or node.id in self._numbers
        return ast.Name(id=self._number(node.id) if own else node.id.lstrip("_"), ctx=ast.Load())


def shape(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """What a function does, without its documentation and the names that it gives."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    renamed = Renamed()
    arguments = renamed.visit(function.args)
    lines = [ast.dump(renamed.visit(statement)) for statement in body]
    return "\n".join([ast.dump(arguments), *lines])


def helpers(source: str) -> dict[str, str]:
    """Each function of a module that is large enough, by its name."""
    functions = [
        node for node in ast.walk(ast.parse(source)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    return {node.name: shape(node) for node in functions if sum(1 for _ in ast.walk(node)) >= SMALLEST}


def copies(modules: dict[str, str]) -> list[list[str]]:
    """The functions that are the same in two distributions; a module is `DISTRIBUTION/...`."""
    found: dict[str, list[str]] = defaultdict(list)
    for module, source in modules.items():
        for name, text in helpers(source).items():
            found[text].append(f"{module}:{name}")
    return [places for places in found.values() if len({place.split("/")[0] for place in places}) > 1]


@pytest.mark.slow
def test_no_two_distributions_hold_the_same_helper() -> None:
    modules = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for distribution in DISTRIBUTIONS
        for path in sorted((ROOT / distribution / "src").rglob("*.py"))
    }
    assert len(DISTRIBUTIONS) == 5
    assert copies(modules) == []


HELPER = '''
def {name}({text}: str, limit: int) -> str:
    """{doc}"""
    words = {text}.split()
    if len(words) > limit:
        return " ".join(words[:limit]) + "..."
    return {text}
'''


@pytest.mark.parametrize(
    ("other", "is_copy"),
    [
        (HELPER.format(name="cut", text="line", doc="Other words."), True),
        (HELPER.format(name="cut", text="line", doc="Other words.").replace("words", "parts"), True),
        (HELPER.format(name="cut", text="line", doc="Other words.").replace("...", "…"), False),
    ],
)
def test_a_copy_would_be_found(other: str, is_copy: bool) -> None:
    first = HELPER.format(name="shortened", text="text", doc="Short.")
    assert bool(copies({"marvin-a/x.py": first, "marvin-b/y.py": other})) is is_copy
    assert copies({"marvin-a/x.py": first, "marvin-a/y.py": other}) == []
