"""Finding tools for a model that looks for them: by their names however they are written, else by words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..api.tools import ToolSpec
from .routing.documents import documents
from .routing.ranking import Ranking
from .routing.words import words

_LONGEST = 2_000
"""Characters of a query that are looked at."""
_NAMED = 20
"""Tools that are given at most where a query names more than were asked for."""
_RESPELLED = 20
"""Words of a query that may be misspelled."""
_LONGEST_WORD = 64
"""Characters of such a word."""
_SELECTED = "select:"
"""What some models write before names."""
_PARTS = re.compile(r"[^\w-]+")


class Finder:
    """Finds some of these tools. The words of each are kept in a folder. Blocks while that is read."""

    def __init__(self, specs: Sequence[ToolSpec], cache_folder: Path) -> None:
        self.specs = specs
        self._ranking = Ranking(specs, documents(specs, cache_folder))
        self._named: dict[str, list[ToolSpec]] = {}
        for spec in specs:  # one without a letter is found by words
            self._named.setdefault(_plain(spec.name), []).append(spec)

    def find(self, query: str, most: int) -> list[ToolSpec]:
        """The tools that a query means, the best first: those that it names, and those that share words with it.

        Args:
            most: how many to give; all that are named come along, too.
        """
        query = query[:_LONGEST].strip().removeprefix(_SELECTED)
        asked = dict.fromkeys(map(_plain, (query, *_PARTS.split(query))))
        named = {spec.name: spec for plain in asked if plain for spec in self._named.get(plain, ())}
        ranked = self._ranking.best(query, most) or self._ranking.best(self._respelled(query), most)
        found = {**named, **{spec.name: spec for spec, _ in ranked}}
        return [*found.values()][: max(most, min(len(named), _NAMED))]

    def _respelled(self, query: str) -> str:
        """The query in words that tools have, where it has none of those."""
        asked = [word for word in words(query) if len(word) <= _LONGEST_WORD][:_RESPELLED]
        return " ".join(map(self._ranking.respelled, asked))


def _plain(name: str) -> str:
    """A name without case and separators: models write `tool_search` as toolSearch, Tool-Search and tool search."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())
