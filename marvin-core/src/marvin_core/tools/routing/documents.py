"""The words that each tool is found by, kept in the cache: to count those of 500 tools takes a tenth of a second."""

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
"""Tools whose words are kept: also those of other environments and selections, which share the file."""


def documents(specs: Sequence[ToolSpec], cache_folder: Path) -> list[Mapping[str, int]]:
    """How often each word stands in what is known of each tool; what the cache does not have is counted and kept."""
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
        others = islice(known.items(), max(0, len(known) + len(found) - _MOST), None)  # those used last stay
        write_cache(path, {"version": __version__, "words": {**dict(others), **found}})
    return [found[sign] for sign in signs]


def _known(kept: Any) -> dict[str, Any]:
    """What the cache holds; nothing where another version wrote it, which may split words otherwise."""
    if not isinstance(kept, dict) or kept.get("version") != __version__:
        return {}
    words = kept.get("words")
    return words if isinstance(words, dict) else {}


def _sign(spec: ToolSpec) -> str:
    """What is another one as soon as what is known of the tool is."""
    phrases = (f"{one['say']}{one.get('slots')}" for one in spec.phrases)
    text = "\0".join([spec.name, spec.description, repr(spec.parameters), *phrases])
    return f"{len(text)}-{crc32(text.encode('utf-8', 'replace')):08x}"


def _kept(value: Any) -> Mapping[str, int] | None:
    """The counts, where they are such."""
    if not isinstance(value, dict):
        return None
    return value if all(type(count) is int and 0 < count <= LONGEST_TEXT for count in value.values()) else None
