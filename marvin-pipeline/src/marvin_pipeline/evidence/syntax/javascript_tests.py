"""Tests in JavaScript and TypeScript: of node, Jest, Vitest, Mocha and similar runners."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from marvin_core import Record

from .javascript_assertions import assertion_of, chain_of
from .javascript_mocks import replacements_in
from .model import Body, Mark, TestFile, Unit
from .tree import line_of, parsed, raw, string_of, text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_TESTS = frozenset("test it specify xit xtest fit ftest".split())
_GROUPS = frozenset("describe suite context xdescribe fdescribe xcontext".split())
_SKIPPING = frozenset("skip todo failing fails skipIf runIf pending".split())
_ONLY = frozenset({"only"})
_OPTIONS = frozenset("skip todo only fails failing expectFailure".split())
_FUNCTIONS = frozenset("arrow_function function_expression function function_declaration method_definition".split())
_INNER = "in the function "


class _Around(Record):
    """The context of a test: the names of its groups, and what skips them."""

    names: tuple[str, ...] = ()
    skips: tuple[Mark, ...] = ()


class _Head(Record):
    """The head of a call that defines a test or a group."""

    base: str
    words: tuple[str, ...] = ()
    """The words after the name, such as `skip`."""
    cases: tuple[Mark, ...] = ()
    condition: str = ""


def read_javascript(source: str, language: str) -> TestFile:
    """The tests of a file.

    Raises:
        Unreadable: it has syntax errors, or is nested too deeply.
    """
    root = parsed(source, language)
    reader = _Reader()
    reader.block(root, _Around())
    return TestFile(
        units=tuple(reader.units.values()),
        values=reader.values,
        skips=tuple(reader.skips),
        replacements=tuple(replacements_in(root)),
    )


class _Reader:
    """Reads a file and the groups in it."""

    def __init__(self) -> None:
        self.units: dict[str, Unit] = {}
        self.values: dict[str, Mark] = {}
        self.skips: list[Mark] = []

    def block(self, node: Node, around: _Around) -> None:
        """Read the statements of a file, or of a group's function."""
        for statement in node.named_children:
            self._statement(statement, around)

    def _statement(self, statement: Node, around: _Around) -> None:
        kind = statement.type
        if kind == "expression_statement":
            call = _awaited(statement.named_children[0]) if statement.named_children else None
            if call is not None and call.type == "call_expression":
                self._call(call, around)
        elif kind in ("lexical_declaration", "variable_declaration"):
            for each in statement.named_children:
                self._named(each, around)
        elif kind == "function_declaration":
            self._add(_unit(raw(statement.child_by_field_name("name")), statement, around, is_test=False))
        elif kind == "import_statement":
            self._imports(statement)
        elif kind == "export_statement":
            self.block(statement, around)
        elif kind == "if_statement":
            guard = f"if {text_of(statement.child_by_field_name('condition'))}"
            inside = around.replace(skips=(*around.skips, Mark(text=guard, line=line_of(statement))))
            for name in ("consequence", "alternative"):
                if (inner := statement.child_by_field_name(name)) is not None:
                    self.block(inner, inside)
        elif kind in ("for_statement", "for_in_statement", "statement_block", "try_statement"):
            self.block(statement.child_by_field_name("body") or statement, around)

    def _imports(self, statement: Node) -> None:
        """Imported names are values as well: a test must not get something else of the same name."""
        source = string_of(statement.child_by_field_name("source"))
        for each in walk(statement):
            if each.type == "identifier":
                self.values[raw(each)] = Mark(text=f"import {source}", line=line_of(each))

    def _named(self, declared: Node, around: _Around) -> None:
        """`const NAME = ...` is a helper or a value; `const { NAME } = ...` are several values."""
        name, value = declared.child_by_field_name("name"), declared.child_by_field_name("value")
        if value is None or name is None:
            return
        if value.type in _FUNCTIONS:
            self._add(_unit(raw(name), value, around, is_test=False))
            return
        for each in walk(name):
            if each.type in ("identifier", "shorthand_property_identifier_pattern"):
                full = " > ".join((*around.names, raw(each)))
                self.values[full] = Mark(text=text_of(value), line=line_of(declared))

    def _call(self, call: Node, around: _Around) -> None:
        head = _head(call)
        if head is None:
            return
        arguments = [each for each in _arguments(call) if each.type != "comment"]
        title = _title(arguments[0]) if arguments else ""
        function = next((each for each in reversed(arguments) if each.type in _FUNCTIONS), None)
        skips = (*around.skips, *self._left_out(call, head, arguments, function))
        if head.base in _GROUPS:
            if function is not None and (body := function.child_by_field_name("body")) is not None:
                self.block(body, _Around(names=(*around.names, title), skips=skips))
        elif function is not None:
            inside = around.replace(skips=skips)
            self._add(_unit(title, function, inside, is_test=True).replace(cases=head.cases))
        else:
            mark = Mark(text="no function", line=line_of(call))
            self._add(_unit(title, call, around.replace(skips=(*skips, mark)), is_test=True))

    def _left_out(self, call: Node, head: _Head, arguments: list[Node], function: Node | None) -> Iterator[Mark]:
        """What in a call skips its test. An `only` skips the others, and belongs to the file."""
        line = line_of(call)
        words = [word for word in head.words if word in _SKIPPING or word in _ONLY]
        words += ["only"] if head.base.startswith("f") else ["skip"] if head.base.startswith("x") else []
        for each in arguments:
            if each.type == "object" and each is not function:
                words += [name for name in _options(each) if name in _OPTIONS]
        for word in words:
            mark = Mark(text=f"{word}{head.condition}", line=line)
            if word in _ONLY:
                self.skips.append(mark)
            else:
                yield mark

    def _add(self, unit: Unit) -> None:
        number, name = 1, unit.name
        while name in self.units:
            number += 1
            name = f"{unit.name} #{number}"
        self.units[name] = unit.replace(name=name)


