"""Packs that could not be loaded: their error messages, and a hook in place of those that may register hooks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..api.hooks import Ask, Deny, Hook, HookContext, Verdict
from ..api.tools import ToolSpec
from ..config.program import command_name
from ..util.text import one_line
from .model import USER, Pack

_SHOWN = 300


class Missing(Hook):
    """Replaces the hooks of packs that could not be loaded, and may have some.

    Their verdicts are unknown, so each call needs approval, and is denied in a non-interactive run.
    """

    def __init__(self, packs: Sequence[Pack], attended: bool) -> None:
        names = ", ".join(pack.name for pack in packs)
        which = "pack" if len(packs) == 1 else "packs"
        self._reason = f"the {which} {names}, which may contain hooks that guard calls, could not be loaded"
        self._attended = attended
        self._packs = packs

    async def before_tool(self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any]) -> Verdict:
        """Ask, or deny."""
        if self._attended:
            return Ask(reason=self._reason)
        todo = f"The user can repair or disable the pack; `{command_name()} packs list` says more"
        return Deny(reason=f"{self._reason}. {todo}")


def why_left_out(pack: Pack) -> str:
    """Which pack could not be loaded, and why, for a request for one of its tools."""
    why = one_line(pack.problems[0] if pack.problems else "it could not be loaded", _SHOWN).rstrip(".")
    return f"{pack.name}, of {pack.distribution}, was left out: {why}"


def line_about(pack: Pack, attended: bool, off: Collection[str], there: Sequence[Pack]) -> str:
    """The notice of a start about a pack that could not be loaded.

    Args:
        attended: whether a user is there to answer questions.
        off: the disabled packs.
        there: all installed packs.
    """
    where = "" if pack.distribution == USER else f" of {pack.distribution}"
    why = one_line(pack.problems[0] if pack.problems else "it could not be loaded", _SHOWN).rstrip(".")
    more = f"`{command_name()} packs list` shows where"
    if not pack.guards:
        return f"pack {pack.name}{where} was left out: {why}. {more}."
    calls = "you are asked about every call of a tool" if attended else "every call of a tool is denied"
    names = ", ".join(sorted({*off, _name_alone(pack, there)}))
    switch = f"{command_name()} config set packs.off '[{names}]'"
    return (
        f"pack {pack.name}{where} was left out: {why}. It may contain hooks that guard calls, so {calls} until it is "
        f"repaired, removed or disabled: {switch}. {more}."
    )


def _name_alone(pack: Pack, there: Sequence[Pack]) -> str:
    """The name that disables this pack and no other guard: the distribution's, if packs share the name."""
    others = [other for other in there if other.key != pack.key]
    shared = any(other.is_named((pack.name,)) for other in others)
    return pack.distribution if shared else pack.name
