"""Pairs of measured values, old and new, and their statistics: ratios, intervals, a verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

from benchmarks.lab import median
from benchmarks.table import aligned

ALLOWED = 0.03
"""How much worse a row may be."""
_TELLING = 8
"""The minimum number of pairs for a 99 % interval."""


class Pairs(NamedTuple):
    """What was measured of a row, less is better; the values at one place of `old` and `new` are of one pair."""

    what: str
    unit: str
    old: Sequence[float]
    new: Sequence[float]

    @property
    def ratio(self) -> float:
        """The ratio of the medians, new to old."""
        return median(self.new) / median(self.old)

    @property
    def interval(self) -> tuple[float, float, float]:
        """The centre of the pairs' own ratios, between the ends of its 99 % interval.

        What slows the machine for seconds hits both values of a pair, so that these ratios have less noise than
        the medians. The centre is the median of the (geometric) means of any two (Hodges and Lehmann), which has
        less noise than their median and bears outliers as well; the interval is that of Wilcoxon's test,
        or all that the pairs say where they are too few for one of 99 %.
        """
        logs = [math.log(new / old) for old, new in zip(self.old, self.new, strict=True)]
        means = sorted((one + other) / 2 for one, other in combinations_with_replacement(logs, 2))
        count = len(logs)
        spread = math.sqrt(count * (count + 1) * (2 * count + 1) / 24)
        rank = max(0, math.floor(count * (count + 1) / 4 - 2.576 * spread))
        return math.exp(means[rank]), math.exp(median(means)), math.exp(means[-1 - rank])

    @property
    def width(self) -> float:
        """Half of the interval: 0.01 is within 1 % to both sides."""
        low, _, high = self.interval
        return (high - low) / 2

    @property
    def worse(self) -> bool:
        """Whether the row is worse by more than is allowed, by its medians."""
        return self.ratio > 1 + ALLOWED

    @property
    def certain(self) -> bool:
        """Whether the pairs agree that new and old differ; few must agree far better than they differ from 1."""
        low, _, high = self.interval
        distance = max(low - 1, 1 - high)
        return distance > (0 if len(self.old) >= _TELLING else high - low)

    @property
    def verdict(self) -> str:
        """By how much the row is worse or better, where that is more than is allowed."""
        change = self.ratio - 1
        if abs(change) <= ALLOWED:
            return ""
        return f"{'worse' if change > 0 else 'better'} by {abs(change):.1%}{'' if self.certain else ', may be noise'}"

    def as_dict(self) -> dict[str, Any]:
        """The row as plain values."""
        return {**self._asdict(), "ratio": self.ratio, "interval": self.interval}


def table(rows: Sequence[Pairs]) -> str:
    """The rows as aligned text."""
    lines = [("what", "old", "new", "ratio", "of pairs", "99 % interval", "pairs", "")]
    for row in rows:
        old, new = (f"{median(values):.2f} {row.unit}" for values in (row.old, row.new))
        low, centre, high = (f"{value:.3f}" for value in row.interval)
        count = str(len(row.old))
        lines.append((row.what, old, new, f"{row.ratio:.3f}", centre, f"{low} - {high}", count, row.verdict))
    return aligned(lines, "<>>>>>><")


def summary(rows: Sequence[Pairs]) -> str:
    """How many rows are worse by more than is allowed."""
    worse = [row for row in rows if row.worse]
    certain = f", {sum(row.certain for row in worse)} of them beyond the noise" if worse else ""
    return f"{len(rows)} rows, {len(worse)} worse by more than {ALLOWED:.0%}{certain}."