def _awaited(node: Node) -> Node:
    return node.named_children[0] if node.type == "await_expression" and node.named_children else node


def _arguments(call: Node) -> list[Node]:
    found = call.child_by_field_name("arguments")
    return [] if found is None else list(found.named_children)


def _title(node: Node) -> str:
    return string_of(node) or text_of(node)


def _options(node: Node) -> Iterator[str]:
    """The names of an object's options that are not false."""
    for pair in node.named_children:
        if pair.type == "pair" and text_of(pair.child_by_field_name("value")) not in ("false", "undefined"):
            yield raw(pair.child_by_field_name("key")).strip("\"'")
        elif pair.type == "shorthand_property_identifier":
            yield raw(pair)


def _head(call: Node) -> _Head | None:
    """What a call defines: `test.skip`, `it.each([...])`, `describe.skipIf(...)`; None without a test."""
    function = call.child_by_field_name("function")
    condition, cases = "", tuple[Mark, ...]()
    if function is not None and function.type == "call_expression":
        inner = function.child_by_field_name("function")
        given = function.child_by_field_name("arguments")
        words = chain_of(inner)
        if words and words[-1] in ("each", "for"):
            cases = tuple(_cases(given))
        elif words:
            condition = f" {text_of(given)}"
        function = inner
    words = chain_of(function)
    if not words or words[0] not in _TESTS | _GROUPS:
        if len(words) == 2 and words[1] in _TESTS | _GROUPS:  # of a namespace, as `nodeTest.it`
            words = words[1:]
        else:
            return None
    return _Head(base=words[0], words=tuple(words[1:]), cases=cases, condition=condition)


def _cases(given: Node | None) -> Iterator[Mark]:
    """The cases of `each`: the elements of its list, the lines of its table, or any other expression."""
    if given is None:
        return
    if given.type == "template_string":
        for number, line in enumerate(raw(given).strip("`").strip().splitlines()):
            if words := " ".join(line.split()):
                yield Mark(text=words, line=line_of(given) + number)
        return
    for each in given.named_children:
        elements = each.named_children if each.type == "array" else [each]
        yield from (Mark(text=text_of(one), line=line_of(one)) for one in elements if one.type != "comment")


def _unit(name: str, function: Node, around: _Around, *, is_test: bool) -> Unit:
    body = function.child_by_field_name("body")
    reader = _Body(is_test=is_test)
    if body is not None and body.type == "statement_block":
        reader.block(body, ())
    elif body is not None:
        reader.expression(body, ())
    unit = reader.unit(" > ".join((*around.names, name)), line_of(function), text_of(body))
    return unit.replace(skips=(*around.skips, *unit.skips))


