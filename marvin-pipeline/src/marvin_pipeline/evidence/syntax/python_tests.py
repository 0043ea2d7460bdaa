"""Tests in Python, read with `ast`. Nothing of the file is imported or run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from .model import Body, Mark, TestFile, Unit, Unreadable
from .python_assertions import assertions_of, context_assertion, dotted, last_name, line_of, text_of
from .python_mocks import replacements_in

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SKIPS = frozenset("skip skipif skipIf skipUnless xfail expectedFailure".split())
_SKIP_CALLS = frozenset("skip skipTest xfail importorskip exit _exit".split())
_SKIP_ERRORS = frozenset("SkipTest Skipped SystemExit".split())
_HARMLESS = frozenset(
    "parametrize usefixtures asyncio anyio trio timeout filterwarnings flaky fixture staticmethod classmethod property "
    "override given settings example seed overload dataclass contextmanager asynccontextmanager django_db".split()
)
"""Decorators that do not skip tests. Unknown ones may: runners deselect tests by marks."""
_SUPPRESSING = frozenset({"suppress"})
_INNER = "in the function "


def read_python(source: str) -> TestFile:
    """The tests of a file.

    Raises:
        Unreadable: this Python version cannot parse it, or it is nested too deeply.
    """
    try:
        tree = ast.parse(source)
        reader = _Reader()
        reader.block(tree.body, (), ())
        found = replacements_in(tree)
    except SyntaxError as error:
        raise Unreadable(f"line {error.lineno or 1} is not Python: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(f"it cannot be read: {type(error).__name__}") from error
    return TestFile(
        units=tuple(reader.units.values()),
        values=reader.values,
        skips=tuple(reader.skips),
        replacements=tuple(found),
    )


class _Reader:
    """Reads a module and the classes in it."""

    def __init__(self) -> None:
        self.units: dict[str, Unit] = {}
        """By name: Python keeps the last one of several tests of one name."""
        self.values: dict[str, Mark] = {}
        self.skips: list[Mark] = []

    def block(self, statements: Sequence[ast.stmt], around: tuple[ast.ClassDef, ...], skips: tuple[Mark, ...]) -> None:
        """Read the statements of a module or a class.

        Args:
            around: the enclosing classes.
            skips: what skips the tests in it.
        """
        skips = (*skips, *self._own(statements, around))
        for statement in statements:
            if isinstance(statement, _FUNCTIONS):
                unit = _unit(statement, around, skips)
                self.units[unit.name] = unit
            elif isinstance(statement, ast.ClassDef):
                decorators = (mark for each in statement.decorator_list if (mark := _mark(each)))
                self.block(statement.body, (*around, statement), (*skips, *decorators))
            elif isinstance(statement, (ast.If, ast.Try, ast.With, ast.For, ast.While)):
                for guard, inner in _inner(statement):
                    more = [Mark(text=guard, line=statement.lineno)] if guard else []
                    self.block(inner, around, (*skips, *more))
            else:
                self._simple(statement, around)

    def _own(self, statements: Sequence[ast.stmt], around: tuple[ast.ClassDef, ...]) -> Iterator[Mark]:
        """The skips and marks of a class; those of a module are kept for the file."""
        for statement in statements:
            name, value = _assigned(statement)
            text = f"{name} = {text_of(value)}" if value else ""
            is_off = name == "__test__" and text.endswith("False")
            if value and (name == "pytestmark" or is_off or name in ("collect_ignore", "collect_ignore_glob")):
                mark = Mark(text=text, line=statement.lineno)
                if around:
                    yield mark
                else:
                    self.skips.append(mark)

    def _simple(self, statement: ast.stmt, around: tuple[ast.ClassDef, ...]) -> None:
        name, value = _assigned(statement)
        if name and value:
            full = "::".join((*(each.name for each in around), name))
            self.units.pop(full, None)  # the earlier test of that name is replaced
            self.values[full] = Mark(text=text_of(value), line=statement.lineno)
        elif isinstance(statement, ast.Delete):
            for target in statement.targets:
                full = "::".join((*(each.name for each in around), text_of(target)))
                self.units = {name: unit for name, unit in self.units.items() if f"{name}::".find(f"{full}::") != 0}
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            self._imports(statement)
        elif mark := _skipping(statement) or _switched_off(statement):
            self.skips.append(mark)

    def _imports(self, statement: ast.Import | ast.ImportFrom) -> None:
        """Imported names are values as well: a test must not get something else of the same name."""
        base = ""
        if isinstance(statement, ast.ImportFrom):
            base = f"{'.' * statement.level}{statement.module or ''}."
        for each in statement.names:
            mark = Mark(text=f"import {base}{each.name}", line=statement.lineno)
            self.values[each.asname or each.name] = mark


def _assigned(statement: ast.stmt) -> tuple[str, ast.expr | None]:
    """The name and the value of an assignment."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
    elif isinstance(statement, ast.AnnAssign) and statement.value:
        target, value = statement.target, statement.value
    else:
        return "", None
    return (target.id, value) if isinstance(target, ast.Name) else ("", None)


