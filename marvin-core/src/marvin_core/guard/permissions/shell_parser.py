"""Syntax trees of shell text from shfmt, which runs as a child process with limits."""

from __future__ import annotations

import json
import os
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ...util.patterns.texts import MARKS
from ..search_path import lies_in, without_projects

if TYPE_CHECKING:
    from ...api.limits import Limits
    from ...api.timeouts import Timeouts

Node: TypeAlias = "dict[str, Any]"

# A control character that a shell treats as part of a word, and shfmt does not: a `\` before a carriage return does not
# continue the line.
_BASH_KINDS = frozenset("ArithmCmd TestClause ProcSubst ExtGlob LetClause CoprocClause".split())
_BASH_OPERATORS = frozenset(["&>", "&>>", "|&", "<<<", "<>"])
_ELEMENT = re.compile(
    r"(?:^|[;&|\n({]|\b(?:coproc|then|do|else|time) )[ \t]*\w+(\[\w+\])\+?=[^\s;&|()'\"$`<>]*[ \t]+[^\s;&|)#]", re.M
)
_MOST_ELEMENTS = 8
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]|[\ud800-\udfff]")
_NESTING = re.compile(r"[|&(`{]")
_WORD = re.compile(r"[^\s;]+")
_END = re.compile(r"[;\n]+")
_QUOTED = re.compile(r"'[^']*'")
_SIGN = re.compile(r"[$'\"\\]")
_HERE_DOCUMENT = re.compile(r"""<<-?[ \t]*(['"]?)(\w+)\1""")


class NotUnderstood(Exception):
    """A text cannot be parsed reliably; the message is the end of a sentence that says why."""


class TooDeep(NotUnderstood):
    """Commands run other commands, nested deeper than the analysis goes."""


@cache
def program() -> str:
    """The path of shfmt: beside this Python, where its package installs it, else on PATH; "" if it is missing.

    A shfmt in the current folder or in an environment of a project is ignored: commands could have put it there.
    """
    from shutil import which

    beside = Path(sys.executable).parent / "shfmt"
    if os.access(beside, os.X_OK):
        return str(beside)
    found = os.path.abspath(which("shfmt") or "")
    here = frozenset([os.path.realpath(os.curdir)])
    is_safe = without_projects(os.path.dirname(found), here) and not lies_in(found, here)
    return found if is_safe and os.path.isfile(found) else ""


def parse(text: str, limits: Limits, timeouts: Timeouts) -> Node:
    """The syntax tree of a text, as shfmt's `--to-json` gives it. Blocks while the child runs.

    Raises:
        NotUnderstood: the text is not valid bash, or too long or too deeply nested to be parsed in time.
    """
    check(text, limits)
    if _is_large(text, limits):
        raise NotUnderstood("it has too many parts")
    if not program():
        raise NotUnderstood("the program shfmt, which parses commands, is not installed (pip install shfmt-py)")
    for _ in range(_MOST_ELEMENTS):
        element = _ELEMENT.search(text)
        if element is None:
            break
        # bash accepts an element of an array that is assigned before a command; shfmt does not.
        text = f"{text[: element.start(1)]}_{text[element.start(1) + 1 : element.end(1) - 1]}_{text[element.end(1) :]}"
    try:
        tree = json.loads(_output(text, limits, timeouts))
    except OSError as error:
        raise NotUnderstood(f"shfmt, which parses commands, cannot be started: {error.strerror}") from error
    except ValueError:
        tree = None
    if not isinstance(tree, dict):
        raise NotUnderstood("shfmt returned no syntax tree")
    return tree


def _is_large(text: str, limits: Limits) -> bool:
    """Whether the tree would be too large to wait for; quoted texts do not count."""
    outline = _QUOTED.sub("'", _without_here_documents(text))
    return (
        len(_NESTING.findall(outline)) > limits.command_operators
        or len(_END.findall(outline)) > limits.command_parts
        or len(_WORD.findall(outline)) > limits.command_words
        or len(_SIGN.findall(outline)) > limits.command_words
    )


def _without_here_documents(text: str) -> str:
    """A text without the lines of its here-documents, as far as those are easy to find."""
    if "<<" not in text:
        return text
    lines = text.split("\n")
    last = {line.lstrip("\t"): at for at, line in enumerate(lines)}
    kept: list[str] = []
    end = ""
    for at, line in enumerate(lines):
        if end:
            end = "" if line.lstrip("\t") == end else end
            continue
        kept.append(line)
        found = _HERE_DOCUMENT.search(line)
        if found is not None and last.get(found[2], 0) > at:
            end = found[2]
    return "\n".join(kept)


def only_posix(node: Any) -> None:
    """Reject text that shells other than bash parse differently: `((a))` is two subshells to them.

    Raises:
        NotUnderstood: for such a part.
    """
    if isinstance(node, list):
        for inner in node:
            only_posix(inner)
    elif isinstance(node, dict):
        kind = node.get("Type")
        is_bash = kind in _BASH_KINDS or node.get("Op") in _BASH_OPERATORS
        if is_bash or (node.get("Dollar") is True) or node.get("Bracket") or node.get("Array") or node.get("RsrvWord"):
            raise NotUnderstood("it uses bash syntax, but another shell runs it")
        for inner in node.values():
            if isinstance(inner, (dict, list)):
                only_posix(inner)


def check(text: str, limits: Limits) -> None:
    """Reject a text that is too long to be judged, or that does not mean what it appears to mean.

    Raises:
        NotUnderstood: for such a text.
    """
    if len(text) > limits.command or len(text.encode("utf-8", "replace")) > limits.command:
        raise NotUnderstood(f"it is longer than {limits.command:,} bytes")
    if _CONTROL.search(text) or MARKS.search(text):
        raise NotUnderstood("it contains control characters")


def _output(text: str, limits: Limits, timeouts: Timeouts) -> bytes:
    import subprocess  # most commands need none of it

    # Go's collector starts slowly; the hard limit below bounds the memory.
    env = {"GOMEMLIMIT": str(limits.command_memory // 2), "GOMAXPROCS": "1"}
    with subprocess.Popen(
        [program(), "-ln=bash", "--to-json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
        env=env,
    ) as child:
        _limit(child.pid, limits.command_memory)
        try:
            output, errors = child.communicate(text.encode(), timeout=timeouts.command_parse)
        except subprocess.TimeoutExpired:
            child.kill()
            raise NotUnderstood("parsing it takes too long") from None
    if child.returncode:
        told = errors.decode("utf-8", "replace").strip().splitlines()
        why = re.sub(r"^<standard input>:", "", told[0]) if told and child.returncode == 1 else ""
        raise NotUnderstood(f"it cannot be parsed ({why or 'shfmt failed'})")
    if len(output) > limits.command_tree:
        raise NotUnderstood("it has too many parts")
    return output


def _limit(pid: int, memory: int) -> None:
    """Limit the resources of the child, if the system can do that from outside."""
    try:
        from resource import RLIMIT_CPU, RLIMIT_DATA, prlimit
    except ImportError:  # not on macOS: there only the limits on the text apply
        return
    try:
        prlimit(pid, RLIMIT_DATA, (memory, memory))
        prlimit(pid, RLIMIT_CPU, (1, 2))
    except OSError:
        return  # it has already ended
