"""The entry points of all distributions, found without importing their code."""

from __future__ import annotations

import os
import re
import sys
from importlib.machinery import PathFinder
from importlib.metadata import Distribution, distributions

from ..api.errors import PluginError
from ..util.failures import told
from .hook_calls import expect
from .model import CORE, Pack

GROUP = "marvin"

_EXTRA = re.compile(r"\s*([A-Za-z0-9._-]+).*;.*\bextra\s*==")


def installed_packs() -> list[Pack]:
    """The packs of all distributions, not loaded yet: the core first, then by distribution and name.

    Marvin's own distributions are the core and those named in its extras. If another distribution has a pack with the
    same name as one of ours, that pack is known by the name of its distribution.
    """
    found: dict[tuple[str, str], Pack] = {}
    own = {CORE}
    for distribution in reversed(list(distributions(path=sys.path))):
        packs = _packs_of(distribution)
        found.update({(pack.distribution, pack.name): pack for pack in packs})
        if any(pack.distribution == CORE for pack in packs):
            own |= _named_by_extras(distribution)
    marked = [pack.replace(own=normal_name(pack.distribution) in own) for pack in found.values()]
    taken = {pack.name for pack in marked if pack.own}
    marked = [pack.replace(name=pack.distribution) if pack.name in taken and not pack.own else pack for pack in marked]
    return sorted(marked, key=lambda pack: (pack.distribution != CORE, pack.distribution, pack.name))


def is_damaged(name: str) -> bool:
    """Whether a distribution of this name is installed, but its metadata is damaged."""
    for distribution in distributions(name=name, path=sys.path):
        try:
            expect(distribution.metadata["Name"], str)
            _read(distribution)
        except Exception:  # after any error it is unknown which packs there were
            return True
    return False


def _packs_of(distribution: Distribution) -> list[Pack]:
    try:
        return _read(distribution)
    except Exception as error:  # an incomplete installation, or a distribution without packs
        return _unreadable(distribution, error)


def _unreadable(distribution: Distribution, error: Exception) -> list[Pack]:
    """A placeholder for the packs of a distribution with unreadable entry points."""
    try:
        text = distribution.read_text("entry_points.txt") or ""
    except UnicodeDecodeError:
        text = f"[{GROUP}]"  # it may have packs
    except Exception:  # no file, or none that can be read
        return []
    if not re.search(rf"^\s*\[{GROUP}\]", text, re.MULTILINE):
        return []
    try:
        name = expect(distribution.metadata["Name"], str)
    except Exception:  # the folder has the name of the distribution
        name = str(getattr(distribution, "_path", "a distribution")).rpartition("/")[2].partition("-")[0]
        name = normal_name(name)
    what = told(error)
    if isinstance(error, (PluginError, AttributeError)):  # the latter: no module in an entry point
        missing = "its name or its version is missing"
        what = missing if isinstance(error, PluginError) else "one of its entry points has no module"
    why = f"its contents cannot be read: {what}. Correct its entry points, or reinstall it"
    return [Pack(name=name, distribution=name, version="", module="", problems=(why,), left_out=True)]


def _read(distribution: Distribution) -> list[Pack]:
    """The packs of a distribution. Raises any exception if its metadata is damaged."""
    entries = [entry_point for entry_point in distribution.entry_points if entry_point.group == GROUP]
    if not entries:
        return []
    # Checked, as a distribution without metadata has no name on newer Pythons and raises on older ones.
    name, version = expect(distribution.metadata["Name"], str), expect(distribution.version, str)
    return [
        Pack(
            name=entry.name,
            distribution=CORE if normal_name(name) == CORE else name,
            version=version,
            module=entry.module,
            attribute=entry.attr or "",
            folder=_folder_of(entry.module),
        )
        for entry in entries
    ]


def _folder_of(module: str) -> str:
    """The folder of a module's package; empty if it has none. Nothing is imported."""
    top, *inner = module.split(".")
    found = PathFinder.find_spec(top, sys.path)
    for place in (found.submodule_search_locations or ()) if found is not None else ():
        folder = os.path.join(place, *inner)
        if os.path.isdir(folder):
            return folder
        if inner and os.path.isdir(os.path.dirname(folder)):
            return os.path.dirname(folder)
    return ""


def _named_by_extras(core: Distribution) -> set[str]:
    """Marvin's distributions in the extras of the core."""
    matches = filter(None, map(_EXTRA.match, core.requires or ()))
    return {name for name in (normal_name(match[1]) for match in matches) if name.startswith("marvin-")}


def normal_name(name: str) -> str:
    """The normalized name of a distribution (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