def _inner(statement: ast.If | ast.Try | ast.With | ast.For | ast.While) -> Iterator[tuple[str, Sequence[ast.stmt]]]:
    """The blocks of a statement, each with its condition."""
    if isinstance(statement, (ast.If, ast.While)):
        word = "if" if isinstance(statement, ast.If) else "while"
        yield f"{word} {text_of(statement.test)}", statement.body
        yield f"if not ({text_of(statement.test)})", statement.orelse
    elif isinstance(statement, ast.For):
        yield "", statement.body
        yield "", statement.orelse
    elif isinstance(statement, ast.With):
        yield _suppressed(statement.items), statement.body
    else:
        caught = ", ".join(_caught(handler) for handler in statement.handlers if not _fails(handler.body))
        yield (f"try ... except {caught}" if caught else ""), statement.body
        yield "", statement.orelse
        yield "", statement.finalbody
        for handler in statement.handlers:
            yield f"except {_caught(handler)}", handler.body


def _caught(handler: ast.ExceptHandler) -> str:
    return text_of(handler.type) if handler.type else "everything"


def _fails(body: Sequence[ast.stmt]) -> bool:
    """Whether an exception handler fails the test."""
    last = body[-1]
    if isinstance(last, ast.Raise):
        return _skipping(last) is None
    return isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) and last_name(last.value.func) == "fail"


def _suppressed(items: Sequence[ast.withitem]) -> str:
    calls = (item.context_expr for item in items if isinstance(item.context_expr, ast.Call))
    found = [text_of(call) for call in calls if last_name(call.func) in _SUPPRESSING]
    return f"with {found[0]}" if found else ""


def _skipping(statement: ast.stmt) -> Mark | None:
    """Statements that end a test without a failure, or skip it."""
    if isinstance(statement, ast.Raise) and statement.exc:
        raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
        is_skip = last_name(raised) in _SKIP_ERRORS
    else:
        value = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
        is_skip = isinstance(value, ast.Call) and last_name(value.func) in _SKIP_CALLS
    return Mark(text=text_of(statement), line=statement.lineno) if is_skip else None


def _switched_off(statement: ast.stmt) -> Mark | None:
    """`TestAdd.__test__ = False` outside of the class."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    is_off = any(isinstance(each, ast.Attribute) and each.attr in ("__test__", "pytestmark") for each in targets)
    return Mark(text=text_of(statement), line=statement.lineno) if is_off else None


def _mark(decorator: ast.expr) -> Mark | None:
    """A decorator that skips what it decorates, or may."""
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return None if last_name(function) in _HARMLESS else Mark(text=f"@{text_of(decorator)}", line=decorator.lineno)


def _is_skip(mark: Mark) -> bool:
    return last_name_of_text(mark.text) in _SKIPS


def last_name_of_text(text: str) -> str:
    """The last name of a decorator's source, such as `skip` of `@pytest.mark.skip('why')`."""
    return text.lstrip("@").partition("(")[0].rpartition(".")[2]


