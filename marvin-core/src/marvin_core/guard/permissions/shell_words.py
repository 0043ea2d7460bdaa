"""Expands the words of a shell command like a shell, as far as possible without running it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from ...util.patterns.texts import GAP, GAPS, HERE, HOME, MARKS, ONE, SET, STAR, TILDE, is_known, shown
from .shell_parser import Node, NotUnderstood

_MAY_CLOSE = re.compile(f"[]{GAP}{GAPS}]")
_OPEN_BRACE, _COMMA, _CLOSE_BRACE = "\ue010", "\ue011", "\ue012"
_UNQUOTED = {"*": STAR, "?": ONE, "[": SET, "{": _OPEN_BRACE, ",": _COMMA, "}": _CLOSE_BRACE}
_BRACES = {_OPEN_BRACE: "{", _COMMA: ",", _CLOSE_BRACE: "}"}
_MOST_BRACES = 64
_INSIDE = frozenset(
    "Lit SglQuoted DblQuoted ParamExp CmdSubst ArithmExp ProcSubst Word BinaryArithm UnaryArithm ParenArithm "
    "BinaryTest UnaryTest ParenTest WordIter CStyleLoop".split()
)
"""The supported node types, other than those of commands."""
_ASSIGNMENT = re.compile(r"[A-Za-z_][\w%()]*\+?=")
_COMPUTING = frozenset("-eq -ne -lt -le -gt -ge -v -R".split())
_ANSI = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ANSI_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}|c.|.)", re.DOTALL)


class Word:
    """A word after expansion, with the marks of `util.patterns` for unknown parts.

    `downloads` means that a command in it downloads something; `is_file`, that it names a file that such a command
    writes.
    """

    __slots__ = ("downloads", "is_file", "text")

    def __init__(self, text: str, *, downloads: bool = False, is_file: bool = False) -> None:
        self.text = text
        self.downloads = downloads
        self.is_file = is_file


class WordReader:
    """Builds words from nodes.

    Args:
        run: gets the node of each command or process substitution, and returns whether that downloads something.
        evaluate: gets each word, other than arguments, that a shell may evaluate as code, and whether it is used in
            arithmetic.
        assign: gets the name and the value when an expansion sets a variable.
    """

    def __init__(
        self,
        run: Callable[[Node], bool],
        evaluate: Callable[[Word, bool], None],
        assign: Callable[[str, Word], None] = lambda name, word: None,
    ) -> None:
        self._run = run
        self._evaluate = evaluate
        self._assign = assign
        self.reassigned: set[str] = set()
        """Record variables that the script sets; their earlier values no longer apply."""
        self._downloads = False
        self._is_file = False

    def words(self, nodes: Sequence[Node]) -> list[Word]:
        """Expand arguments; braces may produce several from one."""
        return [word for node in nodes for word in self._split(node)]

    def word(self, node: Node | None) -> Word:
        """A word in a place without brace expansion, as in an assignment."""
        if node is None:
            return Word("")
        text = self._read(node)
        return Word(_without_braces(text), downloads=self._downloads, is_file=self._is_file)

    def visit(self, node: Any, *, quoted: bool = False, computed: bool = True) -> None:
        """Run the code inside any node, and evaluate its words.

        Args:
            quoted: whether it stands between double quotes, in which not every shell treats single ones as quotes.
            computed: whether a shell uses it in arithmetic.

        Raises:
            NotUnderstood: for an unknown node.
        """
        if isinstance(node, list):
            for inner in node:
                self.visit(inner, quoted=quoted, computed=computed)
        elif isinstance(node, dict):
            kind = node.get("Type")
            if kind in ("BinaryTest", "UnaryTest"):
                computed = node.get("Op") in _COMPUTING
            if kind in ("CmdSubst", "ProcSubst"):
                self._substituted(node)
                return
            if kind is not None and kind not in _INSIDE:
                raise NotUnderstood(f"it has a part of the kind {kind}")
            if "Parts" in node:
                self._visited_word(node, quoted, computed)
                return
            for inner in node.values():
                if isinstance(inner, (dict, list)):
                    self.visit(inner, quoted=quoted, computed=computed)

    def _visited_word(self, node: Node, quoted: bool, computed: bool) -> None:
        for part in node["Parts"] or []:
            if quoted and part.get("Type") == "SglQuoted":
                raise NotUnderstood("it has single quotes in an expansion between double ones")
            if part.get("Type") == "Lit" and ("<(" in part.get("Value", "") or ">(" in part.get("Value", "")):
                raise NotUnderstood("it has a process substitution in an expansion")
        before = self._downloads, self._is_file
        self._evaluate(self.word(node), computed)
        self._downloads, self._is_file = before

    def _split(self, node: Node) -> Iterator[Word]:
        text = self._read(node)
        downloads, is_file = self._downloads, self._is_file
        for piece in filter(None, _expanded(text)) if _OPEN_BRACE in text else [_without_braces(text)]:
            yield Word(piece, downloads=downloads, is_file=is_file)

    def _read(self, node: Node) -> str:
        self._downloads = self._is_file = False
        text = "".join(self._part(part, quoted=False, first=not at) for at, part in enumerate(node.get("Parts") or []))
        # Without a closing bracket, or a part that may contain one, it is not a wildcard: `[ -f x ]`.
        if SET not in text:
            return text
        closing = max((found.start() for found in _MAY_CLOSE.finditer(text)), default=0)
        return text[:closing] + text[closing:].replace(SET, "[")

    def _part(self, part: Node, *, quoted: bool, first: bool = False) -> str:
        kind = part.get("Type")
        if kind == "Lit":
            return _in_quotes(part.get("Value", "")) if quoted else _bare(part.get("Value", ""), first)
        if kind == "SglQuoted":
            return ansi(part.get("Value", "")) if part.get("Dollar") else part.get("Value", "")
        if kind == "DblQuoted":
            return "".join(self._part(inner, quoted=True) for inner in part.get("Parts") or [])
        if kind == "ParamExp":
            return self._parameter(part, quoted)
        if kind in ("CmdSubst", "ProcSubst"):
            self._substituted(part)
            if kind == "CmdSubst":
                return HERE if _is_pwd(part) else (GAP if quoted else GAPS)
            self._is_file = True
            return GAP
        if kind == "ArithmExp":
            self.visit(part["X"], quoted=quoted)
            return GAP
        raise NotUnderstood(f"it has a part of the kind {kind}")

    def _substituted(self, node: Node) -> None:
        downloads = self._downloads  # `run` reads words in between
        is_file = self._is_file
        self._downloads = self._run(node) or downloads
        self._is_file = is_file

    def _parameter(self, part: Node, quoted: bool) -> str:
        name = (part.get("Param") or {}).get("Value", "")
        rest = {key for key in part if key not in ("Type", "Pos", "End", "Dollar", "Rbrace", "Param", "Short")}
        if not rest and name in ("HOME", "PWD") and name not in self.reassigned:
            return HOME if name == "HOME" else HERE
        for key in rest:
            self.visit(part[key], quoted=quoted, computed=key not in ("Exp", "Repl"))
        if "Excl" in rest:  # the variable's value is the name, perhaps with brackets
            self._evaluate(Word(GAP), True)
        if (part.get("Exp") or {}).get("Op") in ("=", ":="):
            before = self._downloads, self._is_file
            self._assign(name, self.word(part["Exp"].get("Word")))
            self._downloads, self._is_file = before
        many = not quoted or name == "@" or part.get("Index") is not None
        return GAPS if many else GAP


def _is_pwd(node: Node) -> bool:
    statements = node.get("Stmts") or []
    command = statements[0].get("Cmd") if len(statements) == 1 else None
    arguments = (command or {}).get("Args") or []
    parts = arguments[0].get("Parts") or [] if len(arguments) == 1 else []
    return len(parts) == 1 and parts[0].get("Value") == "pwd"


def _bare(text: str, first: bool) -> str:
    """An unquoted piece: escapes resolved, wildcards, braces and the leading ~ marked."""
    if not set(text) & set("\\*?[{,}~"):
        return text
    pieces: list[str] = []
    characters = iter(text)
    for at, char in enumerate(characters):
        if char == "\\":
            escaped = next(characters, "")
            pieces.append("" if escaped == "\n" else escaped)
        elif char == "~" and first and not at:
            pieces.append(TILDE)
        else:
            pieces.append(_UNQUOTED.get(char, char))
    return "".join(pieces)


def _in_quotes(text: str) -> str:
    return re.sub(r'\\([$`"\\\n])', lambda found: found[1].replace("\n", ""), text) if "\\" in text else text


def ansi(text: str) -> str:
    """The text between `$'` and `'`.

    Raises:
        NotUnderstood: for an unknown escape.
    """

    def escaped(found: re.Match[str]) -> str:
        code = found[1]
        if code[0] in "xuU" and len(code) > 1:
            return _character(int(code[1:], 16), code[0] == "x")
        if code[0] in "01234567":
            return _character(int(code, 8) & 0xFF, True)
        if code in _ANSI:
            return _ANSI[code]
        if code in "\\'\"?":
            return code
        raise NotUnderstood(f"it contains the escape \\{code}")

    return _ANSI_ESCAPE.sub(escaped, text)


def _character(number: int, is_byte: bool) -> str:
    limit = 0x7F if is_byte else 0x10FFFF
    if not 0 < number <= limit or 0xD800 <= number < 0xE020:
        raise NotUnderstood("it contains a numeric escape that is not a character")
    return chr(number)


def _without_braces(text: str) -> str:
    for mark, sign in _BRACES.items():
        text = text.replace(mark, sign)
    return text


def _expanded(text: str) -> list[str]:
    """The words that braces produce; too many count as unknown."""
    if text.count(_OPEN_BRACE) > _MOST_BRACES or text.count(_COMMA) > _MOST_BRACES:
        return [_without_braces(text[: text.index(_OPEN_BRACE)]) + GAPS]
    found = list(islice(_alternatives(text), _MOST_BRACES + 1))
    return found if len(found) <= _MOST_BRACES else [*found, GAPS]


def _alternatives(text: str) -> Iterator[str]:
    """Expand braces with commas, starting with the outermost first one; sequences are not enumerated."""
    pair = _first_pair(text)
    if pair is None:
        yield _without_braces(text)
        return
    begin, end = pair
    choices = _choices(text[begin + 1 : end])
    for choice in choices:
        for middle in _alternatives(choice):
            if len(choices) == 1:  # braces around one text are not a list
                middle = GAPS if ".." in middle else f"{{{middle}}}"
            for tail in _alternatives(text[end + 1 :]):
                yield f"{_without_braces(text[:begin])}{middle}{tail}"


def _first_pair(text: str) -> tuple[int, int] | None:
    """The first opening brace that has a closing one, and its position."""
    begin = text.find(_OPEN_BRACE)
    while begin >= 0:
        depth = 0
        for at in range(begin, len(text)):
            depth += (text[at] == _OPEN_BRACE) - (text[at] == _CLOSE_BRACE)
            if not depth:
                return begin, at
        begin = text.find(_OPEN_BRACE, begin + 1)
    return None


def _choices(text: str) -> list[str]:
    found, depth, begin = [], 0, 0
    for at, char in enumerate(text):
        depth += (char == _OPEN_BRACE) - (char == _CLOSE_BRACE)
        if char == _COMMA and not depth:
            found.append(text[begin:at])
            begin = at + 1
    return [*found, text[begin:]]


def without_folder(name: str) -> str:
    """The name of a command without its folder; an unknown part may hide it."""
    unknown = max((found.start() for found in MARKS.finditer(name) if not is_known(found[0])), default=0)
    return name[max(name.rfind("/") + 1, unknown) :]


def as_script(text: str) -> str:
    """A text to be parsed, with variables for the unknown parts."""
    for mark, name in ((GAP, "${_}"), (GAPS, "${_}"), (HOME, "${HOME}"), (HERE, "${PWD}")):
        text = text.replace(mark, name)
    return shown(text)


def is_assignment(text: str) -> bool:
    """Whether a word sets a variable, as the words after `env` do."""
    return _ASSIGNMENT.match(text) is not None


def without_odd_names(words: Sequence[Word]) -> list[Word]:
    """The words after `env`, without variables whose names are not valid in a shell; env accepts any word with `=`."""
    operands = list(words)
    count = next((at for at, word in enumerate(operands) if "=" not in word.text[1:]), len(operands))
    return [word for word in operands[:count] if is_assignment(word.text)] + operands[count:]
