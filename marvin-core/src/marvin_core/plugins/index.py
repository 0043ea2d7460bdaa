"""The cached index of installed packs, the hooks they implement, and the schemas of their tools.

A start reads one JSON file instead of importing every pack. The index is rebuilt when the interpreter, a folder of the
module path, a source file of a pack, a variable read by a pack, or the selection of packs has changed. If a pack could
not be loaded, it is also rebuilt after some time.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from ..api.timeouts import Timeouts
from ..util.state_files import read_trusted, trusted_json, write_cache
from ..version import __version__
from .model import EVERYTHING, Index, Loaded, Pack, Selection
from .stored import FIELDS, index_from_json, index_to_json, late_to_json, owned

if TYPE_CHECKING:
    from .guards import Memory

_PREFIX = "index-"
_EDITED = -1
"""The stamp of a file that was changed while it was loaded; no real file has it."""


def load_index(
    cache_folder: Path,
    user_files: Path | None = None,
    timeouts: Timeouts | None = None,
    selection: Selection = EVERYTHING,
    *,
    project_tools: Path | None = None,
) -> Index:
    """The index of this environment: from the cache if it is current, otherwise rebuilt and stored.

    Args:
        user_files: the configuration folder, whose `tools/` and `hooks/` count as packs.
        timeouts: the limits for loading, and how long failures are cached.
        selection: the packs to load; no other one is imported.
        project_tools: a folder with files that count as packs, and may register tools only.
    """
    own = _own_folders(user_files, project_tools)
    key = _key(own, selection)
    path = cache_folder / f"{_PREFIX}{crc32(key.encode()):08x}.json"
    text = read_trusted(path) or b""
    kept = trusted_json(text[: text.find(b"\n")])
    failures: Mapping[str, Any] = {}
    if isinstance(kept, dict) and kept.get("key") == key and _is_current(kept.get("stamps")):
        try:
            failures = kept["failures"]
            if _are_same(kept["variables"]) and (not failures or _still_fails(failures)):
                return index_from_json(kept["index"], text)
        except (KeyError, TypeError, ValueError, AttributeError):
            failures = {}  # written by another version of this module, or damaged: rebuilt below
    from ..tools.routing.documents import documents
    from .guards import Memory
    from .user_files import project_packs, user_packs

    timeouts, memory = timeouts or Timeouts(), Memory(cache_folder)
    stamps = _stamps([*sys.path, *own])
    begun, begun_at = time.monotonic(), time.time_ns()
    files = [*(user_packs(user_files) if user_files else ()), *(project_packs(project_tools) if project_tools else ())]
    loaded, others = _loaded(memory, files, timeouts, selection)
    index = _index(loaded, others, memory)
    sources = dict.fromkeys(source for one in loaded for source in one.sources)
    data = {
        "key": key,
        "stamps": {**_loaded_stamps(sources, begun_at), **stamps},  # stamps of folders from before they were read
        "variables": _variables(loaded),
        "failures": _failures(loaded, failures.get("tries", 0), time.monotonic() - begun, timeouts),
        "index": index_to_json(index),
    }
    write_cache(path, data, *late_to_json(index))
    documents([spec for _, spec in index.tools], cache_folder)
    return index


def forget(cache_folder: Path) -> None:
    """Invalidate every index, so that it is rebuilt on next use and every pack is loaded again."""
    for path in cache_folder.glob(f"{_PREFIX}*.json"):
        path.unlink(missing_ok=True)


def _loaded(
    memory: Memory, files: Sequence[Pack], timeouts: Timeouts, selection: Selection
) -> tuple[list[Loaded], list[Pack]]:
    """The selected packs, loaded, including `files`, which belong to no distribution; and the other packs."""
    from .entry_points import installed_packs
    from .trials import tried

    there = [*installed_packs(), *files]
    chosen = [pack for pack in there if selection.has(pack)]
    clashing = {key: pack for key, pack in _clashing(there).items() if selection.has(pack)}
    found = tried([pack for pack in chosen if pack.key not in clashing and not pack.left_out], timeouts)
    memory.remember(found)
    marked = [one.replace(pack=_known(one.pack, memory)) if one.pack.left_out else one for one in found]
    marked += [Loaded(pack=_known(pack, memory)) for pack in clashing.values()]
    known = {pack.key for pack in there if not pack.left_out}
    lost = [_lost(pack, memory) for pack in memory.guards() if pack.key not in known and selection.has(pack)]
    marked += filter(None, [_unreadable(pack, memory, selection) for pack in chosen if pack.left_out])
    order = {pack.key: place for place, pack in enumerate(chosen)}
    marked.sort(key=lambda one: order[one.pack.key])
    return [*marked, *filter(None, lost)], [pack for pack in there if not selection.has(pack)]


def _unreadable(pack: Pack, memory: Memory, selection: Selection) -> Loaded | None:
    """A placeholder for a distribution with unreadable entry points; None if its known packs are enough."""
    had = memory.packs(pack.distribution)
    used = [each for each in had if selection.has(each)]
    if (had and not used) or any(each.guards for each in used):  # all switched off, or named by themselves
        return None
    return Loaded(pack=pack.replace(guards=not had))


def _clashing(packs: Sequence[Pack]) -> dict[str, Pack]:
    """Packs, by key, that are left out because another distribution has the same module: one overwrote the other.

    A guard of the other one may be missing. Our own packs are kept: a pack with a module of theirs is third-party.
    """
    by_module: dict[str, list[Pack]] = {}
    for pack in packs:
        if pack.module:
            by_module.setdefault(pack.module, []).append(pack)
    found = {}
    for module, same in by_module.items():
        names = sorted({pack.distribution for pack in same})
        if len(names) > 1:
            both = f"{' and '.join(names)} both contain the module {module}"
            why = f"{both}, so one of them replaced files of the other; remove one"
            found.update({p.key: p.replace(problems=(why,), left_out=True, guards=True) for p in same if not p.own})
    return found


def _lost(pack: Pack, memory: Memory) -> Loaded | None:
    """A guard whose installation is damaged, as by an interrupted upgrade; None if it was uninstalled."""
    from .entry_points import is_damaged

    if not is_damaged(pack.distribution):
        return None
    why = f"the installation of {pack.distribution} is damaged; reinstall it"
    return Loaded(pack=_known(pack.replace(problems=(why,), left_out=True), memory))


def _known(pack: Pack, memory: Memory) -> Pack:
    """A pack that could not be loaded, with the facts stored about it."""
    seen = memory.of(pack)
    return pack.replace(guards=pack.guards or memory.may_guard(pack), cli=seen.cli, tools=seen.tools)


def _index(loaded: Sequence[Loaded], others: Sequence[Pack], memory: Memory) -> Index:
    return Index(
        packs=tuple(one.pack for one in loaded),
        others=tuple(others),
        tools=tuple(pair for one in loaded for pair in owned(one.pack.key, one.tools)),
        providers=tuple(pair for one in loaded for pair in owned(one.pack.key, one.providers)),
        uis=tuple(pair for one in loaded for pair in owned(one.pack.key, one.uis)),
        settings=tuple(pair for one in loaded for pair in owned(one.pack.key, one.settings)),
        secrets=memory.secrets([*others, *(one.pack for one in loaded if one.pack.left_out)]),
    )


def _failures(loaded: Sequence[Loaded], tries: int, took: float, timeouts: Timeouts) -> dict[str, Any]:
    """When packs that could not be loaded are tried again; empty if there are none.

    A failure may be temporary, such as that of a service. The delay doubles with each try, and is longer
    for a pack that hangs than for one that fails at once.
    """
    if not any(one.pack.left_out for one in loaded):
        return {}
    wait = timeouts.pack_retry * max(1.0, took) * 2.0 ** min(tries, 30)
    return {
        "at": time.time(),
        "wait": min(wait, timeouts.pack_retry_most),
        "tries": tries + 1,
    }


def _still_fails(failures: Mapping[str, Any]) -> bool:
    """Whether it is too early to retry the packs that could not be loaded."""
    return bool(0 <= time.time() - failures["at"] < failures["wait"])


def _variables(loaded: Sequence[Loaded]) -> dict[str, int]:
    """The stamps of the environment variables that the result of loading depends on."""
    names = {name for one in loaded for name in one.read}
    failed = any(one.pack.left_out for one in loaded)
    if not names and not failed:
        return {}
    from ..config.environment import READ_BY_LIBRARIES, variable_stamps

    return variable_stamps({*names, *(READ_BY_LIBRARIES if failed else ())})


def _are_same(variables: Mapping[str, int]) -> bool:
    """Whether the variables are unchanged; skipped if there are none."""
    if not variables:
        return True
    from ..config.environment import variable_stamps

    return bool(variable_stamps(variables) == variables)


def _own_folders(user_files: Path | None, project_tools: Path | None) -> list[str]:
    """The folders with packs that are files. Without them, all configuration folders share an index."""
    folders = [str(user_files / kind) for kind in ("tools", "hooks")] if user_files else []
    folders += [str(project_tools)] if project_tools else []
    return [folder for folder in folders if os.path.isdir(folder)]


def _key(own_folders: list[str], selection: Selection) -> str:
    """The cache key of this environment and this version of the index format."""
    chosen = None if selection.chosen is None else sorted(selection.chosen)
    parts = [__version__, FIELDS, sys.version, sys.executable, sys.prefix, sys.path, os.getuid(), own_folders]
    return json.dumps([*parts, chosen, sorted(selection.off)])


def _stamps(paths: Any) -> dict[str, int]:
    return {path: _stamp(path) for path in paths if path}


def _loaded_stamps(sources: Iterable[str], begun_at: int) -> dict[str, int]:
    """The stamps of files loaded since that time (ns); a file changed meanwhile is checked again at the next start."""
    now = time.time_ns()
    return {
        path: _EDITED if begun_at < stamp <= now and not os.path.isdir(path) else stamp
        for path, stamp in _stamps(sources).items()
    }


def _stamp(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _is_current(stamps: Any) -> bool:
    return isinstance(stamps, dict) and all(_stamp(path) == stamp for path, stamp in stamps.items())
