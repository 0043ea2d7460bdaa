"""The cached index of what is installed: packs, the hooks they implement, and the schemas of their tools.

A start reads one JSON file instead of importing every pack. It is rebuilt when the interpreter, a
folder of the module path, or a source file of a pack has changed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

from ..api.providers import ProviderSpec
from ..api.record import Record
from ..api.timeouts import Timeouts
from ..api.tools import ToolSpec
from ..api.ui import UISpec
from ..util.state_files import read_trusted_json, write_cache
from ..version import __version__
from .model import DeclaredSettings, Index, Pack


def load_index(cache_folder: Path, user_files: Path | None = None, limit: float = Timeouts().pack) -> Index:
    """The index of this environment: from the cache where that is current, else built anew and kept.

    Args:
        user_files: the configuration folder, whose `tools/` and `hooks/` count as packs.
        limit: the seconds that loading one pack may take.
    """
    own = _own_folders(user_files)
    key = _key(own)
    path = cache_folder / f"index-{crc32(key.encode()):08x}.json"
    kept = read_trusted_json(path)
    if isinstance(kept, dict) and kept.get("key") == key and _is_current(kept.get("stamps")):
        try:
            return _from_json(kept["index"])
        except (KeyError, TypeError, AttributeError):
            pass  # written by another version of this module, or damaged: built anew below
    from .discovery import discover

    stamps = _stamps([*sys.path, *own])
    index = discover(user_files, limit)
    write_cache(path, {"key": key, "stamps": {**stamps, **_stamps(index.sources)}, "index": _to_json(index)})
    return index


def _own_folders(user_files: Path | None) -> list[str]:
    """The folders with the user's own packs. Where there are none, every configuration folder has the same index."""
    folders = [str(user_files / kind) for kind in ("tools", "hooks")] if user_files else []
    return [folder for folder in folders if os.path.isdir(folder)]


def _key(own_folders: list[str]) -> str:
    """What tells this environment, and what an index of this version holds, from every other one."""
    kinds = (Pack, ToolSpec, ProviderSpec, UISpec, DeclaredSettings)
    fields = [field for kind in kinds for field in kind._defaults]
    parts = [__version__, fields, sys.version, sys.executable, sys.prefix, sys.path, os.getuid(), own_folders]
    return json.dumps(parts)


def _stamps(paths: Any) -> dict[str, int]:
    return {path: _stamp(path) for path in paths if path}


def _stamp(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _is_current(stamps: Any) -> bool:
    return isinstance(stamps, dict) and all(_stamp(path) == stamp for path, stamp in stamps.items())


def _to_json(index: Index) -> dict[str, Any]:
    return {
        "packs": [_stated(pack) for pack in index.packs],
        "tools": [{**_stated(spec), "access": sorted(spec.access)} for spec in index.tools],
        "providers": [_stated(spec) for spec in index.providers],
        "uis": [_stated(spec) for spec in index.uis],
        "settings": [_stated(declared) for declared in index.settings],
        "owners": dict(index.owners),
        "sources": index.sources,
    }


def _stated(record: Record) -> dict[str, Any]:
    """The fields that are not at their default: each one that is read costs time at every start."""
    return {name: value for name, value in record.as_dict().items() if value != type(record)._defaults[name]}


def _from_json(data: Mapping[str, Any]) -> Index:
    return Index(
        packs=tuple(Pack(**_tuples(entry)) for entry in data["packs"]),
        tools=tuple(ToolSpec(**{**_tuples(entry), "access": frozenset(entry["access"])}) for entry in data["tools"]),
        providers=tuple(ProviderSpec(**_tuples(entry)) for entry in data["providers"]),
        uis=tuple(UISpec(**entry) for entry in data["uis"]),
        settings=tuple(DeclaredSettings(**entry) for entry in data["settings"]),
        owners=data["owners"],
        sources=tuple(data["sources"]),
    )


def _tuples(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
