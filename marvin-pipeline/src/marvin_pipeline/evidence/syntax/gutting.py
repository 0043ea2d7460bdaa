"""A program that removes the code from files: their definitions stay, and only raise errors.

The tests of the project must then fail. The input is hostile, so the program runs on its own: in the sandbox, with a
timeout. Standard input is JSON: `files`, the texts of files by path, and `marker`, the path of a
file that is created when one of them is loaded, which shows that this copy was used. It prints JSON: the new text by
path, an empty one where nothing of a file can be kept. Files without code to remove are left out.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from .files import language_of
from .model import Unreadable
from .tree import parsed

if TYPE_CHECKING:
    from tree_sitter import Node

_WORDS = "There is no code here."
_RAISE = ast.parse(f"raise RuntimeError({_WORDS!r})").body
_THROW = f"{{ throw new Error({json.dumps(_WORDS)}); }}".encode()
_MARK_PYTHON = "try:\n    open({path!r}, 'a').close()\nexcept OSError:\n    pass"
_MARK_SCRIPT = (
    "// @ts-nocheck\ntry {{ (process.getBuiltinModule ?? require)('fs').appendFileSync({path}, ''); }} catch {{}}\n"
)
_MARK_RUST = "{{ let _ = std::fs::write({path}, {empty}); panic!({words}) }}"
_DEFINING = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.Pass)
"""Top-level statements of a Python module that only define things."""
_SCRIPTS = ("javascript", "typescript", "tsx")
_FUNCTIONS = frozenset(
    "function_declaration generator_function_declaration function_expression generator_function arrow_function "
    "method_definition".split()
)
_TOLD = frozenset("import_statement comment hash_bang_line interface_declaration type_alias_declaration".split())
_WORKING = frozenset("call_expression await_expression".split())


def gutted(path: str, text: str, marker: str) -> str | None:
    """The text without its code; empty if nothing of it can be kept, None if there is nothing to remove.

    Args:
        marker: the file that is created when it is loaded.
    """
    language = language_of(path)
    try:
        if language == "python":
            return _python(text, marker)
        if language in _SCRIPTS:
            return _script(text, language, marker)
        if language == "rust":
            return _rust(text, marker)
    except (Unreadable, SyntaxError, ValueError, RecursionError, MemoryError, ImportError):
        return ""
    return ""


def _python(text: str, marker: str) -> str | None:
    tree = ast.parse(text)
    if not any(not isinstance(one, (ast.Import, ast.ImportFrom)) and not _is_words(one) for one in tree.body):
        return None
    if not any(isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) for one in ast.walk(tree)):
        return ""
    tree.body = list(_kept(tree.body))
    at = sum(1 for _ in takewhile(_has_to_be_first, tree.body))
    tree.body[at:at] = ast.parse(_MARK_PYTHON.format(path=marker)).body
    head = text.partition("\n")[0]
    return "\n".join(filter(None, (head if head.startswith("#!") else "", ast.unparse(tree), "")))


def _has_to_be_first(statement: ast.stmt) -> bool:
    return _is_words(statement) or (isinstance(statement, ast.ImportFrom) and statement.module == "__future__")


def _is_words(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _kept(statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The definitions of a block, with an error for each other statement."""
    for one in statements:
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
            one.body = list(_RAISE)
            yield one
        elif isinstance(one, ast.ClassDef):
            one.body = list(_kept(one.body))
            yield one
        elif isinstance(one, (ast.If, ast.Try)):
            for name in ("body", "orelse", "finalbody"):
                if block := getattr(one, name, None):
                    setattr(one, name, list(_kept(block)))
            yield one
        elif isinstance(one, _DEFINING) or _is_words(one):
            yield one
        else:
            yield from _RAISE


def _script(text: str, language: str, marker: str) -> str | None:
    root = parsed(text, language)
    if all(one.type in _TOLD or _only_hands_on(one) for one in root.named_children):
        return None
    parts = [(node, _THROW) for node in _bodies(root, _FUNCTIONS)]
    if not parts:
        return ""
    for one in root.named_children:
        if one.type == "if_statement":
            parts += [(each, _THROW) for each in (one.child_by_field_name("consequence"),) if each is not None]
        elif one.type == "expression_statement" and one.named_children[0].type in _WORKING:
            parts.append((one, _THROW))
    made, mark = _replaced(text, parts), _MARK_SCRIPT.format(path=json.dumps(marker))
    first, end, rest = made.partition("\n") if made.startswith("#!") else ("", "", made)
    return f"{first}{end}{mark}{rest}"


def _only_hands_on(statement: Node) -> bool:
    """`export ... from`, and directives such as 'use strict'."""
    if statement.type == "export_statement":
        return statement.child_by_field_name("source") is not None
    return statement.type == "expression_statement" and statement.named_children[0].type == "string"


def _rust(text: str, marker: str) -> str | None:
    root = parsed(text, "rust")
    words = {"path": json.dumps(marker), "empty": '""', "words": json.dumps(_WORDS)}
    parts = [(node, _MARK_RUST.format(**words).encode()) for node in _bodies(root, frozenset({"function_item"}))]
    return _replaced(text, parts) if parts else ""


def _bodies(node: Node, functions: frozenset[str]) -> Iterator[Node]:
    """The bodies of the outermost functions, except those of tests (by attribute)."""
    is_of_tests = False
    for one in node.named_children:
        if one.type == "attribute_item":
            is_of_tests = is_of_tests or b"test" in (one.text or b"")
            continue
        if is_of_tests:
            is_of_tests = one.type in ("line_comment", "block_comment")
            continue
        body = one.child_by_field_name("body") if one.type in functions else None
        if body is not None:
            yield body
        else:
            yield from _bodies(one, functions)


def _replaced(text: str, parts: Sequence[tuple[Node, bytes]]) -> str:
    """A text with some nodes replaced; a node within another one is replaced with it."""
    data, made, at = text.encode("utf-8", "replace"), bytearray(), 0
    for node, words in sorted(parts, key=lambda part: (part[0].start_byte, -part[0].end_byte)):
        if node.start_byte >= at:
            made += data[at : node.start_byte] + words
            at = node.end_byte
    return (bytes(made) + data[at:]).decode("utf-8", "replace")


def main() -> None:
    """Read the files and print them without their code."""
    order = json.load(sys.stdin)
    files: Mapping[str, str] = order["files"]
    found = {path: gutted(path, text, order["marker"]) for path, text in files.items()}
    json.dump({path: text for path, text in found.items() if text is not None}, sys.stdout)


if __name__ == "__main__":
    main()
