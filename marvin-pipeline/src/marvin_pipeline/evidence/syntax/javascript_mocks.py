"""Mocks and monkeypatching in JavaScript and TypeScript."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .javascript_assertions import chain_of
from .mocks import JAVASCRIPT_MODULES, is_double, module_kind
from .model import Replacement
from .tree import line_of, raw, string_of, text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_RUNNERS = frozenset({"jest", "vi", "vitest"})
_METHODS = frozenset(
    "fn mock doMock unstable_mockModule mockModule spyOn replaceProperty createMockFromModule setMock stubGlobal "
    "hoisted genMockFromModule automock enableAutomock".split()
)
_TIMERS = frozenset({"useFakeTimers", "setSystemTime"})
_NODE = frozenset("fn method getter setter module property".split())
"""Methods of node:test's `mock`, in addition to its timers (https://nodejs.org/api/test.html#mocking)."""
_GLOBALS = frozenset("globalThis global window Date Math JSON console fetch Object Array Promise String Number".split())
_SHOWN = 200


def replacements_in(root: Node) -> list[Replacement]:
    """All places that replace behaviour, by line, without duplicates."""
    reader = _Reader()
    for node in walk(root):
        reader.note(node)
    found: dict[int, Replacement] = {}
    for node, kind in [*reader.found, *reader.late()]:
        line = line_of(node)
        found.setdefault(line, Replacement(line=line, text=text_of(node)[:_SHOWN], kind=kind))
    return [found[line] for line in sorted(found)]


class _Reader:
    """Collects facts from the nodes of a file, each visited once."""

    def __init__(self) -> None:
        self.found: list[tuple[Node, str]] = []
        self._imported: set[str] = set()
        self._assigned: list[Node] = []

    def note(self, node: Node) -> None:
        """Process one node."""
        if node.type == "import_statement":
            self._import(node, string_of(node.child_by_field_name("source")))
        elif node.type == "variable_declarator":
            self._declared(node)
        elif node.type == "call_expression":
            if kind := _called(node):
                self.found.append((node, kind))
        elif node.type == "assignment_expression":
            self._assigned.append(node)
        elif _is_double(node):
            self.found.append((node, "double"))

    def late(self) -> Iterator[tuple[Node, str]]:
        """Process assignments, after all imports are known."""
        for node in self._assigned:
            left = node.child_by_field_name("left")
            if left is None:
                continue
            words = chain_of(left)
            is_foreign = len(words) > 1 and (words[0] in {*self._imported, *_GLOBALS} or "prototype" in words)
            if is_foreign or (left.type == "subscript_expression" and raw(left).startswith("require.cache")):
                yield node, "patch"

    def _import(self, node: Node, source: str) -> None:
        if kind := module_kind(source, JAVASCRIPT_MODULES):
            self.found.append((node, kind))
            return
        for each in walk(node):
            if each.type == "identifier":
                self._imported.add(raw(each))

    def _declared(self, node: Node) -> None:
        """`const x = require('...')`, also with destructuring."""
        value = node.child_by_field_name("value")
        if value is not None and value.type == "await_expression" and value.named_children:
            value = value.named_children[0]
        if value is None or value.type != "call_expression":
            return
        function = raw(value.child_by_field_name("function"))
        arguments = value.child_by_field_name("arguments")
        if function not in ("require", "import") or arguments is None or not arguments.named_children:
            return
        if kind := module_kind(string_of(arguments.named_children[0]), JAVASCRIPT_MODULES):
            self.found.append((node, kind))
        elif (name := node.child_by_field_name("name")) is not None:
            self._imported |= {raw(each) for each in walk(name) if each.type.endswith("identifier")}
            self._imported |= {raw(each) for each in walk(name) if each.type.startswith("shorthand_property")}


def _is_double(node: Node) -> bool:
    is_named = node.type in ("class_declaration", "function_declaration")
    return is_named and is_double(raw(node.child_by_field_name("name")))


def _called(call: Node) -> str:
    """The kind of mock that a call creates; empty for other calls."""
    words = chain_of(call.child_by_field_name("function"))
    if len(words) < 2:
        return ""
    if words[0] in _RUNNERS:
        return "time" if words[1] in _TIMERS else "library" if words[1] in _METHODS else ""
    if "mock" in words[:-1]:
        after = words[words.index("mock") + 1 :]
        return "time" if after[0] == "timers" else "patch" if after[0] in _NODE else ""
    return ""
