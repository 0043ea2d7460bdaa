"""Analyses a shell command: its commands, including those of scripts and wrappers, and their effects."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from ...api.limits import Limits
from ...api.timeouts import Timeouts
from ...util.patterns.texts import FIRM, GAP
from .dangers import DOWNLOADERS, devices
from .readings import Input, Level, Reading
from .shell_commands import CommandReader
from .shell_parser import Node, NotUnderstood, TooDeep, check, only_posix, parse
from .shell_words import Word, WordReader

_HARMLESS_REDIRECTS = re.compile(r"[<>&|]+ ?(/dev/null)|[<>]& ?(\d+-?|-)")
_LITERAL = re.compile(r"""[\w./@%+,:-][\w./@%+,:=-]*(?: +(?:[\w./@%+,:=-]+|'[^']*'|"[^"$`\\!]*"))*""", re.ASCII)
_DESCRIPTOR = re.compile(r"\d+|\{\w+\}")
_PIECES = re.compile(r"""'[^']*'|"[^"]*"|[^ ]+""")
_RESERVED = frozenset(
    "case coproc do done elif else esac fi for function if in select then time until while".split()
    + "declare typeset local export readonly nameref let".split()
)
_DATA_NAME = re.compile(r"[a-z_][a-z0-9_]*(?<!_proxy)")


def simple_words(text: str) -> list[str] | None:
    """The words of a text that is certainly one command of literal words; None if it needs the parser."""
    text = text.strip(" ")
    if not _LITERAL.fullmatch(text):
        return None
    words = [piece[1:-1] if piece[0] in "'\"" else piece for piece in _PIECES.findall(text)]
    return None if "=" in words[0] or words[0] in _RESERVED else words


def read_command(text: str, root: Path, home: Path, limits: Limits, timeouts: Timeouts, folder: str = "") -> Reading:
    """Analyse a command. Blocks while a parser runs as a child process, unless the command is plain.

    Args:
        folder: the folder in which it starts, relative to the root or absolute; by default the root.
    """
    reader = _Reader(root, home, limits, timeouts)
    reader.begin_in(folder)
    reader.script(text)
    return reader.reading


class _Reader(CommandReader):
    def __init__(self, root: Path, home: Path, limits: Limits, timeouts: Timeouts) -> None:
        super().__init__(root, home, limits)
        self._timeouts = timeouts
        self._source = b""
        self._targets: list[str] = []
        self._words = WordReader(self._substituted, self._evaluated, self._variable)
        self._plain = WordReader(lambda _: False, lambda *_: None)

    # --- scripts and statements --------------------------------------------------------------------------------------

    def script(self, text: str, level: Level = "unparsed") -> None:
        """Read a text as a shell does; `level` decides what the text means if that is not possible."""
        try:
            check(text, self._limits)
            words = simple_words(text)
            if words is not None:
                self._command([Word(word) for word in words], text)
            elif text.strip():
                self._parsed(text)
        except NotUnderstood as problem:
            self._note("deep" if isinstance(problem, TooDeep) else level, str(problem))
        except (KeyError, TypeError):
            self._note(level, "the installed shfmt returns a syntax tree of an unknown form")
        except RecursionError:
            self._note("deep", "it is nested too deep")

    def _parsed(self, text: str) -> None:
        self._scripts += 1
        if self._scripts > self._limits.command_scripts:
            raise NotUnderstood("it contains too many scripts")
        tree = parse(text, self._limits, self._timeouts)
        if self._posix:
            try:
                only_posix(tree)
            except NotUnderstood as problem:  # the parts that can be read count as well
                self._note("unparsed", str(problem))
        before, self._source = self._source, text.encode()
        try:
            self._statements(tree.get("Stmts") or [])
        finally:
            self._source = before

    def _statements(self, statements: Sequence[Node]) -> None:
        for statement in statements:
            before = self._places
            self._statement(statement)
            self._may_be_in(before)  # a `cd` may have failed

    def _substituted(self, node: Node) -> bool:
        downloads = self._downloads
        if node.get("Backquotes") and "\\`" in self._text_of(node):
            self._note("hidden", "shells differ in how they parse nested backquotes")
        found = self._input
        self._is_fed |= node.get("Op") in ("<(", ">(")
        if node.get("Op") == ">(":
            loads = any(name in DOWNLOADERS for name in re.findall(r"\w+", self._source.decode("utf-8", "replace")))
            found = Input("unknown", downloads=loads, is_piped=True)
        with self._within(input=found):
            self._statements(node.get("Stmts") or [])
        return self._downloads > downloads

    def _evaluated(self, word: Word, computed: bool) -> None:
        self._indexed([word])
        if computed:
            self._computing(computed=[word.text])

    def _statement(self, statement: Node) -> None:
        text = self._text_of(statement)
        redirects = statement.get("Redirs") or []
        command = statement.get("Cmd")
        if set(statement) - {
            "Cmd",
            "Pos",
            "End",
            "Position",
            "Semicolon",
            "Negated",
            "Background",
            "Redirs",
            "Comments",
        }:
            raise NotUnderstood("it has a statement of an unknown kind")
        places, before = self._places, self._input
        self._targets = []
        added = "".join(self._redirected(node, text) for node in redirects)
        if self._targets and command is not None:
            self._writes(command)
        if command is None or command["Type"] == "CallExpr":
            self._call(command or {}, text, added)
        else:
            if added and command["Type"] not in ("DeclClause", "LetClause"):
                self._part([Word(GAP)], text, added, named=False)
            self._compound(command, text, added)
        if command is None or not self._is_exec(command):
            self._input = before
        if statement.get("Background"):
            self._places = places

    def _is_exec(self, command: Node) -> bool:
        """Whether it redirects the current shell."""
        arguments = command.get("Args") or []
        return len(arguments) == 1 and self._plain.word(arguments[0]).text == "exec"

    def _text_of(self, node: Node) -> str:
        begin, end = node["Pos"]["Offset"], node["End"]["Offset"]
        return self._source[begin:end].decode("utf-8", "replace")

    # --- redirections and assignments --------------------------------------------------------------------------------

    def _redirected(self, node: Node, text: str = "") -> str:
        """Follow a redirection of a command. Returns it as the rules see it, empty if it needs no rule."""
        operator = node["Op"]
        self._is_fed |= operator.startswith("<<")
        if operator in ("<<", "<<-"):
            self._here_document(node)
            return f" {FIRM['<']}{FIRM['<']}"
        target = self._words.word(node.get("Word"))
        if operator == "<<<":
            self._input = Input("text", target.text, target.downloads)
            return f" {FIRM['<']}{FIRM['<']}{FIRM['<']} {target.text}"
        harmless = _HARMLESS_REDIRECTS.fullmatch(f"{operator} {target.text}") is not None
        if operator in ("<", "<&"):
            self._input = Input() if target.text == "/dev/null" else Input("unknown", downloads=target.downloads)
        elif not harmless:
            self._danger(devices([target.text], self._around()), text or target.text)
            self._targets.append(target.text)
        return "" if harmless else f" {''.join(FIRM[sign] for sign in operator)} {target.text}"

    def _writes(self, command: Node) -> None:
        """Record the output of a command's redirections, if that is known."""
        text = None
        if command["Type"] == "CallExpr" and not command.get("Assigns"):
            words = [word.text for word in self._plain.words(command.get("Args") or [])]
            text = self._input.text if words == ["cat"] and self._input.kind == "text" else _printed(words)
        for target in self._targets:
            name = os.path.basename(target)
            self._made[name] = None if name in self._made else text

    def _here_document(self, node: Node) -> None:
        delimiter = (node.get("Word") or {}).get("Parts") or []
        body = node.get("Hdoc")
        quoted = any(part.get("Type") != "Lit" or "\\" in part.get("Value", "") for part in delimiter)
        if body is None:
            self._input = Input("text")
        elif quoted:
            parts = body.get("Parts") or []
            plain = all(part.get("Type") == "Lit" for part in parts)
            text = "".join(part.get("Value", "") for part in parts) if plain else self._text_of(body)
            self._input = Input("text", text)
        else:
            word = self._words.word({"Parts": [{"Type": "DblQuoted", "Parts": body.get("Parts") or []}]})
            self._input = Input("text", word.text, word.downloads)

    def _assigned(self, nodes: Sequence[Node]) -> str:
        """Follow assignments. Returns them as the rules see them."""
        return "".join(self._assignment(node) for node in nodes)

    def _assignment(self, node: Node) -> str:
        name = (node.get("Name") or {}).get("Value", "")
        self._words.visit(node.get("Index"))
        if node.get("Array") is not None:
            for element in node["Array"].get("Elems") or []:
                self._words.visit(element.get("Index"))
                self._variable(name, self._words.word(element.get("Value")))
            value = GAP
        else:
            word = self._words.word(node.get("Value"))
            value = word.text
            self._variable(name, word)
        self._words.reassigned.add(name)
        return f"{name}{FIRM['=']}{value} "

    # --- commands of the grammar -------------------------------------------------------------------------------------

    def _call(self, command: Node, text: str, added: str) -> None:
        prefix = self._assigned(command.get("Assigns") or [])
        words = self._words.words(command.get("Args") or [])
        if words:
            self._command(words, text, prefix, added)
        elif prefix or added:
            self._part([Word(prefix)], text, added, named=False)

    def _compound(self, command: Node, text: str, added: str) -> None:
        kind = command["Type"]
        if kind == "BinaryCmd":
            self._binary(command)
        elif kind == "Subshell":
            with self._within():
                self._statements(command.get("Stmts") or [])
        elif kind == "Block":
            self._statements(command.get("Stmts") or [])
        elif kind in ("IfClause", "WhileClause"):
            self._branches(command, loop=kind == "WhileClause")
        elif kind == "ForClause":
            self._loop(command, text)
        elif kind == "CaseClause":
            self._case(command)
        elif kind == "FuncDecl":
            self._function(command)
        elif kind == "TimeClause":
            self._statements([command["Stmt"]] if command.get("Stmt") else [])
        elif kind == "CoprocClause":
            with self._within(input=Input("unknown", is_piped=True)):
                self._words.visit(command.get("Name"))
                self._statement(_without_descriptor(command["Stmt"]))
        elif kind in ("DeclClause", "LetClause"):
            self._declaration(command, text, added)
        elif kind in ("ArithmCmd", "TestClause"):
            self._words.visit(command["X"])
        else:
            raise NotUnderstood(f"it has a part of the kind {kind}")

    def _binary(self, command: Node) -> None:
        left, right, operator = command["X"], command["Y"], command["Op"]
        if operator in ("|", "|&"):
            downloads, before = self._downloads, self._input
            with self._within():
                self._statement(left)
            self._is_fed = True
            text = self._output_of(left)
            loads = self._downloads > downloads or before.downloads
            with self._within(input=Input("unknown" if text is None else "text", text or "", loads, is_piped=True)):
                self._statement(right)
            return
        before_places = self._places
        self._statement(left)
        if operator != "&&":
            self._may_be_in(before_places)
        self._statement(right)

    def _output_of(self, statement: Node) -> str | None:
        """The output of a statement, if that is known."""
        command = statement.get("Cmd") or {}
        if command.get("Type") == "BinaryCmd" and command["Op"] == "|":
            inner_text = self._output_of(command["X"])
            return self._output_of(command["Y"]) if inner_text is None else None
        redirects = statement.get("Redirs") or []
        if command.get("Type") != "CallExpr" or command.get("Assigns"):
            return None
        if any(node["Op"] not in ("<<", "<<-", "<<<") for node in redirects):
            return None
        words = [word.text for word in self._plain.words(command.get("Args") or [])]
        if words == ["cat"] and redirects:
            with self._within():
                self._redirected(redirects[-1])
                return self._input.text
        return _printed(words)

    def _branches(self, command: Node, *, loop: bool) -> None:
        before = self._places
        self._statements(command.get("Cond") or [])
        self._body(command.get("Then") or command.get("Do") or [], loop=loop)
        if command.get("Else"):
            after, self._places = self._places, before
            self._branches(command["Else"], loop=False)
            self._may_be_in(after)
        self._may_be_in(before)

    def _body(self, statements: Sequence[Node], *, loop: bool) -> None:
        before = self._places
        self._statements(statements)
        if loop and self._places != before:  # the next iteration begins where this one ended
            self._may_be_in(frozenset([None]))
            self._statements(statements)

    def _loop(self, command: Node, text: str) -> None:
        loop = command["Loop"]
        if loop["Type"] == "WordIter":
            name = (loop.get("Name") or {}).get("Value", "")
            for word in self._words.words(loop.get("Items") or []):
                self._variable(name, word)
            self._words.reassigned.add(name)
            if not _DATA_NAME.fullmatch(name):
                self._part([Word(f"{name}{FIRM['=']}{GAP}")], text, "", named=False)
        else:
            self._words.visit(loop)
        before = self._places
        self._body(command.get("Do") or [], loop=True)
        self._may_be_in(before)

    def _case(self, command: Node) -> None:
        self._words.word(command.get("Word"))
        before = self._places
        for item in command.get("Items") or []:
            for pattern in item.get("Patterns") or []:
                self._words.word(pattern)
            after, self._places = self._places, before
            self._statements(item.get("Stmts") or [])
            self._may_be_in(after)

    def _function(self, command: Node) -> None:
        name = (command.get("Name") or {}).get("Value", "")
        self._functions[name] = command["Body"]
        with self._within():
            self._statement(command["Body"])

    def _declaration(self, command: Node, text: str, added: str) -> None:
        words = [Word(command["Variant"]["Value"] if command["Type"] == "DeclClause" else "let")]
        for node in command.get("Args") or []:
            if node.get("Naked") and node.get("Value") is not None:
                words += self._words.words([node["Value"]])
            else:
                line = self._assignment(node)
                words.append(Word(line.rstrip(" ").replace(FIRM["="], "=")))
        for node in command.get("Exprs") or []:
            self._words.visit(node)
            words.append(Word(GAP))
        self._command(words, text, added=added)


def _without_descriptor(statement: Node) -> Node:
    """The command of `coproc` as bash parses it; shfmt takes the descriptor of a leading redirection for it."""
    command = statement.get("Cmd") or {}
    arguments = command.get("Args") or []
    begins = [node["Pos"]["Offset"] for node in statement.get("Redirs") or []]
    if len(arguments) < 2 or arguments[0]["End"]["Offset"] not in begins:
        return statement
    parts = arguments[0].get("Parts") or []
    if len(parts) != 1 or not _DESCRIPTOR.fullmatch(parts[0].get("Value", "")):
        return statement
    return {**statement, "Cmd": {**command, "Args": arguments[1:]}}


def _printed(words: Sequence[str]) -> str | None:
    """The output of echo or printf, if that is known."""
    rest = list(words[1:])
    if words[:1] == ["echo"]:
        if rest[:1] == ["-n"]:
            rest = rest[1:]
        if any("\\" in word for word in rest) or (rest and rest[0].startswith("-")):
            return None
        return " ".join(rest) + "\n"
    if words[:1] == ["printf"] and rest:
        if rest[0] in ("%s", "%s\\n") and len(rest) == 2:
            return rest[1]
        if len(rest) == 1 and not set(rest[0]) & set("%\\"):
            return rest[0]
    return None
