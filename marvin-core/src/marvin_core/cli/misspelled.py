"""Rejects a single word that resembles a sub-command: otherwise it would be sent as a prompt, which costs money."""

from __future__ import annotations

import shlex
from collections.abc import Container, Iterable, Sequence
from typing import Any

from ..api.errors import UsageError
from ..config.flags import parse
from ..config.program import command_name
from ..util.text import is_misspelled

_FLAGS = {"help": "--help", "version": "--version"}
"""Words that users may type instead of a flag."""


def refuse(argv: Sequence[str], index: int, names: Iterable[str]) -> None:
    """Raise `UsageError` if the first positional argument is probably a misspelled name, not the start of a prompt.

    It is not a prompt if it is the only word, or if the next word is a sub-command of that name, as in
    `provider list`. A text after --prompt or `--` is always a prompt.
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
    """The sub-commands of one of the core's sub-commands."""
    import typer  # slow to import, and not needed for a prompt

    from .commands import all as subcommands

    application = typer.Typer()
    subcommands.extend(application)
    root: Any = typer.main.get_command(application)
    below: Container[str] = getattr(root.commands.get(name), "commands", ())
    return below


def nearest(word: str, names: Iterable[str]) -> str:
    """The name that a word misspells, or the flag that it stands for; empty if there is none."""
    word = word.casefold()
    known = {**{name: name for name in sorted(names)}, **_FLAGS}
    return next((meant for name, meant in known.items() if _is_meant(word, name)), "")


def _is_meant(word: str, name: str) -> bool:
    """Whether a word is a misspelling of a name: for `providers`, `provider` is one, but the verb `provide` is not."""
    singular = name.removesuffix("s")
    return is_misspelled(word, name) or (is_misspelled(word, singular) and (word == singular or word not in singular))
