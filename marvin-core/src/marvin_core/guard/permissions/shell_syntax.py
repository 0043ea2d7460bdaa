"""A shell script as its simple commands: quotes, substitutions, redirections and here-documents taken apart."""

from __future__ import annotations

import re

_OPERATOR = re.compile(
    r"""(?P<redirect> &>>? | \d*(?: <<< | <<-? | <& | <> | >> | >\| | >& | <(?!\() | >(?!\() ) )
      | (?P<separator> \n | ;;&? | ;& | ; | && | \|\| | \|& | \| | & | [()] )""",
    re.VERBOSE,
)
_ENDS_WORD = frozenset(" \t\r\n;&|()<>")


class SimpleCommand:
    """One simple command.

    `separator` holds the operators in front of it. `redirects` are its (operator, target)s,
    `substitutions` the scripts inside its `$(...)`, backticks and `<(...)`, `inputs` the texts of its
    here-documents and here-strings.
    """

    def __init__(self, separator: str) -> None:
        self.separator = separator
        self.words: list[str] = []
        self.redirects: list[tuple[str, str]] = []
        self.substitutions: list[str] = []
        self.inputs: list[str] = []

    @property
    def is_empty(self) -> bool:
        """Whether nothing has come."""
        return not (self.words or self.redirects or self.substitutions)


def read_script(text: str) -> list[SimpleCommand]:
    """The simple commands of a script, in order. What is left open at its end counts as closed there."""
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._command = SimpleCommand("")
        self._commands: list[SimpleCommand] = []
        self._line: list[SimpleCommand] = []
        self._awaited: list[tuple[str, bool]] = []

    def read(self) -> list[SimpleCommand]:
        text = self._text
        while self._at < len(text):
            operator = _OPERATOR.match(text, self._at)
            if operator is not None:
                self._at = operator.end()
                if operator.lastgroup == "redirect":
                    self._redirect(operator.group())
                else:
                    self._separate(operator.group())
            elif text[self._at] in " \t\r":
                self._at += 1
            elif text.startswith("\\\n", self._at):
                self._at += 2
            elif text[self._at] == "#":
                self._at = self._find("\n")
            else:
                self._command.words.append(self._word())
        self._separate("\n")
        return self._commands

    def _find(self, end: str) -> int:
        found = self._text.find(end, self._at)
        return len(self._text) if found < 0 else found

    def _separate(self, operator: str) -> None:
        if self._command.is_empty:
            separator = self._command.separator + operator
        else:
            self._commands.append(self._command)
            self._line.append(self._command)
            separator = operator
        if operator == "\n":
            self._here_documents()
            self._line = []
        self._command = SimpleCommand(separator)

    def _redirect(self, operator: str) -> None:
        while self._text[self._at : self._at + 1] in (" ", "\t"):
            self._at += 1
        begin = self._at
        target = self._word()
        plain = operator.lstrip("0123456789")
        if plain == "<<<":
            self._command.inputs.append(target)
        elif plain in ("<<", "<<-"):
            quoted = self._text[begin : self._at] != target
            self._awaited.append((target, quoted))
        self._command.redirects.append((plain, target))

    def _here_documents(self) -> None:
        """Take the here-documents of the line that has just ended; any shell of that line may run them."""
        for delimiter, quoted in self._awaited:
            lines: list[str] = []
            while self._at < len(self._text):
                end = self._find("\n")
                line, self._at = self._text[self._at : end], end + 1
                if line.strip("\t") == delimiter:
                    break
                lines.append(line)
            body = "\n".join(lines)
            for command in self._line:
                command.inputs.append(body)
            if not quoted and self._line:
                inner = _Reader(body)
                inner._quoted("\0")
                self._line[0].substitutions += inner._command.substitutions
        self._awaited = []

    def _word(self) -> str:
        pieces: list[str] = []
        text = self._text
        while self._at < len(text):
            char = text[self._at]
            if char == "\\":
                escaped = text[self._at + 1 : self._at + 2]
                pieces.append(escaped if escaped != "\n" else "")
                self._at += 2
            elif char == "'":
                self._at += 1
                end = self._find("'")
                pieces.append(text[self._at : end])
                self._at = end + 1
            elif char == '"':
                self._at += 1
                pieces.append(self._quoted('"'))
            elif char == "`" or text.startswith(("$(", "<(", ">(", "${"), self._at):
                pieces.append(self._expansion())
            elif char in _ENDS_WORD:
                break
            else:
                pieces.append(char)
                self._at += 1
        return "".join(pieces)

    def _quoted(self, end: str) -> str:
        """What stands between double quotes."""
        pieces: list[str] = []
        text = self._text
        while self._at < len(text) and text[self._at] != end:
            char = text[self._at]
            if char == "\\":
                escaped = text[self._at + 1 : self._at + 2]
                pieces.append(
                    "" if escaped == "\n" else escaped if escaped in ("$", "`", '"', "\\") else char + escaped
                )
                self._at += 2
            elif char == "`" or text.startswith(("$(", "${"), self._at):
                pieces.append(self._expansion())
            else:
                pieces.append(char)
                self._at += 1
        self._at += 1
        return "".join(pieces)

    def _expansion(self) -> str:
        """A substitution or a `${...}` as it is written; the script inside of a substitution is noted."""
        begin = self._at
        if self._text[begin] == "`":
            self._at += 1
            end = self._find("`")
            self._command.substitutions.append(self._text[begin + 1 : end])
        elif self._text.startswith("${", begin):
            end = self._find("}")
        else:
            end = self._closing(begin + 2)
            self._command.substitutions.append(self._text[begin + 2 : end])
        self._at = end + 1
        return self._text[begin : self._at]

    def _closing(self, at: int) -> int:
        """Where the bracket closes that was opened before this place."""
        depth, quote = 1, ""
        while at < len(self._text):
            char = self._text[at]
            if char == "\\" and quote != "'":
                at += 1
            elif quote:
                quote = "" if char == quote else quote
            elif char in "'\"":
                quote = char
            elif char in "()":
                depth += 1 if char == "(" else -1
                if not depth:
                    break
            at += 1
        return min(at, len(self._text))
