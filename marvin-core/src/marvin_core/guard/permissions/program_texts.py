"""Programs and output files in sed and awk scripts, as far as they are literal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...util.patterns.texts import GAP

SED = frozenset(["sed", "gsed"])
AWK = frozenset(["awk", "gawk", "mawk", "nawk", "original-awk"])
_LONGEST = 8_000
"""The number of characters of a program that are read. The effects of a longer one are unknown."""
_TO_END_OF_LINE = frozenset("aicr:btTRFzvlLqQ")
_ENDING = frozenset(";}\n")
_TOKEN = re.compile(
    r'"(?P<string>(?:[^"\\\n]|\\.)*)"|(?P<blank>[ \t\r]+|\\\n|#[^\n]*)|(?P<name>[A-Za-z_]\w*)|(?P<number>[\d.]+)'
    r"|(?P<sign>\|&|\|\||>>|[^\w\s]|\n)",
    re.DOTALL,
)
_REGEX = re.compile(r"/(?>[^/\\\n\[]|\\.|\[\^?\]?[^\]\n]*\]){0,500}+/", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/"}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_BEFORE_DIVISION = frozenset([")", "]", "$", "++", "--"])


class Effects(NamedTuple):
    """The scripts that a program passes to a shell, and the files that it writes. A GAP stands for unknown text."""

    scripts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


def effects(name: str, words: Sequence[str]) -> Effects:
    """The effects of the programs in a sed or awk command; empty for other commands. `words` begins with the name."""
    if name in SED:
        reader, programs = _sed, _programs(words, ("--expression", "--file"), "l")
    elif name in AWK:
        reader, programs = _awk, _programs(words, ("--source", "--file"), "Fvi")
    else:
        return Effects()
    found = [reader(text) if len(text) <= _LONGEST else Effects(scripts=(GAP,)) for text in programs]
    return Effects(
        tuple(script for one in found for script in one.scripts), tuple(file for one in found for file in one.files)
    )


def _programs(words: Sequence[str], long: tuple[str, str], valued: str) -> Iterator[str]:
    """The programs: values of `-e`, or the first operand if neither that nor a program file (`-f`) is given.

    Args:
        long: the long names of these two options.
        valued: further letters with a value.
    """
    given, operand, queue = False, None, list(words[1:])
    while queue:
        word = queue.pop(0)
        if word == "--":
            operand = operand or next(iter(queue), None)
            break
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            if len(name) > 3 and any(one.startswith(name) for one in long):
                given = True
                value = value if equals or not queue else queue.pop(0)
                if long[0].startswith(name):
                    yield value
        elif word.startswith("-") and len(word) > 1:
            letter = next((one for one in word[1:] if one in f"efi{valued}"), "")
            behind = word[word.index(letter) + 1 :] if letter else ""
            if letter and letter in f"ef{valued}":
                value = behind if behind or not queue else queue.pop(0)
                given |= letter in "ef"
                if letter == "e":
                    yield value
        elif operand is None:
            operand = word
    if operand is not None and not given:
        yield operand


class _Sed:
    """A parser for sed programs: https://www.gnu.org/software/sed/manual/sed.html"""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.scripts: list[str] = []
        self.files: list[str] = []

    def read(self) -> None:
        """Parse the whole program; a syntax error ends the parsing, as it ends sed."""
        while self.at < len(self.text):
            self._skip(" \t\n;{}")
            self._address()
            self._command()

    def _skip(self, signs: str) -> None:
        while self.at < len(self.text) and self.text[self.at] in signs:
            self.at += 1

    def _next(self) -> str:
        self.at += 1
        return self.text[self.at - 1 : self.at]

    def _line(self) -> str:
        end = self.text.find("\n", self.at)
        begin, self.at = self.at, len(self.text) if end < 0 else end
        return self.text[begin : self.at].strip()

    def _delimited(self, sign: str) -> str:
        begin = self.at
        while self.at < len(self.text) and self.text[self.at] != sign:
            self.at += 2 if self.text[self.at] == "\\" else 1
        self.at += 1
        return self.text[begin : self.at - 1]

    def _address(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in "0123456789$,~+! \t/\\IM":
            sign = self._next()
            if sign in "/\\":
                self._delimited(sign if sign == "/" else self._next())

    def _command(self) -> None:
        sign = self._next()
        if sign in ("w", "W"):
            self.files.append(self._line())
        elif sign == "e":
            self.scripts.append(self._line() or GAP)
        elif sign == "s":
            self._substitution()
        elif sign == "y":
            delimiter = self._next()
            self._delimited(delimiter)
            self._delimited(delimiter)
        elif sign in ("a", "i", "c"):
            while self._line().endswith("\\") and self.at < len(self.text):
                self.at += 1
        elif sign in _TO_END_OF_LINE or sign == "#":
            self._line() if sign in "rR#" else self._word()

    def _word(self) -> None:
        while self.at < len(self.text) and self.text[self.at] not in _ENDING:
            self.at += 1

    def _substitution(self) -> None:
        delimiter = self._next()
        self._delimited(delimiter)
        self._delimited(delimiter)
        while self.at < len(self.text) and self.text[self.at] not in _ENDING:
            flag = self._next()
            if flag == "w":
                self.files.append(self._line())
                return
            if flag == "e":
                self.scripts.append(GAP)


def _sed(text: str) -> Effects:
    reader = _Sed(text)
    reader.read()
    return Effects(tuple(reader.scripts), tuple(reader.files))


class _Token(NamedTuple):
    kind: str
    text: str


def _tokens(text: str) -> Iterator[_Token]:
    """The tokens of an awk program, without blanks and comments."""
    at, divides = 0, False
    while at < len(text):
        begins_regex = text[at] == "/" and not divides
        regex = _REGEX.match(text, at) if begins_regex else None
        if begins_regex and regex is None:
            yield _Token("unclear", "")
            return
        found = regex or _TOKEN.match(text, at)
        if found is None:
            at += 1
            continue
        at = found.end()
        kind = "regex" if regex is not None else str(found.lastgroup)
        if kind != "blank":
            divides = kind in ("name", "number", "string") or found[0] in _BEFORE_DIVISION
            yield _Token(kind, found["string"] if kind == "string" else found[0])


def _awk(text: str) -> Effects:
    """The commands of `system` and of pipes in both directions, and the output files."""
    tokens = list(_tokens(text))
    scripts, files = [], []
    if tokens and tokens[-1].kind == "unclear":  # the following token may stand in a regular expression, or not
        scripts.append(GAP)
    for at, token in enumerate(tokens):
        before = tokens[at - 1] if at else _Token("", "")
        if token.text == "system" and token.kind == "name":
            scripts.append(_joined(tokens, at + 2, ")"))
        elif token.kind == "sign" and token.text in ("|", "|&"):
            reads = tokens[at + 1 : at + 2] == [_Token("name", "getline")]
            scripts.append(_before(tokens, at) if reads else _joined(tokens, at + 1, "}"))
        elif token.kind == "string" and before.kind == "sign" and before.text in (">", ">>"):
            files.append(_joined(tokens, at, "}"))
    return Effects(tuple(scripts), tuple(files))


def _joined(tokens: Sequence[_Token], at: int, end: str) -> str:
    """The text of consecutive strings, up to the end of the expression."""
    text = ""
    for token in tokens[at:]:
        if token.kind == "sign" and token.text in (end, ";", "\n", "}", "|"):
            break
        text += _plain(token.text) if token.kind == "string" else GAP
    return text or GAP


def _before(tokens: Sequence[_Token], at: int) -> str:
    """The text of the strings before a position."""
    begin = at
    while begin and not (tokens[begin - 1].kind == "sign" and tokens[begin - 1].text in "(){};\n=!&|,"):
        begin -= 1
    return _joined(tokens[begin:at], 0, "") if begin < at else GAP


def _plain(text: str) -> str:
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[0]), text)
