"""The slash commands /undo and /rewind: undo tool calls, and return to an earlier prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...api.errors import UsageError
from ...util.text import counted, local_time, one_line

if TYPE_CHECKING:
    from ...api.controls import UndoEntry
    from ...api.session import SessionControl

_LISTED = 20
_MOST = 100
_SHOWN = 100


async def undo(session: SessionControl, words: str) -> str:
    """Undo the newest calls, or list them."""
    if words in ("list", "--list"):
        return listed(await session.undo.listed(_LISTED), "/undo N")
    return taken(await session.undo.take_back(count_of(words, "/undo, /undo N or /undo list")))


_WAYS = ("both", "files", "conversation")


async def rewind(session: SessionControl, words: str) -> str:
    """Return to the state before a prompt: the files, the conversation, or both."""
    prompts = session.sessions.prompts()
    if not prompts:
        return "There is no prompt to go back to: none was sent since this conversation was started or continued here."
    if not words:
        lines = [f"{number:>3}  {local_time(one.time)}  {one.text}" for number, one in enumerate(prompts, 1)]
        shown = lines[-_LISTED:]
        return "\n".join(
            [
                *shown,
                (
                    "/rewind NUMBER goes back to before a prompt; add `files` or `conversation` to restore only "
                    "one of them."
                ),
            ]
        )
    number, _, way = words.partition(" ")
    way = way.strip() or "both"
    if not (number.isascii() and number.isdecimal() and 1 <= int(number) <= len(prompts)) or way not in _WAYS:
        raise UsageError("Use /rewind, /rewind NUMBER, or /rewind NUMBER files|conversation|both; /rewind lists them.")
    prompt = prompts[int(number) - 1]
    told = []
    if way != "conversation":
        lines = list(await session.undo.take_back_since(prompt.time))
        told += [taken(lines) if lines else "No tool has changed anything since then."]
    if way != "files":
        count = await session.sessions.rewind(prompt)
        told.append(
            f"The conversation was restored to the state before that prompt ({counted(count, 'message')}): "
            f"{prompt.text}"
        )
        told.append("/tree shows the earlier branch.")
    return "\n".join(told)


def count_of(words: str, usage: str) -> int:
    """The number of calls to undo.

    Raises:
        UsageError: if that is not a number, or too large.
    """
    if words and not (words.isascii() and words.isdecimal() and 1 <= int(words) <= _MOST):
        raise UsageError(f"Use {usage}, with N for the number of newest changes to undo, up to {_MOST}.")
    return int(words or 1)


def listed(entries: Sequence[UndoEntry], how: str) -> str:
    """The calls that can be undone, by number, and `how` each is undone."""
    if not entries:
        return "There is nothing to undo in this folder."
    lines = [
        f"{number:>3}  {local_time(entry.time)}  {entry.tool}: {one_line(entry.what, _SHOWN)}"
        for number, entry in enumerate(entries, 1)
    ]
    return "\n".join([*lines, f"{how} undoes the newest N."])


def taken(lines: Sequence[str]) -> str:
    """The report of an undo."""
    if not lines:
        return "There is nothing to undo in this folder."
    return "\n".join(f"Undone: {line}" for line in lines)
