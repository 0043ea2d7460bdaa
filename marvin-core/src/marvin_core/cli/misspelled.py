"""A lone word that is almost a sub-command is refused: as a prompt it would be sent, and paid for."""

from __future__ import annotations

import shlex
from collections.abc import Container, Iterable, Sequence
from typing import Any

from ..api.errors import UsageError
from ..config.flags import parse
from ..config.program import command_name
from ..util.text import is_misspelled

_FLAGS = {"help": "--help", "version": "--version"}
"""Words that people try in the place of a flag."""


def refuse(argv: Sequence[str], index: int, names: Iterable[str]) -> None:
    """Raise `UsageError` where the first bare word may be meant for one of the names, and no prompt begins with it.

    None does where it is the only word, or where the next one is a sub-command below that name, as in `provider list`.
    What was given as --prompt or after `--` is a prompt, whatever it says.
    """
    near = nearest(argv[index], names)
    words = parse(argv).words if near else []
    if words[:1] != [argv[index]] or (len(words) > 1 and words[1] not in _below(near)):
        return
    command = command_name()
    flags = [word for word in argv if word not in words]
    raise UsageError(
        f"There is no sub-command {argv[index]!r}, and nothing was sent. "
        f"Did you mean `{' '.join([command, near, *words[1:]])}`? To send what you typed as a prompt, write: "
        f"{' '.join([command, *flags, '--prompt', shlex.quote(' '.join(words))])}"
    )


def _below(name: str) -> Container[str]:
    """The sub-commands below one of the core's."""
    import typer  # slow to import, and needed by nobody who types a prompt

    from .commands import all as subcommands

    application = typer.Typer()
    subcommands.extend(application)
    root: Any = typer.main.get_command(application)
    below: Container[str] = getattr(root.commands.get(name), "commands", ())
    return below


def nearest(word: str, names: Iterable[str]) -> str:
    """The name that a word is misspelled from, or the flag that it stands for; empty where it is another word."""
    word = word.casefold()
    known = {**{name: name for name in sorted(names)}, **_FLAGS}
    return next((meant for name, meant in known.items() if _is_meant(word, name)), "")


def _is_meant(word: str, name: str) -> bool:
    """Whether a word may be meant for a name. Of `providers`, `provider` may, and `provide` is a word of its own."""
    singular = name.removesuffix("s")
    return is_misspelled(word, name) or (is_misspelled(word, singular) and (word == singular or word not in singular))
