"""Parsing with tree-sitter, and normalized source texts.

Tree-sitter parses all of these languages, including new syntax, without running anything, in linear time and
with a tree even for broken source. Its wheels need no other program, unlike a parser written in JavaScript.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from .model import Unreadable

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_DROPPED = frozenset({";", "comment", "line_comment", "block_comment", "\n"})
_CLOSING = frozenset(")]}")
_WHOLE = frozenset(
    "template_string string raw_string_literal interpreted_string_literal string_literal regex char_literal".split()
)
"""Nodes that are kept as one token, including white space."""
_STRINGS = frozenset({"string"})
"""Nodes whose quotation marks are a matter of style."""
_DEEPEST = 400
"""Levels of a tree that are visited; each uses levels of Python's recursion."""


def parsed(source: str, language: str) -> Node:
    """The syntax tree of a source.

    Args:
        language: javascript, typescript, tsx, go or rust.

    Raises:
        Unreadable: it has syntax errors, or is nested too deeply.
    """
    root = _parser(language).parse(source.encode("utf-8", "replace")).root_node
    if root.has_error:
        raise Unreadable(f"line {_first_fault(root)} is not valid {language}")
    if _depth(root) > _DEEPEST:
        raise Unreadable("it is nested too deeply")
    return root


@cache
def _parser(language: str) -> Parser:
    from tree_sitter import Language, Parser

    return Parser(Language(_grammar(language)))


def _grammar(language: str) -> object:
    if language == "javascript":
        import tree_sitter_javascript

        return tree_sitter_javascript.language()
    if language == "go":
        import tree_sitter_go

        return tree_sitter_go.language()
    if language == "rust":
        import tree_sitter_rust

        return tree_sitter_rust.language()
    import tree_sitter_typescript

    is_tsx = language == "tsx"
    return tree_sitter_typescript.language_tsx() if is_tsx else tree_sitter_typescript.language_typescript()


def walk(node: Node) -> Iterator[Node]:
    """A node and all nodes below it, in order."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        yield each
        waiting.extend(reversed(each.children))


def line_of(node: Node) -> int:
    """The line of a node, from 1."""
    return int(node.start_point[0]) + 1


def raw(node: Node | None) -> str:
    """The source of a node."""
    return "" if node is None or node.text is None else node.text.decode("utf-8", "replace")


def text_of(node: Node | None) -> str:
    """The normalized source of a node: without comments, semicolons and trailing commas, with single spaces."""
    if node is None:
        return ""
    words: list[str] = []
    for word in _words(node):
        if word in _CLOSING and words and words[-1] == ",":
            words.pop()
        words.append(word)
    return " ".join(words)


def string_of(node: Node | None) -> str:
    """The content of a string literal; empty for anything else."""
    if node is None or node.type not in _WHOLE:
        return ""
    return raw(node).strip("`\"'")


def _words(node: Node) -> Iterator[str]:
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if each.type in _DROPPED:
            continue
        if each.type in _STRINGS:
            yield f'"{raw(each)[1:-1]}"'
        elif each.type in _WHOLE or not each.children:
            yield raw(each)
        else:
            waiting.extend(reversed(_parts(each)))


def _parts(node: Node) -> list[Node]:
    """The children of a node; of `(x)` before an arrow only `x`, which is equivalent."""
    if node.type == "formal_parameters" and len(node.named_children) == 1:
        only = node.named_children[0]
        if only.type == "identifier":
            return [only]
    return node.children


def _depth(root: Node) -> int:
    deepest, waiting = 0, [(root, 1)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        if depth > _DEEPEST:
            break
        waiting.extend((child, depth + 1) for child in node.children)
    return deepest


def _first_fault(root: Node) -> int:
    return next((line_of(node) for node in walk(root) if node.is_error or node.is_missing), 1)
