"""A lone word that is almost a sub-command is refused: as a prompt it would be sent, and paid for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..api.errors import UsageError
from ..config.flags import parse
from ..config.program import command_name
from ..util.text import is_misspelled

_FLAGS = {"help": "--help", "version": "--version"}
"""Words that people try in the place of a flag."""


def refuse(argv: Sequence[str], index: int, names: Iterable[str]) -> None:
    """Raise `UsageError` where the first bare word is the only one and may be meant for one of the names.

    What was given as --prompt or after `--` is a prompt, whatever it says.
    """
    near = nearest(argv[index], names)
    if not near or parse(argv).words != [argv[index]]:
        return
    command = command_name()
    flags = [word for number, word in enumerate(argv) if number != index]
    raise UsageError(
        f"There is no sub-command {argv[index]!r}, and nothing was sent. Did you mean `{command} {near}`? "
        f"To send the word as a prompt, write: {' '.join([command, *flags, '--prompt', argv[index]])}"
    )


def nearest(word: str, names: Iterable[str]) -> str:
    """The name that a word is misspelled from, or the flag that it stands for; empty where it is another word."""
    word = word.casefold()
    known = {**{name: name for name in sorted(names)}, **_FLAGS}
    return next((meant for name, meant in known.items() if _is_meant(word, name)), "")


def _is_meant(word: str, name: str) -> bool:
    """Whether a word may be meant for a name. Of `providers`, `provider` may, and `provide` is a word of its own."""
    singular = name.removesuffix("s")
    return is_misspelled(word, name) or (is_misspelled(word, singular) and (word == singular or word not in singular))
