"""The cost of a sub-agent: time to its first request, total time without its model's, and memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks import answers
from benchmarks.lab import NOTE, Lab, Run, interleaved, median
from benchmarks.service import Exchange
from benchmarks.table import Row

_GOAL = 1.3
_PAUSE = 0.003
"""As in rounds of tool calls: the call has arrived before the answer's last bytes do."""
_ONE = [answers.text(1)]
_CALL = answers.call("launch_research_agent", {"query": "What is here?"}, pause=_PAUSE)
_TWO = [_CALL, *_ONE, _CALL, *_ONE, *_ONE]
"""Two agents, one after the other: with the first one, what starts agents is imported."""
_SECOND = 3
_IDLE = [answers.call("read_file", {"path": NOTE}, pause=_PAUSE), answers.text(1, pause=0.6)]
"""An agent that has called a tool and waits for its model, long enough to be measured."""


def rows(lab: Lab, rounds: int) -> Iterator[Row]:
    """The rows of the table on sub-agents."""
    runs = interleaved(
        {
            "agents": partial(lab.run, lab.marvin(), _TWO),
            "async": partial(lab.run, lab.bare("async"), _ONE),
            "sync": partial(lab.run, lab.bare("sync"), _ONE),
            "agent": partial(lab.run, [*lab.module(), "--output-format=stream-json"], _ONE),
        },
        rounds,
    )
    taken = median([run.gap(_SECOND) for run in runs["agents"]])
    reference = min(_to_request(runs["async"]), _to_request(runs["sync"]))
    how = f"{taken:.0f} ms from the answer that calls it; bare child {reference:.0f} ms from its exec"
    yield Row("an agent: to its first request", taken / reference, _GOAL, "x", how)
    first = median([run.gap(1) for run in runs["agents"]])
    yield Row("  the first of a session", first / reference, None, "x", f"{first:.0f} ms")
    beside = median([run.gap(_SECOND) + run.gap(_SECOND + 1) for run in runs["agents"]])
    bare_beside = min(_beside_model(runs["async"]), _beside_model(runs["sync"]))
    how = f"{beside:.0f} ms from the answer that calls it to the request with what it said; bare {bare_beside:.0f} ms"
    yield Row("an agent: total minus model time", beside / bare_beside, None, "x", how)
    idle = median([lab.waiting([*lab.module(), "--output-format=stream-json"], _IDLE) / 1e6 for _ in range(rounds)])
    yield Row("  its memory while idle", idle, None, "MB", "resident, after a call, while its model answers")
    memory, bare = (median([run.peak / 1e6 for run in runs[name]]) for name in ("agent", "async"))
    yield Row("  its memory", memory, None, "MB", f"resident, at most, with one answer; bare {bare:.0f} MB")


def _to_request(runs: list[Run]) -> float:
    return median([run.to_first_request for run in runs])


def _beside_model(runs: list[Run]) -> float:
    """Milliseconds from exec to exit, without the time in which the model answers."""
    return median([(run.ended - run.begun - sum(map(_answered, run.exchanges))) / 1e6 for run in runs])


def _answered(exchange: Exchange) -> int:
    return exchange.marks["last"] - exchange.received
