"""What a chat of many turns holds in memory: no more than one of few, but for what it keeps of what was said.

A chat keeps 40 messages in its context, and reads and writes the profile's chat log, which keeps 1,000 entries.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import answers
from benchmarks.lab import Lab, median
from benchmarks.table import Row

FEW, MANY = 50, 500
_TOKENS = 20
_GOAL = 5.0
_MB = 1_000_000


def held(lab: Lab, turns: int) -> float:
    """Megabytes that a chat holds after so many turns."""
    lines = [f"This is prompt {number}." for number in range(turns)]
    return lab.chat(lines, [answers.text(_TOKENS)] * turns) / _MB


def rows(lab: Lab, rounds: int) -> Iterator[Row]:
    """The row of the table on turns."""
    held(lab, 1)  # whatever is built once, is built
    few, many = (median([held(lab, turns) for _ in range(rounds)]) for turns in (FEW, MANY))
    how = f"{many:.1f} MB; {few:.1f} MB after {FEW} turns of {_TOKENS} tokens each"
    yield Row(f"memory after {MANY} turns, more than after {FEW}", many - few, _GOAL, "MB", how)
