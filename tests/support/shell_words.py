"""Words as a shell reads them, spelled in any of the ways that quoting allows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

_PLAIN = re.compile(r"[A-Za-z0-9_./:=,+@%^-]")
_PLACES = ("", "", "", "/usr/bin/", "//usr/bin/./", "/usr/bin/../bin/", "/proc/self/root/usr/bin/")


def spelled(random: Random, words: Sequence[str]) -> str:
    """A command of these words; the first one may get the path where the programs of the system are."""
    name, *rest = words
    blank = random.choice((" ", "  ", "\t", " \\\n"))
    first = quoted(random, random.choice(_PLACES) + name) if random.random() < 0.7 else name
    return blank.join([first, *(quoted(random, word) for word in rest)])


def quoted(random: Random, text: str) -> str:
    """One word that stands for the text."""
    if text and random.random() < 0.3 and all(map(_PLAIN.match, text)):
        return text
    kind = random.randrange(6)
    if kind < 4:
        return (_single, _double, _escaped, _by_backslashes)[kind](random, text)
    at = random.randrange(len(text) + 1)
    return quoted(random, text[:at]) + quoted(random, text[at:]) if text else "''"


def _single(random: Random, text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _double(random: Random, text: str) -> str:
    return random.choice(("", "", "$")) + '"' + re.sub(r'([\\$`"])', r"\\\1", text) + '"'


def _escaped(random: Random, text: str) -> str:
    """The form whose escapes are read as those of C; only what has to be, or little more, is escaped."""
    share = random.choice((0.0, 0.2, 1.0))
    return "$'" + "".join(_escape(random, letter, share) for letter in text) + "'"


def _escape(random: Random, letter: str, share: float) -> str:
    if ord(letter) > 126:
        return letter
    if letter in "\\'" or random.random() < share:
        return random.choice(("\\x{0:02x}", "\\{0:03o}", "\\u{0:04x}", "\\U{0:08x}")).format(ord(letter))
    return letter


def _by_backslashes(random: Random, text: str) -> str:
    escaped = [letter if _PLAIN.match(letter) and random.random() < 0.5 else "\\" + letter for letter in text]
    return "".join(escaped).replace("\\\n", "'\n'") or "''"