class _Body(Body):
    """Reads the body of one function."""

    def block(self, node: Node, guards: tuple[str, ...]) -> None:
        """Read statements under some conditions."""
        children = [each for each in node.named_children if each.type not in ("comment", "empty_statement")]
        for number, statement in enumerate(children):
            is_last = not guards and number == len(children) - 1
            self._statement(statement, guards, is_last=is_last)
            if statement.type in ("return_statement", "throw_statement", "break_statement", "continue_statement"):
                guards = (*guards, f"behind `{text_of(statement)}`")

    def expression(self, node: Node, guards: tuple[str, ...]) -> None:
        """Read an expression statement."""
        node = _awaited(node)
        made = assertion_of(node)
        if made:
            self.assertions.append(made.replace(guards=guards))
        elif node.type == "call_expression" and _skips(node):
            self.skips.append(Mark(text=text_of(node), line=line_of(node), guards=guards))
        elif node.type == "call_expression" and (inner := _inner_function(node)) is not None:
            self._called_with(node, inner, guards)
        else:
            self.statements.append(Mark(text=text_of(node), line=line_of(node), guards=guards))

    def _called_with(self, call: Node, function: Node, guards: tuple[str, ...]) -> None:
        """A call with a function: a subtest, or a loop over a list."""
        outside = " ".join(text_of(each) for each in call.children if each.type != "arguments")
        others = [text_of(each) for each in _arguments(call) if each != function]
        self.statements.append(Mark(text=f"{outside} ( {' , '.join(others)} )", line=line_of(call), guards=guards))
        head = _head(call)
        if head and any(word in _SKIPPING for word in head.words):
            self.skips.append(Mark(text=outside, line=line_of(call), guards=guards))
        body = function.child_by_field_name("body")
        inside = (*guards, f"{_INNER}of `{outside}`")
        if body is not None and body.type == "statement_block":
            self.block(body, inside)
        elif body is not None:
            self.expression(body, inside)

    def _statement(self, statement: Node, guards: tuple[str, ...], *, is_last: bool) -> None:
        kind = statement.type
        if kind == "expression_statement" and statement.named_children:
            self.expression(statement.named_children[0], guards)
        elif kind == "return_statement":
            self._return(statement, guards, is_last=is_last)
        elif kind == "if_statement":
            condition = text_of(statement.child_by_field_name("condition"))
            self._inside(statement.child_by_field_name("consequence"), (*guards, f"if {condition}"))
            self._inside(statement.child_by_field_name("alternative"), (*guards, f"else of if {condition}"))
        elif kind == "try_statement":
            self._try(statement, guards)
        elif kind in ("for_statement", "for_in_statement", "while_statement", "do_statement", "labeled_statement"):
            body = statement.child_by_field_name("body")
            head = " ".join(text_of(each) for each in statement.children if each != body)
            self.statements.append(Mark(text=head, line=line_of(statement), guards=guards))
            self._inside(body, (*guards, head) if kind == "while_statement" else guards)
        elif kind == "statement_block":
            self.block(statement, guards)
        else:
            self.statements.append(Mark(text=text_of(statement), line=line_of(statement), guards=guards))

    def _return(self, statement: Node, guards: tuple[str, ...], *, is_last: bool) -> None:
        is_inner = any(guard.startswith(_INNER) for guard in guards)
        if statement.named_children and assertion_of(_awaited(statement.named_children[0])):
            self.expression(statement.named_children[0], guards)
        elif self.is_test and not is_inner:
            if not is_last:
                self.exits.append(Mark(text=text_of(statement), line=line_of(statement), guards=guards))
        else:
            self.statements.append(Mark(text=text_of(statement), line=line_of(statement), guards=guards))

    def _try(self, statement: Node, guards: tuple[str, ...]) -> None:
        handler = statement.child_by_field_name("handler")
        fails = handler is None or any(each.type == "throw_statement" for each in walk(handler))
        self._inside(statement.child_by_field_name("body"), guards if fails else (*guards, "try ... catch"))
        if handler is not None:
            self._inside(handler.child_by_field_name("body"), (*guards, "catch"))
        if (finalizer := statement.child_by_field_name("finalizer")) is not None:
            self._inside(finalizer.child_by_field_name("body"), guards)

    def _inside(self, node: Node | None, guards: tuple[str, ...]) -> None:
        if node is None:
            return
        if node.type == "else_clause":
            for each in node.named_children:
                self._inside(each, guards)
        elif node.type == "statement_block":
            self.block(node, guards)
        else:
            self._statement(node, guards, is_last=False)


def _skips(call: Node) -> bool:
    """Whether a call skips its test: `t.skip()`, `this.skip()`, `ctx.todo()`, `pending()`."""
    words = chain_of(call.child_by_field_name("function"))
    return bool(words) and words[-1] in ("skip", "todo", "pending") and len(words) <= 2


def _inner_function(call: Node) -> Node | None:
    return next((each for each in reversed(_arguments(call)) if each.type in _FUNCTIONS), None)
