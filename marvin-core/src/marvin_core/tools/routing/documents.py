"""The index of words for each tool, stored in the cache: counting those of 500 tools takes a tenth of a second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from zlib import crc32

from ...api.tools import ToolSpec
from ...util.state_files import read_trusted_json, write_cache
from ...version import __version__
from .ranking import LONGEST_TEXT, words_of

_FILE = "stems.json"
_MOST = 2_000
"""The number of tools in the file, including those of other environments and selections, which share it."""


def documents(specs: Sequence[ToolSpec], cache_folder: Path) -> list[Mapping[str, int]]:
    """The frequency of each word in the texts of each tool; words missing from the cache are counted and stored."""
    path = cache_folder / _FILE
    known = _known(read_trusted_json(path))
    signs = [_sign(spec) for spec in specs]
    found: dict[str, Mapping[str, int]] = {}
    is_fresh = False
    for sign, spec in zip(signs, specs, strict=True):
        if sign not in found:
            counts = _kept(known.pop(sign, None))
            is_fresh = is_fresh or counts is None
            found[sign] = dict(Counter(words_of(spec))) if counts is None else counts
    if is_fresh:
        others = islice(known.items(), max(0, len(known) + len(found) - _MOST), None)  # the newest ones stay
        write_cache(path, {"version": __version__, "words": {**dict(others), **found}})
    return [found[sign] for sign in signs]


def _known(kept: Any) -> dict[str, Any]:
    """The content of the cache; empty if another version wrote it, which may split words differently."""
    if not isinstance(kept, dict) or kept.get("version") != __version__:
        return {}
    words = kept.get("words")
    return words if isinstance(words, dict) else {}


def _sign(spec: ToolSpec) -> str:
    """A key that changes whenever the texts of the tool change."""
    phrases = (f"{one['say']}{one.get('slots')}" for one in spec.phrases)
    text = "\0".join([spec.name, spec.description, repr(spec.parameters), *phrases])
    return f"{len(text)}-{crc32(text.encode('utf-8', 'replace')):08x}"


def _kept(value: Any) -> Mapping[str, int] | None:
    """The counts, if they are valid."""
    if not isinstance(value, dict):
        return None
    return value if all(type(count) is int and 0 < count <= LONGEST_TEXT for count in value.values()) else None
