"""Mocks and monkeypatching in Python."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .mocks import PYTHON_FIXTURES, PYTHON_MODULES, is_double, module_kind
from .model import Replacement

_PATCHING = frozenset("setattr delattr setitem delitem".split())
"""Methods of pytest's `monkeypatch` that replace behaviour. `setenv` and `chdir` have real effects."""
_PATCHERS = ("monkeypatch", "MonkeyPatch")
_IMPORTING = frozenset("import_module __import__ importorskip".split())
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SERVERS = ("Server", "Handler", "TestCase")


def replacements_in(tree: ast.Module) -> list[Replacement]:
    """All places that replace behaviour, by line, without duplicates."""
    reader = _Reader()
    for node in ast.walk(tree):
        reader.note(node)
    found: dict[int, Replacement] = {}
    for node, kind in [*reader.found, *reader.assigned()]:
        line = getattr(node, "lineno", 1)
        found.setdefault(line, Replacement(line=line, text=_shown(node), kind=kind))
    return [found[line] for line in sorted(found)]


class _Reader:
    """Collects facts from the nodes of a module, each visited once."""

    def __init__(self) -> None:
        self.found: list[tuple[ast.AST, str]] = []
        self._imported: set[str] = set()
        self._patchers = set(_PATCHERS)
        self._mocked: set[str] = set()
        """Names imported from mock libraries."""
        self._targets: list[tuple[ast.stmt, ast.expr]] = []
        self._calls: list[ast.Call] = []

    def note(self, node: ast.AST) -> None:
        """Process one node."""
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            self._import(node)
        elif isinstance(node, _FUNCTIONS):
            self._function(node)
        elif isinstance(node, ast.ClassDef):
            if is_double(node.name) and not any(_ends(base, _SERVERS) for base in node.bases):
                self.found.append((node, "double"))
        elif isinstance(node, ast.Call):
            self._calls.append(node)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            self._with(node)
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            self._targets += [(node, target) for target in targets]

    def assigned(self) -> Iterator[tuple[ast.AST, str]]:
        """Process calls and assignments, after all imports are known."""
        for call in self._calls:
            if kind := self._called(call):
                yield call, kind
        for statement, target in self._targets:
            if self._is_foreign(target):
                yield statement, "patch"

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        base = f"{node.module}." if isinstance(node, ast.ImportFrom) and node.module else ""
        for name in node.names:
            bound = name.asname or name.name.partition(".")[0]
            if kind := module_kind(f"{base}{name.name}", PYTHON_MODULES):
                self.found.append((node, kind))
                self._mocked.add(bound)
            elif name.name != "*":
                self._imported.add(bound)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        for argument in arguments:
            if kind := PYTHON_FIXTURES.get(argument.arg, ""):
                self.found.append((argument, kind))
        if is_double(node.name):
            self.found.append((node, "double"))

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        """`with monkeypatch.context() as patched`: an alias of monkeypatch."""
        for item in node.items:
            context, name = item.context_expr, item.optional_vars
            if isinstance(context, ast.Call) and isinstance(name, ast.Name) and self._is_patcher(context.func):
                self._patchers.add(name.id)

    def _is_patcher(self, node: ast.expr) -> bool:
        while isinstance(node, (ast.Attribute, ast.Call)):
            if isinstance(node, ast.Attribute) and node.attr in _PATCHERS:
                return True
            node = node.value if isinstance(node, ast.Attribute) else node.func
        return isinstance(node, ast.Name) and node.id in self._patchers

    def _called(self, call: ast.Call) -> str:
        function, arguments = call.func, call.args
        if isinstance(function, ast.Attribute) and function.attr in _PATCHING and self._is_patcher(function.value):
            return "patch"
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in ("setattr", "delattr") and arguments and isinstance(function, ast.Name):
            return "patch" if self._root(arguments[0]) in self._imported else ""
        if name in _IMPORTING and arguments and isinstance(arguments[0], ast.Constant):
            return module_kind(str(arguments[0].value), PYTHON_MODULES)
        is_mocked = self._root(function) in self._mocked
        return "library" if is_mocked else ""

    def _is_foreign(self, target: ast.expr) -> bool:
        """Whether an assignment changes an imported module: `module.name = ...`, `sys.modules[...] = ...`."""
        if isinstance(target, (ast.Tuple, ast.List)):
            return any(self._is_foreign(each) for each in target.elts)
        if isinstance(target, ast.Subscript):
            return _dotted_end(target.value) == "modules" or _dotted_end(target.value) == "__dict__"
        if isinstance(target, ast.Attribute):
            return self._root(target.value, calls=False) in {*self._imported, "builtins"}
        return isinstance(target, ast.Name) and target.id in self._imported

    def _root(self, node: ast.expr, *, calls: bool = True) -> str:
        while isinstance(node, ast.Attribute) or (calls and isinstance(node, ast.Call)):
            node = node.value if isinstance(node, ast.Attribute) else node.func
        return node.id if isinstance(node, ast.Name) else ""


def _dotted_end(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _ends(base: ast.expr, words: tuple[str, ...]) -> bool:
    return _dotted_end(base).endswith(words)


def _shown(node: ast.AST) -> str:
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        return f"{'class' if isinstance(node, ast.ClassDef) else 'def'} {node.name}"
    return ast.unparse(node)
