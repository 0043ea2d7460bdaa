"""Assertions in Python: the statement, unittest's methods, and context managers that expect an exception."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence

from .model import Assertion, AssertionKind

_ASSERTING = ("assert", "check", "expect", "verify", "ensure", "should")
"""Prefixes of the names of asserting functions."""
_RAISES = frozenset("raises assertRaises assertRaisesRegex warns assertWarns assertWarnsRegex assertLogs".split())
_PLACES = 7
"""Places of `assertAlmostEqual`, where none are given (https://docs.python.org/3/library/unittest.html)."""
_OPERATORS: Mapping[type[ast.cmpop], str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


def text_of(node: ast.AST) -> str:
    """The normalized source of a node."""
    return ast.unparse(node)


def line_of(node: ast.stmt | ast.expr) -> int:
    """The line of a node."""
    return node.lineno


def dotted(node: ast.expr) -> str:
    """`a.b.c` of such a node; empty for others."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join(reversed([*names, node.id])) if isinstance(node, ast.Name) else ""


def last_name(node: ast.expr) -> str:
    """`c` of `a.b.c` and of `f().c`; empty without a name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def assertions_of(statement: ast.stmt) -> list[Assertion]:
    """The assertions of a simple statement."""
    if isinstance(statement, ast.Assert):
        return list(_of_test(statement.test, statement.lineno))
    if not isinstance(statement, ast.Expr):
        return []
    value = statement.value.value if isinstance(statement.value, ast.Await) else statement.value
    return list(_of_call(value)) if isinstance(value, ast.Call) else []


def context_assertion(context: ast.expr, first: ast.stmt) -> Assertion | None:
    """The assertion of a `with` that expects an exception, a warning or a log line.

    Args:
        first: the first statement in it, which identifies one of several.
    """
    if not isinstance(context, ast.Call) or last_name(context.func) not in _RAISES:
        return None
    return _raises(context, f"with {text_of(context)}", text_of(first))


def _raises(call: ast.Call, text: str, subject: str) -> Assertion:
    words = {each.arg: text_of(each.value) for each in call.keywords if each.arg}
    regex = last_name(call.func).endswith("Regex")
    detail = words.get("match", words.get("expected_regex", text_of(call.args[1]) if regex and call.args[1:] else ""))
    expected = text_of(call.args[0]) if call.args else words.get("expected_exception", "")
    return Assertion(kind="raises", subject=subject, expected=expected, detail=detail, text=text, line=call.lineno)


def _of_test(test: ast.expr, line: int, *, negated: bool = False) -> Iterator[Assertion]:
    """The assertion that an expression is true, or false."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _of_test(test.operand, line, negated=not negated)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or if negated else ast.And):
        for each in test.values:
            yield from _of_test(each, line, negated=negated)
    else:
        yield _one(test, line, negated=negated)


def _one(test: ast.expr, line: int, *, negated: bool) -> Assertion:
    text = f"assert {'not ' if negated else ''}{text_of(test)}"
    kind: AssertionKind = "falsy" if negated else "truthy"
    subject, expected, detail, tolerance = text_of(test), "", "", None
    if _is_literal(test):
        kind = "nothing"
    elif isinstance(test, ast.BoolOp):
        (first,) = list(_of_test(test.values[0], line, negated=negated))[:1]
        kind, subject, expected = "either", first.subject, text_of(test)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        kind, subject, expected, detail, tolerance = _compared(test, negated=negated)
    elif isinstance(test, ast.Call) and last_name(test.func) == "isinstance" and len(test.args) == 2:
        kind, subject, expected = ("differs" if negated else "type"), text_of(test.args[0]), text_of(test.args[1])
    elif isinstance(test, ast.Call) and last_name(test.func) in ("isclose", "allclose") and len(test.args) >= 2:
        kind, subject, expected = "close", text_of(test.args[0]), text_of(test.args[1])
        detail, tolerance = _tolerance(test.keywords)
    return Assertion(
        kind=kind, subject=subject, expected=expected, text=text, line=line, detail=detail, tolerance=tolerance
    )


def _compared(test: ast.Compare, *, negated: bool) -> tuple[AssertionKind, str, str, str, float | None]:
    """Kind, subject, expected, detail and tolerance of a comparison."""
    left, operator, right = test.left, test.ops[0], test.comparators[0]
    both = text_of(left), text_of(right)
    if isinstance(operator, (ast.In, ast.NotIn)):
        if isinstance(operator, ast.NotIn) != negated:
            return "differs", both[1], both[0], "in", None
        return ("one of", *both, "", None) if _is_literal(right) else ("contains", both[1], both[0], "", None)
    if isinstance(operator, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
        if _is_literal(left) and not _is_literal(right):
            left, right, both = right, left, (both[1], both[0])
        if both[0] == both[1] or (_is_literal(left) and _is_literal(right)):
            return "nothing", *both, "", None
        if isinstance(operator, (ast.NotEq, ast.IsNot)) != negated:
            return "differs", *both, "", None
        return _equal(both, right)
    sign = _OPERATORS.get(type(operator), "?")
    return "bound", both[0], f"{'not ' if negated else ''}{sign} {both[1]}", "", None


def _equal(both: tuple[str, str], right: ast.expr) -> tuple[AssertionKind, str, str, str, float | None]:
    if isinstance(right, ast.Call) and last_name(right.func) == "approx" and right.args:
        detail, tolerance = _tolerance(right.keywords)
        return "close", both[0], text_of(right.args[0]), detail, tolerance
    if last_name(right) == "ANY":
        return "nothing", *both, "", None
    return "exact", *both, "", None


def _is_literal(node: ast.expr) -> bool:
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return all(_is_literal(each) for each in node.elts)
    if isinstance(node, ast.UnaryOp):
        return _is_literal(node.operand)
    return isinstance(node, ast.Constant)


def _tolerance(keywords: Sequence[ast.keyword]) -> tuple[str, float | None]:
    """The kind of a tolerance, and its number if it is one."""
    given = sorted((each.arg or "", each.value) for each in keywords if each.arg not in ("msg", None))
    numbers = [
        float(value.value)
        for _, value in given
        if isinstance(value, ast.Constant) and isinstance(value.value, (int, float))
    ]
    if len(given) == 1 and numbers:
        name = given[0][0]
        return name, 10.0 ** -min(max(numbers[0], -300), 300) if name == "places" else numbers[0]
    return ", ".join(f"{name}={text_of(value)}" for name, value in given), None


def _of_call(call: ast.Call) -> Iterator[Assertion]:
    name, line = last_name(call.func), call.lineno
    if name in _RAISES and call.args[1:]:
        yield _raises(call, text_of(call), ", ".join(text_of(each) for each in call.args[1:]))
    elif name in ("assertTrue", "assertFalse") and call.args:
        made = _of_test(call.args[0], line, negated=name == "assertFalse")
        yield from (each.replace(text=text_of(call)) for each in made)
    elif name in _METHODS and len(call.args) >= _METHODS[name][0]:
        yield _METHODS[name][1](call).replace(text=text_of(call))
    elif name.lower().startswith(_ASSERTING):
        texts = [text_of(each) for each in call.args]
        subject = f"{name}({', '.join(texts[:1])})"
        yield Assertion(kind="helper", subject=subject, expected=text_of(call), text=text_of(call), line=line)


def _two(kind: AssertionKind, *, swapped: bool = False) -> tuple[int, Callable[[ast.Call], Assertion]]:
    def made(call: ast.Call) -> Assertion:
        left, right = call.args[:2]
        if swapped or (_is_literal(left) and not _is_literal(right) and kind in ("exact", "equal", "differs")):
            left, right = right, left
        is_empty = kind != "differs" and text_of(left) == text_of(right)
        is_empty = is_empty or (_is_literal(left) and _is_literal(right))
        return Assertion(
            kind="nothing" if is_empty else kind,
            subject=text_of(left),
            expected=text_of(right),
            text="",
            line=call.lineno,
        )

    return 2, made


def _fixed(kind: AssertionKind, expected: str) -> tuple[int, Callable[[ast.Call], Assertion]]:
    def made(call: ast.Call) -> Assertion:
        return Assertion(kind=kind, subject=text_of(call.args[0]), expected=expected, text="", line=call.lineno)

    return 1, made


def _bound(sign: str) -> tuple[int, Callable[[ast.Call], Assertion]]:
    def made(call: ast.Call) -> Assertion:
        subject, limit = (text_of(each) for each in call.args[:2])
        return Assertion(kind="bound", subject=subject, expected=f"{sign} {limit}", text="", line=call.lineno)

    return 2, made


def _almost(call: ast.Call) -> Assertion:
    detail, tolerance = _tolerance(call.keywords)
    if not detail and len(call.args) > 2 and isinstance(call.args[2], ast.Constant):
        detail, tolerance = _tolerance([ast.keyword(arg="places", value=call.args[2])])
    elif not detail:
        detail, tolerance = "places", 10.0**-_PLACES
    subject, expected = (text_of(each) for each in call.args[:2])
    return Assertion(
        kind="close",
        subject=subject,
        expected=expected,
        text="",
        line=call.lineno,
        detail=detail,
        tolerance=tolerance,
    )


_METHODS: Mapping[str, tuple[int, Callable[[ast.Call], Assertion]]] = {
    **dict.fromkeys(
        ("assertEqual", "assertEquals", "assertIs", "assertListEqual", "assertDictEqual", "assertSetEqual"),
        _two("exact"),
    ),
    **dict.fromkeys(("assertTupleEqual", "assertSequenceEqual", "assertMultiLineEqual"), _two("exact")),
    "assertCountEqual": _two("equal"),
    "assertIn": _two("contains", swapped=True),
    "assertRegex": _two("matches"),
    "assertIsInstance": _two("type"),
    **dict.fromkeys(("assertNotEqual", "assertIsNot", "assertNotIsInstance", "assertNotRegex"), _two("differs")),
    "assertNotIn": _two("differs", swapped=True),
    "assertIsNone": _fixed("exact", "None"),
    "assertIsNotNone": _fixed("differs", "None"),
    "assertGreater": _bound(">"),
    "assertGreaterEqual": _bound(">="),
    "assertLess": _bound("<"),
    "assertLessEqual": _bound("<="),
    "assertAlmostEqual": (2, _almost),
}
"""unittest's methods by name: how many values they check, and the assertion."""
