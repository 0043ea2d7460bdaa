"""What a chat of many turns holds in memory: no more than one of few, but for what it keeps of what was said.

A chat keeps 40 messages in its context, and reads and writes the profile's chat log, which keeps 1,000 entries.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import answers
from benchmarks.lab import Lab, median
from benchmarks.table import Row

_FEW, _MANY = 50, 500
_TOKENS = 20
_GOAL = 5.0
_MB = 1_000_000


def rows(lab: Lab, rounds: int) -> Iterator[Row]:
    """The row of the table on turns."""

    def held(turns: int) -> float:
        lines = [f"This is prompt {number}." for number in range(turns)]
        return median([lab.chat(lines, [answers.text(_TOKENS)] * turns) / _MB for _ in range(rounds)])

    held(1)  # whatever is built once, is built
    few, many = held(_FEW), held(_MANY)
    how = f"{many:.1f} MB; {few:.1f} MB after {_FEW} turns of {_TOKENS} tokens each"
    yield Row(f"memory after {_MANY} turns, more than after {_FEW}", many - few, _GOAL, "MB", how)
