"""Assertions in JavaScript: node's assert, the `expect` of Jest, Vitest and Chai, and functions that assert."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .model import Assertion, AssertionKind
from .tree import line_of, raw, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_KINDS: Mapping[AssertionKind, str] = {
    "exact": "toBe toStrictEqual strictEqual deepStrictEqual toMatchInlineSnapshot toBeNull toBeUndefined toBeNaN "
    "toBeTrue toBeFalse isTrue isFalse isNull isUndefined null undefined true false toHaveLength lengthOf length",
    "equal": "toEqual equal equals eql deepEqual eq toMatchSnapshot same deep members sameMembers",
    "close": "toBeCloseTo closeTo approximately",
    "contains": "toContain toContainEqual toMatchObject contain include includes toHaveProperty property "
    "partialDeepStrictEqual arrayContaining keys",
    "matches": "toMatch match",
    "bound": "toBeGreaterThan toBeGreaterThanOrEqual toBeLessThan toBeLessThanOrEqual above below least most "
    "greaterThan lessThan isAbove isBelow isAtLeast isAtMost",
    "type": "toBeInstanceOf a an instanceof instanceOf typeOf toBeTypeOf",
    "raises": "toThrow toThrowError toThrowErrorMatchingSnapshot throws throw rejects",
    "differs": "notEqual notStrictEqual notDeepEqual notDeepStrictEqual doesNotMatch doesNotThrow doesNotReject "
    "isNotNull isDefined toBeDefined exist exists",
    "truthy": "toBeTruthy ok isOk",
    "falsy": "toBeFalsy notOk isNotOk",
}
_KIND_OF: Mapping[str, AssertionKind] = {word: kind for kind, words in _KINDS.items() for word in words.split()}
_FLAGS = frozenset("to be been is that which and has have with at of resolves rejects soft poll nested own".split())
_NEGATIONS = frozenset({"not"})
_NAMED = re.compile(r"(?:assert|check|expect|verify|ensure|should)(?![a-z])")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_LITERALS = frozenset("number string true false null undefined regex template_string".split())
_DIGITS = 2
"""Digits of `toBeCloseTo`, where none are given (https://jestjs.io/docs/expect)."""
_MESSAGE_AT: Mapping[str, int] = {"ok": 1, "assert": 1, "throws": 2, "rejects": 2}
"""The position of the message argument of an `assert`; third for those not listed."""


def chain_of(node: Node | None) -> list[str]:
    """`["a", "b", "c"]` of `a.b.c`; empty for other expressions."""
    names: list[str] = []
    while node is not None and node.type == "member_expression":
        names.append(raw(node.child_by_field_name("property")))
        node = node.child_by_field_name("object")
    if node is None or node.type not in ("identifier", "this"):
        return []
    return [raw(node), *reversed(names)]


def assertion_of(node: Node) -> Assertion | None:
    """The assertion of an expression; None without one."""
    matcher, arguments = _parts(node)
    names, start = _expected(matcher)
    if start is not None:
        return _of_expect(node, names, start, arguments)
    words = chain_of(matcher)
    if node.type != "call_expression" or not words:
        return None
    if "assert" in words[:2] and (len(words) > 1 or words == ["assert"]):
        return _of_assert(node, words[-1], arguments)
    if "should" in words or _NAMED.match(words[-1]):
        subject = f"{'.'.join(words)}({', '.join(map(text_of, arguments[:1]))})"
        return Assertion(kind="helper", subject=subject, expected=text_of(node), text=text_of(node), line=line_of(node))
    return None


def _parts(node: Node) -> tuple[Node | None, list[Node]]:
    """The function and the arguments of a call; of `expect(x).to.be.true` the whole, and nothing."""
    if node.type != "call_expression":
        return (node, []) if node.type == "member_expression" else (None, [])
    given = node.child_by_field_name("arguments")
    found = [] if given is None else [each for each in given.named_children if each.type != "comment"]
    return node.child_by_field_name("function"), found


def _expected(matcher: Node | None) -> tuple[list[str], Node | None]:
    """The words after an `expect(...)`, and that call; None without one."""
    names: list[str] = []
    while matcher is not None and matcher.type in ("member_expression", "call_expression"):
        if matcher.type == "member_expression":
            names.append(raw(matcher.child_by_field_name("property")))
            matcher = matcher.child_by_field_name("object")
            continue
        function = matcher.child_by_field_name("function")
        words = chain_of(function)
        if words and words[0] == "expect" and (len(words) == 1 or words[1] in ("soft", "poll")):
            return list(reversed(names)), matcher
        matcher = function
    return names, None


def _of_expect(node: Node, names: Sequence[str], start: Node, arguments: Sequence[Node]) -> Assertion | None:
    if not names:
        return None
    is_negated = len([name for name in names if name in _NEGATIONS]) % 2 == 1
    words = [name for name in names if name not in _FLAGS and name not in _NEGATIONS]
    word = words[-1] if words else names[-1]
    kind = _KIND_OF.get(word, "helper")
    looked = start.child_by_field_name("arguments")
    subjects = [] if looked is None else looked.named_children
    flags = [name for name in names if name in ("resolves", "rejects")]
    extra = [word] if word in ("toHaveLength", "lengthOf", "toHaveProperty") else []
    subject = " ".join([text_of(subjects[0]) if subjects else "", *flags, *extra])
    if kind == "bound":
        expected = f"{word} {', '.join(map(text_of, arguments))}"
    elif not arguments and kind in ("exact", "differs", "helper"):
        expected = word
    else:
        expected = ", ".join(map(text_of, arguments[:1] if kind == "close" else arguments))
    is_empty = bool(subjects) and _is_literal(subjects[0]) and (not arguments or _is_literal(arguments[0]))
    return _made(node, "nothing" if is_empty else kind, (subject, expected), arguments[1:], is_negated=is_negated)


def _of_assert(node: Node, word: str, arguments: Sequence[Node]) -> Assertion:
    if word in ("fail", "AssertionError"):
        return _made(node, "helper", ("", text_of(node)), (), is_negated=False)
    kind: AssertionKind = "truthy" if word == "assert" else _KIND_OF.get(word, "helper")
    subject = text_of(arguments[0]) if arguments else ""
    if kind == "truthy" and arguments:
        return _of_condition(node, arguments[0])
    values = arguments[1 : _MESSAGE_AT.get(word, 2)]
    expected = ", ".join(map(text_of, values))
    if kind in ("exact", "equal") and values and _is_literal(arguments[0]) and not _is_literal(values[0]):
        subject, expected = expected, subject
    both = bool(values) and (subject == expected or (_is_literal(arguments[0]) and _is_literal(values[0])))
    if both and kind in ("exact", "equal"):
        kind = "nothing"
    return _made(node, kind, (subject, expected), arguments[2:] if kind == "close" else (), is_negated=False)


def _of_condition(node: Node, condition: Node) -> Assertion:
    """Treats `assert(a === b)` as `assert.strictEqual(a, b)`."""
    while condition.type == "parenthesized_expression" and condition.named_children:
        condition = condition.named_children[0]
    operator = raw(condition.child_by_field_name("operator")) if condition.type == "binary_expression" else ""
    left, right = condition.child_by_field_name("left"), condition.child_by_field_name("right")
    sides = text_of(left), text_of(right)
    if operator in ("===", "=="):
        kind: AssertionKind = "exact" if operator == "===" else "equal"
        return _made(node, "nothing" if sides[0] == sides[1] else kind, sides, (), is_negated=False)
    if operator in ("!==", "!="):
        return _made(node, "differs", sides, (), is_negated=False)
    if operator in ("<", ">", "<=", ">="):
        return _made(node, "bound", (sides[0], f"{operator} {sides[1]}"), (), is_negated=False)
    if operator in ("||", "??"):
        return _made(node, "either", (sides[0], text_of(condition)), (), is_negated=False)
    if _is_literal(condition):
        return _made(node, "nothing", (text_of(condition), ""), (), is_negated=False)
    return _made(node, "truthy", (text_of(condition), ""), (), is_negated=False)


def _made(
    node: Node, kind: AssertionKind, sides: tuple[str, str], further: Sequence[Node], *, is_negated: bool
) -> Assertion:
    detail, tolerance = "", None
    if kind == "close":
        said = text_of(further[0]) if further else str(_DIGITS)
        detail = "digits" if _NUMBER.fullmatch(said) else said
        tolerance = 10.0 ** -min(max(float(said), -300.0), 300.0) if detail == "digits" else None
        if "toBeCloseTo" not in text_of(node) and detail == "digits":
            detail, tolerance = "delta", float(said)
    opposite: Mapping[AssertionKind, AssertionKind] = {"truthy": "falsy", "falsy": "truthy", "nothing": "nothing"}
    shown = opposite.get(kind, "differs") if is_negated else kind
    return Assertion(
        kind=shown,
        subject=sides[0],
        expected=sides[1],
        text=text_of(node),
        line=line_of(node),
        detail=detail,
        tolerance=tolerance,
    )


def _is_literal(node: Node) -> bool:
    if node.type == "array":
        return all(_is_literal(each) for each in node.named_children)
    return node.type in _LITERALS
