"""Tool search for models: by name in any spelling, else by words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..api.tools import ToolSpec
from .routing.documents import documents
from .routing.ranking import Ranking
from .routing.words import words

_LONGEST = 2_000
"""The maximum number of characters of a query that are used."""
_NAMED = 20
"""The maximum number of results if a query names more tools than were requested."""
_RESPELLED = 20
"""The maximum number of words of a query that are corrected."""
_LONGEST_WORD = 64
"""The maximum length of such a word, in characters."""
_SELECTED = "select:"
"""Prefixes that some models add to names."""
_PARTS = re.compile(r"[^\w-]+")


class Finder:
    """Searches these tools. The words of each are cached in a folder. Blocks while that is read."""

    def __init__(self, specs: Sequence[ToolSpec], cache_folder: Path) -> None:
        self.specs = specs
        self._ranking = Ranking(specs, documents(specs, cache_folder))
        self._named: dict[str, list[ToolSpec]] = {}
        for spec in specs:  # one without a letter is found by words
            self._named.setdefault(_plain(spec.name), []).append(spec)

    def find(self, query: str, most: int) -> list[ToolSpec]:
        """The tools that match a query, best first: those that it names, and those that share words with it.

        Args:
            most: the number of results; named tools are included in any case.
        """
        query = query[:_LONGEST].strip().removeprefix(_SELECTED)
        asked = dict.fromkeys(map(_plain, (query, *_PARTS.split(query))))
        named = {spec.name: spec for plain in asked if plain for spec in self._named.get(plain, ())}
        ranked = self._ranking.best(query, most) or self._ranking.best(self._respelled(query), most)
        found = {**named, **{spec.name: spec for spec, _ in ranked}}
        return [*found.values()][: max(most, min(len(named), _NAMED))]

    def _respelled(self, query: str) -> str:
        """The query with its misspelled words corrected to words of the tools."""
        asked = [word for word in words(query) if len(word) <= _LONGEST_WORD][:_RESPELLED]
        return " ".join(map(self._ranking.respelled, asked))


def _plain(name: str) -> str:
    """A name without case and separators: models write `tool_search` as toolSearch, Tool-Search and tool search."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())
