"""Shell commands taken apart, as far as judging them needs; a shell can always hide more than this sees."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

_SEPARATORS = frozenset(";&|()\n")
_PREFIXES = frozenset(["sudo", "env", "nohup", "time", "command", "exec", "xargs", "nice", "then", "do", "else", "{"])
_SHELLS = frozenset(["sh", "bash", "zsh", "dash", "ksh", "fish"])
_DOWNLOADERS = frozenset(["curl", "wget", "fetch"])
_INTERPRETERS = _SHELLS | frozenset(["python", "python3", "perl", "ruby", "node"])
_SAFE_DEVICES = frozenset(["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/full"])
_SUBSTITUTION = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")


def parts(command: str) -> list[str]:
    """The simple commands of a compound one, each as one line: what stands between ; && || | & and newlines.

    The contents of `$(...)`, backticks and `sh -c '...'` are parts of their own.
    """
    found: list[str] = []
    for words, _ in _commands(command):
        found.append(" ".join(words))
        inner = _inner_script(words)
        if inner is not None:
            found.extend(parts(inner))
    for match in _SUBSTITUTION.finditer(command):
        found.extend(parts(match.group(1) or match.group(2) or ""))
    return list(dict.fromkeys(found))


def danger(command: str, root: Path) -> str | None:
    """What a command would do that must not happen without a person's yes, as the end of a sentence."""
    previous_downloads = False
    for words, separator in _commands(command):
        name = os.path.basename(words[0])
        if separator == "|" and previous_downloads and name in _INTERPRETERS:
            return "runs what it downloads"
        previous_downloads = name in _DOWNLOADERS or (separator == "|" and previous_downloads)
        found = _danger_of(name, words, root)
        if found:
            return found
        inner = _inner_script(words)
        if inner is not None and (found := danger(inner, root)):
            return found
    for match in _SUBSTITUTION.finditer(command):
        if found := danger(match.group(1) or match.group(2) or "", root):
            return found
    return None


def _danger_of(name: str, words: list[str], root: Path) -> str | None:
    if (
        name == "rm"
        and _has_flag(words, "rR", "--recursive")
        and any(_spares_nothing(w, root) for w in _operands(words))
    ):
        return "removes the working directory, or a folder outside of it"
    if (
        name == "git"
        and "push" in words
        and (_has_flag(words, "f", "--force") or any(w.startswith("+") for w in words[1:]))
    ):
        return "force-pushes"
    for index, word in enumerate(words):
        target = words[index + 1] if word in (">", ">>", ">|") and index + 1 < len(words) else ""
        target = target or word.removeprefix("of=") if name == "dd" and word.startswith("of=") else target
        if target.startswith("/dev/") and target not in _SAFE_DEVICES and not target.startswith("/dev/fd/"):
            return f"writes to the device {target}"
    if name.startswith("mkfs") or (name in ("wipefs", "shred") and any(w.startswith("/dev/") for w in words)):
        return "writes to a device"
    return None


def _commands(command: str) -> list[tuple[list[str], str]]:
    """The words of each simple command, and the separator in front of it."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=";&|()<>\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    found: list[tuple[list[str], str]] = []
    words: list[str] = []
    separator = ""
    try:
        for token in lexer:
            if token and _SEPARATORS.issuperset(token):
                if words:
                    found.append((words, separator))
                words, separator = [], token.strip() or "\n"
            else:
                words.append(token)
    except ValueError:  # an open quote: judge the raw words
        words = command.split()
    if words:
        found.append((words, separator))
    stripped = [(_without_prefixes(words), separator) for words, separator in found]
    return [(words, separator) for words, separator in stripped if words]


def _without_prefixes(words: list[str]) -> list[str]:
    index = 0
    while index < len(words) and (
        os.path.basename(words[index]) in _PREFIXES
        or re.match(r"\w+=", words[index])
        or (index and words[index][0] == "-")
    ):
        index += 1
    return words[index:] if index < len(words) else []


def _inner_script(words: list[str]) -> str | None:
    if os.path.basename(words[0]) in _SHELLS:
        for index, word in enumerate(words[1:-1], 1):
            if word.startswith("-") and not word.startswith("--") and word.endswith("c"):
                return words[index + 1]
    return " ".join(words[1:]) if words[0] == "eval" else None


def _has_flag(words: list[str], letters: str, long: str) -> bool:
    return any(
        word == long
        or word.startswith(f"{long}=")
        or (word.startswith("-") and not word.startswith("--") and any(letter in word for letter in letters))
        for word in words[1:]
    )


def _operands(words: list[str]) -> list[str]:
    return [word for word in words[1:] if not word.startswith("-")]


def _spares_nothing(operand: str, root: Path) -> bool:
    """Whether removing the operand takes the root with it, or something outside of the root."""
    text = os.path.expanduser(operand.replace("$HOME", "~").replace("${HOME}", "~"))
    text = text.replace("$PWD", str(root)).replace("${PWD}", str(root))
    if text in ("*", "./*", ".*", "./.*"):
        return True
    path = Path(os.path.normpath(root / text.rstrip("*").rstrip("/"))) if text != "/" else Path("/")
    if text.startswith("/") and not text.strip("/*"):
        return True
    return path == root or root not in path.parents
