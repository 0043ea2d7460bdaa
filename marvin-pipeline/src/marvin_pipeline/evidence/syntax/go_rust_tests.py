"""Tests in Go and Rust, compared statement by statement: neither language has special assertions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .mocks import GO_MODULES, RUST_MODULES, is_double, module_kind
from .model import Mark, Replacement, TestFile, Unit
from .tree import line_of, parsed, raw, string_of, text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_GO_TEST = re.compile(r"(?:Test|Fuzz|Benchmark|Example)(?![a-z])")
_GO_SKIP = re.compile(r"\w+ \. (?:Skip|Skipf|SkipNow) \(")
_GO_EXIT = re.compile(r"(?:os|syscall) \. Exit \((?! \w+ \. Run \()|runtime \. Goexit \(")
_GO_JUMPS = ("return", "continue", "break", "goto")
_GO_MAIN = "TestMain"
"""Runs the tests of a package instead of Go, through `m.Run()`."""
_GO_RUN = re.compile(r"\w \. Run \(")
_RUST_TEST = re.compile(r"\b(?:test|rstest|test_case|proptest|quickcheck)\b")
_HARMLESS = re.compile(r"# \[ (?:allow|expect|warn|doc|inline|must_use|tokio|derive)\b")
_SKIPS = re.compile(r"# \[ (?:ignore|cfg|cfg_attr)\b")
_BLOCKS = frozenset("block statement_list expression_case default_case communication_case match_block".split())
_COMPOUND = frozenset(
    "if_statement for_statement expression_switch_statement type_switch_statement select_statement if_expression "
    "for_expression while_expression loop_expression match_expression match_arm".split()
)
_GO_TAG = re.compile(r"^//(?:go:build|\s*\+build)\s+(.*)$", re.MULTILINE)


def read_go(source: str) -> TestFile:
    """The tests of a Go file. Raises `Unreadable`."""
    root = parsed(source, "go")
    units, values, replaced = dict[str, Unit](), dict[str, Mark](), list[Replacement]()
    for node in root.named_children:
        if node.type in ("function_declaration", "method_declaration"):
            name = _go_name(node)
            units[name] = _go_unit(name, node)
        elif node.type in ("var_declaration", "const_declaration"):
            values.update(_go_values(node))
    for node in walk(root):
        if node.type == "import_spec" and (
            kind := module_kind(string_of(node.child_by_field_name("path")), GO_MODULES)
        ):
            replaced.append(Replacement(line=line_of(node), text=text_of(node), kind=kind))
        elif node.type == "type_spec" and is_double(raw(node.child_by_field_name("name"))):
            replaced.append(Replacement(line=line_of(node), text=text_of(node)[:80], kind="double"))
    begin = source[: root.named_children[0].start_byte + 2_000] if root.named_children else source
    tags = (Mark(text=found[0].strip(), line=begin[: found.start()].count("\n") + 1) for found in _tags(begin))
    return TestFile(units=tuple(units.values()), values=values, skips=tuple(tags), replacements=tuple(replaced))


def _tags(source: str) -> Iterator[re.Match[str]]:
    """The build tags, which stand before the package clause."""
    yield from _GO_TAG.finditer(source.partition("\npackage ")[0])


def _go_values(node: Node) -> Iterator[tuple[str, Mark]]:
    for each in walk(node):
        if each.type in ("var_spec", "const_spec"):
            name, value = each.child_by_field_name("name"), each.child_by_field_name("value")
            if value is not None:
                yield raw(name), Mark(text=text_of(value), line=line_of(each))


def _go_name(node: Node) -> str:
    """The name of a function; of a method, after its type, as it is not a test."""
    name, receiver = raw(node.child_by_field_name("name")), node.child_by_field_name("receiver")
    typed = raw(receiver).strip("()").split()[-1:] if receiver is not None else []
    return ".".join((*(one.lstrip("*") for one in typed), name))


def _go_unit(name: str, node: Node) -> Unit:
    statements = list(_statements(node.child_by_field_name("body"), ()))
    skips = [each for each in statements if _GO_SKIP.match(each.text) or _GO_EXIT.match(each.text)]
    body = text_of(node.child_by_field_name("body"))
    is_generic = node.child_by_field_name("type_parameters") is not None  # Go runs none of those
    is_test = bool(_GO_TEST.match(name.rpartition(".")[2])) and name != _GO_MAIN and not is_generic
    if name == _GO_MAIN and not _GO_RUN.search(body):
        skips.append(Mark(text=f"{_GO_MAIN} runs no tests", line=line_of(node)))
    exits = [each for each in statements if is_test and each.text.partition(" ")[0] in _GO_JUMPS]
    return Unit(
        name=name,
        line=line_of(node),
        is_test=is_test,
        body=body,
        statements=tuple(each for each in statements if each not in skips and each not in exits),
        skips=tuple(skips),
        exits=tuple(exits),
    )


def read_rust(source: str, *, is_test_file: bool) -> TestFile:
    """The tests of a Rust file: all functions of a test file, the tests of any other. Raises `Unreadable`."""
    root = parsed(source, "rust")
    units, replaced = dict[str, Unit](), list[Replacement]()
    for name, node, attributes, inside in _functions(root, (), (), inside=is_test_file):
        unit = _rust_unit(name, node, attributes)
        if unit.is_test or inside:
            units[name] = unit
    for node in walk(root):
        if node.type == "use_declaration":
            used = text_of(node).removeprefix("use ").partition(" ")[0]
            if kind := module_kind(used, RUST_MODULES):
                replaced.append(Replacement(line=line_of(node), text=text_of(node), kind=kind))
        elif node.type == "attribute_item" and "automock" in raw(node):
            replaced.append(Replacement(line=line_of(node), text=text_of(node), kind="library"))
    return TestFile(units=tuple(units.values()), values={}, replacements=tuple(replaced))


def _functions(
    node: Node, around: tuple[str, ...], outer: tuple[Node, ...], *, inside: bool
) -> Iterator[tuple[str, Node, tuple[Node, ...], bool]]:
    """The functions of a file and of its modules: name, node, attributes, and whether they are among tests."""
    attributes: list[Node] = []
    for each in node.named_children:
        if each.type == "attribute_item":
            attributes.append(each)
            continue
        if each.type == "function_item":
            name = "::".join((*around, raw(each.child_by_field_name("name"))))
            yield name, each, (*outer, *attributes), inside
        elif each.type in ("mod_item", "impl_item") and (body := each.child_by_field_name("body")) is not None:
            is_tests = inside or any("cfg" in raw(one) and "test" in raw(one) for one in attributes)
            kept = tuple(one for one in attributes if "test" not in raw(one))
            name = raw(each.child_by_field_name("name") or each.child_by_field_name("type"))
            yield from _functions(body, (*around, name), (*outer, *kept), inside=is_tests)
        if each.type not in ("line_comment", "block_comment"):
            attributes = []


def _rust_unit(name: str, node: Node, attributes: tuple[Node, ...]) -> Unit:
    marks = [Mark(text=text_of(each), line=line_of(each)) for each in attributes]
    statements = tuple(_statements(node.child_by_field_name("body"), ()))
    is_test = any(_RUST_TEST.search(mark.text) and "cfg" not in mark.text for mark in marks)
    exits = [each for each in statements if is_test and each.text.partition(" ")[0] == "return"]
    others = (mark for mark in marks if not _HARMLESS.match(mark.text) and not _RUST_TEST.search(mark.text))
    shown = tuple(others)
    return Unit(
        name=name,
        line=line_of(node),
        is_test=is_test,
        body=text_of(node.child_by_field_name("body")),
        statements=tuple(each for each in statements if each not in exits),
        skips=tuple(mark for mark in shown if _SKIPS.match(mark.text)),
        marks=tuple(mark for mark in shown if not _SKIPS.match(mark.text)),
        exits=tuple(exits),
    )


def _statements(node: Node | None, guards: tuple[str, ...]) -> Iterator[Mark]:
    """The simple statements of a block, and the heads of compound ones."""
    for each in [] if node is None else node.named_children:
        inner = each.named_children[0] if each.type == "expression_statement" and each.named_children else each
        if each.type in ("line_comment", "block_comment", "comment"):
            continue
        if inner.type in _COMPOUND:
            head = " ".join(text_of(part) for part in inner.children if not _holds_blocks(part))
            yield Mark(text=head, line=line_of(inner), guards=guards)
            for part in inner.named_children:
                if _holds_blocks(part):
                    yield from _statements(part, (*guards, head))
        elif inner.type in _BLOCKS or inner.type == "else_clause":
            yield from _statements(inner, guards)
        else:
            yield Mark(text=text_of(inner), line=line_of(inner), guards=guards)


def _holds_blocks(node: Node) -> bool:
    return node.type in _BLOCKS or node.type in _COMPOUND or node.type == "else_clause"
