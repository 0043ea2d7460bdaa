"""The duration of reading ten lines of a 1 GB file, at its start and in its middle, compared with `sed`."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.table import Row
from marvin_core import TextSource

_GOAL = 2.0
_BLOCK = 100_000
"""Lines that are written at once."""
_LINE = "2026-01-01 00:00:00 a line of a log with some words in it, number {:08}, and a few more behind it\n"


def rows(count: int, size: int) -> Iterator[Row]:
    """Each is the best of `count`, with a file of about `size` bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "big.log")
        block = "".join(_LINE.format(number) for number in range(_BLOCK)).encode()
        blocks = max(1, size // len(block))
        with path.open("wb") as stream:
            for _ in range(blocks):
                stream.write(block)
        for where, first in (("beginning", 1), ("middle", blocks * _BLOCK // 2)):
            command = ["sed", "-n", f"{first},{first + 9}p;{first + 9}q", str(path)]
            bare = _best(count, partial(subprocess.run, command, stdout=subprocess.DEVNULL, check=True))
            own = _best(count, partial(_ten_lines, path, first))
            said = f"{own * 1e3:,.1f} ms, sed {bare * 1e3:,.1f} ms"
            yield Row(f"ten lines of {blocks * len(block) / 1e9:.1f} GB, {where}", own / bare, _GOAL, "x", said)


def _ten_lines(path: Path, first: int) -> None:
    asyncio.run(_read(path, first))


async def _read(path: Path, first: int) -> None:
    with path.open("rb") as file:
        await TextSource(path.name, file).section(first, first + 9, limit=50_000)


def _best(count: int, work: Callable[[], object]) -> float:
    """Seconds that it takes."""
    taken = []
    for _ in range(count):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return min(taken)
