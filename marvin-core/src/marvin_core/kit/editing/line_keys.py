"""The lines of a document in the form in which they are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cached_property


class LineKeys:
    """The key of each line.

    Args:
        key: converts a line.
    """

    def __init__(self, lines: Iterable[str], key: Callable[[str], str]) -> None:
        self.all = list(map(key, lines))

    @cached_property
    def _different(self) -> frozenset[str]:
        return frozenset(self.all)

    @cached_property
    def _counts(self) -> Counter[str]:
        return Counter(self.all)

    def rarest(self, wanted: Iterable[str]) -> str | None:
        """The key that the fewest lines have, and of several the longest one; None if a key does not occur.

        Most texts that are missing have such a key, and to count all keys takes three times as long as to know them.
        """
        different = dict.fromkeys(wanted)
        if not different.keys() <= self._different:
            return None
        return min(different, key=lambda one: (self._counts[one], -len(one)), default=None)
