"""The speed table: every row measured, beside its goal."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import (
    agents,
    answers,
    asking,
    batches,
    ceiling,
    chat,
    chat_load,
    commands,
    compaction,
    diagnostics,
    editing,
    finding,
    judging,
    life,
    mcp_servers,
    packs,
    reading,
    rounds,
    sandbox,
    sessions,
    snapshots,
    stalls,
    startup,
    streams,
    tickets,
    tool_search,
    turns,
    watching,
    web_pages,
    web_replies,
)
from benchmarks.lab import BenchmarkError, Lab
from benchmarks.service import ServiceError
from benchmarks.table import Row, headline, table
from benchmarks.terminal import TerminalError

_SCHEMAS_GOAL = 12.0
_READING = "Medians of interleaved runs: the ratios tell of Marvin, the milliseconds of this machine."


def main(argv: Sequence[str]) -> int:
    """Measure, print the table, and return 0 also where goals are missed: this is no test."""
    parser = argparse.ArgumentParser(prog="benchmarks/run.py", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, for a look in between")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows to a file as well")
    options = parser.parse_args(argv)
    begun = time.monotonic()
    found: list[Row] = []
    try:
        with Lab() as lab:
            for row in _rows(lab, quick=options.quick):
                found.append(row)
                print(f"\r{len(found)} rows measured", end="", file=sys.stderr, flush=True)
    except (BenchmarkError, ServiceError, TerminalError) as error:
        print(f"\nbenchmarks: {error}", file=sys.stderr)
        return 1
    print(file=sys.stderr)
    print(f"{headline(time.monotonic() - begun)}\n{_READING}\n")
    print(table(found))
    if options.json:
        options.json.write_text(json.dumps([row.as_dict() for row in found], indent=2) + "\n", encoding="utf-8")
    return 0


def _rows(lab: Lab, *, quick: bool) -> Iterator[Row]:
    yield from startup.rows(lab, 5 if quick else 25)
    yield from packs.rows(lab, 3 if quick else 15)
    yield from rounds.rows(lab, 2 if quick else 9)
    yield from agents.rows(lab, 3 if quick else 11)
    yield from batches.rows(lab, 1 if quick else 3, 4 if quick else 10, 10 if quick else 100)
    yield from streams.rows(lab, 1 if quick else 7, 3 if quick else 11)
    yield from sessions.rows(lab, 3 if quick else 11)
    yield from turns.rows(lab, 1)
    yield from compaction.rows(lab, 3 if quick else 11)
    yield from chat.rows(lab, 3 if quick else 9, 1 if quick else 3)
    yield from chat_load.rows(lab, 3 if quick else 7, 100 if quick else 1_000)
    yield from stalls.rows(lab)
    yield from sandbox.rows(20 if quick else 200)
    yield from commands.rows(20 if quick else 200)
    yield from watching.rows(3 if quick else 9)
    yield from judging.rows(5 if quick else 25)
    yield from asking.rows()
    yield from editing.rows(3 if quick else 15)
    yield from diagnostics.rows(lab, 3 if quick else 9)
    yield from reading.rows(3, 100_000_000 if quick else 1_000_000_000)
    yield from web_pages.rows(3 if quick else 9)
    yield from finding.rows(3 if quick else 9, 1 if quick else 10)
    yield from snapshots.rows(3 if quick else 15, 1_000 if quick else 100_000)
    yield from tickets.rows(3 if quick else 9)
    yield from life.rows(3 if quick else 9)
    yield from tool_search.rows(lab, 3 if quick else 15)
    yield from mcp_servers.rows(lab, 3 if quick else 15)
    yield from web_replies.rows(20 if quick else 200)
    yield _schemas(lab)
    yield from ceiling.rows(quick=quick)


def _schemas(lab: Lab) -> Row:
    """What the schemas of the coding set take in each request."""
    size = lab.run(lab.marvin(), [answers.text(1)]).exchanges[0].tools
    return Row("schemas of the coding set", size / 1024, _SCHEMAS_GOAL, "KB", f"{size:,} bytes of JSON in a request")
