"""The duration of judging a command, and the overhead of ten hooks for a call."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.table import Row
from marvin_core import Hook, HookContext, ToolSpec
from marvin_core.api.config import Permissions
from marvin_core.api.timeouts import Timeouts
from marvin_core.config.load import load
from marvin_core.engine.hook_runner import HookRunner
from marvin_core.guard.permissions.policy import Policy
from marvin_core.util.bus import Bus

_PLAIN = ("git status", "pytest -q tests", "npm run build", "grep -rn 'def main' src", 'git commit -m "Say why"')
_PARSED = (
    "git log | head -5",
    "cd src && make -j4 2>&1 | tail",
    'for f in *.py; do wc -l "$f"; done',
    "bash -c 'ls; pwd'",
)
_HOSTILE = (
    "eval " * 1_000 + "x",
    "a|" * 16_000 + "a",
    "$(" * 3_000 + ")" * 3_000,
    '"$(' * 60 + "a" + ')"' * 60,
    "a;" * 1_900,
    "a " * 32_000,
    "{ " * 120 + "a" + ";}" * 120,
    "'" * 60_000,
    "cat <<E\n" * 8_000,
    "[\\w" * 20_000,
    "git " + "$x" * 30_000,
    "x=$(" + "\n".join(f"sh -c 'echo $x {number}'" for number in range(40)) + ")",
)
_HOOKS = 10
_SPEC = ToolSpec(name="run", description="Run.", parameters={}, access=frozenset(["exec"]))


class _Quiet(Hook):
    async def before_tool(self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any]) -> None:
        return None


def rows(count: int) -> Iterator[Row]:
    """Judging commands with ten rules in force, each measured `count` times."""
    rules = Permissions(allow=("run(git *)", "run(make *)"), deny=tuple(f"run(tool{number} *)" for number in range(8)))
    policy = Policy(load([], {}, with_file=False)[0].replace(permissions=rules))

    def judging(command: str) -> Callable[[], Awaitable[object]]:
        return lambda: policy.judged(_SPEC, {"command": command}, Path("/srv/project"))

    how = f"median of {count} each, ten rules"
    yield Row("judging a plain command", _median(map(judging, _PLAIN), count), 1.0, "ms", how)
    yield Row("judging a command that is parsed", _median(map(judging, _PARSED), count), 6.0, "ms", how)
    longest = max(_median([judging(command)], 3) for command in _HOSTILE)
    yield Row("longest judging, hostile commands", longest, 250.0, "ms", f"the slowest of {len(_HOSTILE)}, median of 3")
    runner = HookRunner([_Quiet() for _ in range(_HOOKS)], lambda _: object(), Timeouts(), Bus())  # type: ignore[arg-type,return-value]
    value = _median([lambda: runner.before_tool(_SPEC, {})], count)
    yield Row(f"{_HOOKS} hooks before a call", value, None, "ms", how.partition(",")[0])


def _median(
    works: Iterator[Callable[[], Awaitable[object]]] | list[Callable[[], Awaitable[object]]], count: int
) -> float:
    """Milliseconds that one of the works takes."""

    async def measured() -> list[float]:
        taken: list[float] = []
        for work in works:
            await work()  # imports and caches
            for _ in range(count):
                begun = time.perf_counter()
                await work()
                taken.append((time.perf_counter() - begun) * 1_000)
        return taken

    return statistics.median(asyncio.run(measured()))