def _unit(function: Function, around: tuple[ast.ClassDef, ...], skips: tuple[Mark, ...]) -> Unit:
    own = [mark for each in function.decorator_list if (mark := _mark(each))]
    body = _Body(is_test=_is_test(function, around))
    body.block(function.body, ())
    cases = [case for each in function.decorator_list for case in _cases(each)]
    text = "\n".join(text_of(each) for each in function.body if not _is_docstring(each))
    unit = body.unit("::".join((*(each.name for each in around), function.name)), function.lineno, text)
    return unit.replace(
        skips=(*skips, *(mark for mark in own if _is_skip(mark)), *unit.skips),
        marks=tuple(mark for mark in own if not _is_skip(mark)),
        cases=tuple(cases),
    )


def _is_test(function: Function, around: tuple[ast.ClassDef, ...]) -> bool:
    if not function.name.startswith("test"):
        return False
    return all(each.name.startswith("Test") or each.bases for each in around)


def _cases(decorator: ast.expr) -> Iterator[Mark]:
    """The cases of a `parametrize`: the elements of its list, or any other expression."""
    if not isinstance(decorator, ast.Call) or last_name(decorator.func) not in ("parametrize", "example"):
        return
    if last_name(decorator.func) == "example":
        yield Mark(text=text_of(decorator), line=decorator.lineno)
        return
    values = decorator.args[1:2] or [each.value for each in decorator.keywords if each.arg == "argvalues"]
    for value in values:
        elements = value.elts if isinstance(value, (ast.List, ast.Tuple, ast.Set)) else [value]
        yield from (Mark(text=text_of(each), line=each.lineno) for each in elements)


def _is_inner(guard: str) -> bool:
    return guard.startswith(_INNER)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


class _Body(Body):
    """Reads the body of one function."""

    def block(self, statements: Sequence[ast.stmt], guards: tuple[str, ...]) -> None:
        """Read statements under some conditions."""
        for number, statement in enumerate(statements):
            is_last = not guards and number == len(statements) - 1
            self._statement(statement, guards, is_last=is_last)
            if isinstance(statement, (ast.Return, ast.Raise, ast.Continue, ast.Break)):
                guards = (*guards, f"behind `{text_of(statement)}`")

    def _statement(self, statement: ast.stmt, guards: tuple[str, ...], *, is_last: bool) -> None:
        if isinstance(statement, ast.Pass) or _is_docstring(statement):
            return
        if mark := _skipping(statement):
            self.skips.append(mark.replace(guards=guards))
        elif made := assertions_of(statement):
            self.assertions += [each.replace(guards=guards) for each in made]
        elif isinstance(statement, ast.Return) and self.is_test and not any(map(_is_inner, guards)):
            if not is_last:
                self.exits.append(Mark(text=text_of(statement), line=statement.lineno, guards=guards))
        elif isinstance(statement, (ast.If, ast.Try, ast.With, ast.For, ast.While)):
            self._compound(statement, guards)
        elif isinstance(statement, (ast.AsyncFor, ast.AsyncWith)):
            self._head(statement, guards)
            self.block(statement.body, guards)
        elif isinstance(statement, _FUNCTIONS):
            self.block(statement.body, (*guards, f"{_INNER}{statement.name}"))
        else:
            self.statements.append(Mark(text=text_of(statement), line=statement.lineno, guards=guards))

    def _compound(self, statement: ast.If | ast.Try | ast.With | ast.For | ast.While, guards: tuple[str, ...]) -> None:
        if isinstance(statement, (ast.For, ast.With)):
            self._head(statement, guards)
        for guard, inner in _inner(statement):
            self.block(inner, (*guards, guard) if guard else guards)

    def _head(self, statement: ast.With | ast.AsyncWith | ast.For | ast.AsyncFor, guards: tuple[str, ...]) -> None:
        line = line_of(statement)
        if isinstance(statement, (ast.For, ast.AsyncFor)):
            text = f"for {text_of(statement.target)} in {text_of(statement.iter)}"
            self.statements.append(Mark(text=text, line=line, guards=guards))
            return
        for item in statement.items:
            first = statement.body[0]
            made = context_assertion(item.context_expr, first)
            if made:
                self.assertions.append(made.replace(guards=guards))
            elif not isinstance(item.context_expr, ast.Call) or dotted(item.context_expr.func) != "self.subTest":
                self.statements.append(Mark(text=f"with {text_of(item)}", line=line, guards=guards))
