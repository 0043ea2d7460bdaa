"""Resolves name conflicts between packs: Marvin's own come first, then the user's preference, then the order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeVar

from ..api.session import Command
from ..api.tools import ToolSpec
from ..config.program import command_name
from ..tools.sets import SETS
from .model import Owned, Pack

N = TypeVar("N", ToolSpec, Command)

_LONGEST = 64
_SHOWN = 5
"""The maximum number of names in a line."""
_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


class Names:
    """Assigns names by kind, and records the conflicts.

    Args:
        packs: those in use, in order.
        prefer: packs that come before others, in order of preference.
    """

    def __init__(self, packs: Sequence[Pack], prefer: Sequence[str]) -> None:
        self._packs = {pack.key: pack for pack in packs}
        self._ranks = {pack.key: _rank(pack, prefer) for pack in packs}
        self._prefer = prefer
        self.refused: dict[str, list[str]] = {}
        """By the key of a pack, the names that it lost."""
        self.settled: dict[str, list[str]] = {}
        """By the key of a pack, the names that it lost because of the user's preference."""
        self._contested: dict[tuple[str, str], list[str]] = {}

    def winners(self, kind: str, wanted: Iterable[tuple[str, str]]) -> dict[str, str]:
        """The key of the pack for each name; `wanted` are keys of packs and names."""
        found: dict[str, str] = {}
        for key, name in sorted(wanted, key=lambda pair: self._ranks[pair[0]]):
            owner = found.setdefault(name, key)
            if owner != key:
                self._refuse(kind, name, key, owner)
        return found

    def tools(self, brought: Sequence[Owned[ToolSpec]]) -> tuple[Owned[ToolSpec], ...]:
        """The tools under their assigned names, in order."""
        ours = {key for key, pack in self._packs.items() if pack.own}
        own = [spec for key, spec in brought if key in ours]
        words = {*SETS, *(spec.name for spec in own), *(spec.group for spec in own)}
        others = [spec for key, spec in brought if key not in ours]
        if len({spec.name for _, spec in brought}) == len(brought) and not any(
            spec.name in words or spec.group in words for spec in others
        ):
            return tuple(brought)  # the usual case: no conflicts
        offered: list[Owned[ToolSpec]] = []
        for key, spec, name in self._offered("tool", brought, words):
            named = spec if key in ours or spec.group not in words else self._grouped(key, spec, words)
            offered.append((key, named if name == spec.name else named.replace(name=name, function=spec.name)))
        return tuple(offered)

    def commands(self, brought: Sequence[Owned[Command]], words: Collection[str]) -> list[Command]:
        """The slash commands under their assigned names; `words` are reserved names."""
        offered = self._offered("command", brought, words)
        return [command if name == command.name else command.replace(name=name) for _, command, name in offered]

    def _offered(self, kind: str, brought: Sequence[Owned[N]], words: Collection[str]) -> Iterator[tuple[str, N, str]]:
        """Each object with its pack and name; in a conflict the name gets that of the pack as a prefix."""
        taken: dict[str, str] = {}
        own, ranks = {key for key, pack in self._packs.items() if pack.own}, self._ranks
        for key, thing in sorted(brought, key=lambda pair: ranks[pair[0]]):
            name = thing.name
            if name not in taken and (name not in words or key in own):
                taken[name] = key
        used: set[str] = set()
        for key, thing in brought:
            name = thing.name
            owner = taken.get(name, "")
            if owner != key or name in used:
                name = self._prefixed(kind, key, thing.name, owner, {*taken, *words})
                taken.setdefault(name, key)
            if name:
                used.add(name)
                yield key, thing, name

    def _grouped(self, key: str, spec: ToolSpec, words: set[str]) -> ToolSpec:
        """A tool with the name of one of our groups: `--tools` means our group by that name."""
        pack = self._packs[key]
        names = [_plain(pack.name), _plain(pack.distribution), f"{_plain(pack.distribution)}_pack"]
        group = next((name for name in names if name not in words), names[-1])
        if spec.group != pack.name:
            self._note(
                key, f"its group {spec.group} is called {group}: that name is used by Marvin's own tools", self.refused
            )
        return spec.replace(group=group)

    def _prefixed(self, kind: str, key: str, name: str, owner: str, taken: Collection[str]) -> str:
        """The name with that of its pack as a prefix; empty if that is taken, too."""
        longer = f"{_prefix(self._packs[key])}_{name}"
        if owner == key or len(longer) > _LONGEST or longer in taken:
            longer = ""
        self._refuse(kind, name, key, owner, longer)
        return longer

    def _refuse(self, kind: str, name: str, key: str, owner: str, instead: str = "") -> None:
        """Record that a pack lost a name, and the name it got instead."""
        winner, loser = self._packs.get(owner), self._packs[key]
        who = (
            "Marvin uses that name"
            if winner is None
            else (f"{winner.distribution} already provides one with that name")
        )
        who = "it provides that name twice" if owner == key else who
        what = f"is available as {instead}" if instead else "was refused"
        line = f"{kind} {name} of {loser.distribution} {what}: {who}."
        if winner is None or winner.own or owner == key:
            self._note(key, line, self.refused)
        elif winner.is_named(self._prefer) or loser.is_named(self._prefer):
            self._note(key, line, self.settled)
        else:
            self._note(key, f"{line} The setting packs.prefer can change this.", self.refused)
            things = self._contested.setdefault((owner, key), [])
            if f"{kind} {name}" not in things:
                things.append(f"{kind} {name}")

    def contests(self) -> list[str]:
        """The conflicts that the user can resolve, one line for each two packs."""
        lines = []
        for (winner, loser), things in self._contested.items():
            one, other = self._packs[winner], self._packs[loser]
            what = ", ".join(things[:_SHOWN]) + (", ..." if len(things) > _SHOWN else "")
            lines.append(
                f"packs {one.name} and {other.name} both provide {what}; that of {one.name} is used. Choose which "
                f"pack takes precedence: {command_name()} config set packs.prefer '[{other.name}]', or "
                f"'[{one.name}]'."
            )
        return lines

    @staticmethod
    def _note(key: str, line: str, where: dict[str, list[str]]) -> None:
        lines = where.setdefault(key, [])
        if line not in lines:
            lines.append(line)


def _prefix(pack: Pack) -> str:
    name = pack.name.rpartition("/")[2].removesuffix(".py") if pack.is_file else pack.name
    return _plain(name)


def _plain(name: str) -> str:
    return "".join(letter if letter in _CHARACTERS else "_" for letter in name)


def _rank(pack: Pack, prefer: Sequence[str]) -> int:
    """The priority of a pack: ours first, then preferred ones; the order among equals is kept."""
    if pack.own:
        return -1
    return next((place for place, name in enumerate(prefer) if pack.is_named((name,))), len(prefer))
