"""The entry points of all distributions, found without importing anything of theirs."""

from __future__ import annotations

import re
import sys
from importlib.metadata import Distribution, distributions

from .hook_calls import expect
from .model import CORE, Pack

GROUP = "marvin"

_EXTRA = re.compile(r"\s*([A-Za-z0-9._-]+).*;.*\bextra\s*==")


def installed_packs() -> list[Pack]:
    """The packs of all distributions, not loaded yet: the core first, then by distribution and name.

    Marvin's own distributions are the core and those of ours that its extras name. Another one whose pack has the
    name of one of ours is known by the name of its distribution.
    """
    found: dict[tuple[str, str], Pack] = {}
    own = {CORE}
    for distribution in reversed(list(distributions(path=sys.path))):
        packs = _packs_of(distribution)
        found.update({(pack.distribution, pack.name): pack for pack in packs})
        if any(pack.distribution == CORE for pack in packs):
            own |= _named_by_extras(distribution)
    marked = [pack.replace(own=_normal(pack.distribution) in own) for pack in found.values()]
    taken = {pack.name for pack in marked if pack.own}
    marked = [pack.replace(name=pack.distribution) if pack.name in taken and not pack.own else pack for pack in marked]
    return sorted(marked, key=lambda pack: (pack.distribution != CORE, pack.distribution, pack.name))


def is_damaged(name: str) -> bool:
    """Whether something is left of a distribution of this name that cannot say what it brings."""
    for distribution in distributions(name=name, path=sys.path):
        try:
            expect(distribution.metadata["Name"], str)
            _read(distribution)
        except Exception:  # whatever it is, nobody can tell which packs there were
            return True
    return False


def _packs_of(distribution: Distribution) -> list[Pack]:
    try:
        return _read(distribution)
    except Exception:  # an installation that was left half-way; what is not ours says nothing about Marvin's packs
        return []


def _read(distribution: Distribution) -> list[Pack]:
    """The packs of a distribution. Raises anything where its metadata are damaged."""
    entries = [entry_point for entry_point in distribution.entry_points if entry_point.group == GROUP]
    if not entries:
        return []
    # Checked, as a distribution without metadata has no name on newer Pythons and raises on older ones.
    name, version = expect(distribution.metadata["Name"], str), expect(distribution.version, str)
    return [
        Pack(
            name=entry.name,
            distribution=CORE if _normal(name) == CORE else name,
            version=version,
            module=entry.module,
            attribute=entry.attr or "",
        )
        for entry in entries
    ]


def _named_by_extras(core: Distribution) -> set[str]:
    """Those of our distributions that the extras of the core bring."""
    matches = filter(None, map(_EXTRA.match, core.requires or ()))
    return {name for name in (_normal(match[1]) for match in matches) if name.startswith("marvin-")}


def _normal(name: str) -> str:
    """The name of a distribution as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
