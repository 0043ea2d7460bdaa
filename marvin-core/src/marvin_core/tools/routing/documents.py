"""The words that each tool is found by, kept in the cache: to count those of 500 tools takes a tenth of a second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from ...api.tools import ToolSpec
from ...util.state_files import read_trusted_json, write_cache
from .ranking import words_of

_FILE = "words.json"


def documents(specs: Sequence[ToolSpec], cache_folder: Path) -> list[Mapping[str, int]]:
    """How often each word stands in what is known of each tool; what the cache does not have is counted and kept."""
    path = cache_folder / _FILE
    kept = read_trusted_json(path)
    known: Mapping[str, Any] = kept if isinstance(kept, dict) else {}
    found: list[Mapping[str, int]] = []
    fresh: dict[str, Any] = {}
    for spec in specs:
        sign = _sign(spec)
        counts = _kept(known.get(sign))
        if counts is None:
            counts = fresh[sign] = dict(Counter(words_of(spec)))
        found.append(counts)
    if fresh:
        write_cache(path, {_sign(spec): counts for spec, counts in zip(specs, found, strict=True)} | fresh)
    return found


def _sign(spec: ToolSpec) -> str:
    """What is another one as soon as what is known of the tool is."""
    text = "\0".join([spec.name, spec.description, repr(spec.parameters), *(one["say"] for one in spec.phrases)])
    return f"{len(text)}-{crc32(text.encode('utf-8', 'replace')):08x}"


def _kept(value: Any) -> Mapping[str, int] | None:
    """The counts, where they are such."""
    return value if isinstance(value, dict) and all(type(count) is int for count in value.values()) else None
