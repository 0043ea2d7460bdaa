"""The results of a batch: for people, for programs and for CI."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

from marvin_core import Record, in_thread, one_line

from ..run.limits import words_of
from .records import EXIT_CODES, LOG, REPORT, TaskRecord, write_whole
from .tasks import Task

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SHOWN, _WHY = 20, 200
_ENDS = {"done": "is done", "interrupted": "was interrupted", "failed": "could not continue"}


class Index(Record):
    """The tasks of a batch and their states."""

    tasks: tuple[Task, ...]
    records: tuple[TaskRecord, ...]
    """In the same order as the tasks."""
    results: Path
    ended: str = "done"
    """done, interrupted, failed."""
    reason: str = ""
    exit_code: int | None = None
    """Set if it is not that of the tasks."""

    @property
    def code(self) -> int:
        """The exit code: that of the worst task."""
        if self.exit_code is not None:
            return self.exit_code
        order = list(EXIT_CODES)
        return EXIT_CODES[max((record.state for record in self.records), key=order.index)]

    @property
    def cost(self) -> float | None:
        """USD; None if the cost of an attempt is unknown."""
        costs = [record.cost for record in self.records]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    async def save(self) -> None:
        """Write all files into the results folder. Raises `BatchFault`."""
        await in_thread(self._save)

    def _save(self) -> None:
        write_whole(self.results / "index.json", (json.dumps(self._as_json(), indent=1) + "\n").encode())
        write_whole(self.results / "index.md", self._as_markdown().encode())
        write_whole(self.results / "junit.xml", self._as_junit())

    def _as_json(self) -> dict[str, object]:
        return {
            "ended": self.ended,
            "reason": self.reason,
            "exit_code": self.code,
            "states": dict(Counter(record.state for record in self.records)),
            "cost": self.cost,
            "tasks": [
                {
                    **record.as_json(),
                    "repository": task.repository,
                    "branch": f"marvin/{task.id}",
                    "folder": str(self.results / task.id),
                    "cost": record.cost,
                    "seconds": round(record.seconds, 3),
                }
                for task, record in zip(self.tasks, self.records, strict=True)
            ],
        }

    def _as_markdown(self) -> str:
        lines = [
            f"# {len(self.tasks)} tasks: {self.counts}",
            "",
            f"The batch {_ENDS[self.ended]}. {self.reason}".strip(),
            "",
            "| task | state | phase | tries | time | cost | branch | reason |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for record in self.records:
            branch = f"`marvin/{record.id}`{' (pushed)' if record.pushed else ''}" if record.commit else ""
            cells = (
                f"[{record.id}]({record.id}/{REPORT})",
                record.state,
                f"before {record.next_phase}" if record.next_phase else "",
                str(len(record.tries)),
                words_of(record.seconds),
                _money(record.cost),
                branch,
                _cell(record.reason),
            )
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines) + "\n"

    def _as_junit(self) -> bytes:
        """A test suite with a case for each task, in the format of CI systems."""
        bad = Counter(_JUNIT.get(record.state, "") for record in self.records)
        suite = ElementTree.Element(
            "testsuite",
            name="marvin pipeline batch",
            tests=str(len(self.records)),
            failures=str(bad["failure"]),
            errors=str(bad["error"]),
            skipped=str(bad["skipped"]),
            time=f"{sum(record.seconds for record in self.records):.3f}",
        )
        for task, record in zip(self.tasks, self.records, strict=True):
            case = ElementTree.SubElement(
                suite,
                "testcase",
                name=record.id,
                classname=_NOT_IN_XML.sub("�", task.repository),
                time=f"{record.seconds:.3f}",
            )
            if kind := _JUNIT.get(record.state):
                message = _NOT_IN_XML.sub("�", one_line(record.reason or record.state))
                end = ElementTree.SubElement(case, kind, message=message)
                if kind != "skipped":
                    end.set("type", record.state)
                    end.text = f"The log: {record.id}/{LOG}"
        suites = ElementTree.Element("testsuites")
        suites.append(suite)
        return b"<?xml version='1.0' encoding='utf-8'?>\n" + ElementTree.tostring(suites) + b"\n"

    @property
    def counts(self) -> str:
        """The number of tasks in each state, as text."""
        counts = Counter(record.state for record in self.records)
        return ", ".join(f"{counts[state]} {state}" for state in EXIT_CODES if counts[state])

    def text(self) -> str:
        """A summary for people."""
        bad = [record for record in self.records if record.state != "passed"]
        lines = [f"The batch {_ENDS[self.ended]}: {self.counts}. {self.reason}".strip(), ""]
        lines += [f"{record.id}: {record.state}. {one_line(record.reason, _WHY)}".strip() for record in bad[:_SHOWN]]
        lines += [f"and {len(bad) - _SHOWN} more"] if len(bad) > _SHOWN else []
        lines += [""] if bad else []
        lines.append(f"{_money(self.cost)}. The reports: {self.results / 'index.md'}")
        return "\n".join(lines) + "\n"


_JUNIT = {
    "waiting": "skipped",
    "budget": "failure",
    "findings": "failure",
    "tests": "failure",
    "failed": "failure",
    "lost": "error",
}


def _cell(text: str) -> str:
    """A text escaped for a Markdown table."""
    return re.sub(r"([\\`*_\[\]<>|#!])", r"\\\1", one_line(text, _WHY))


def _money(cost: float | None) -> str:
    return "cost unknown" if cost is None else f"{cost:.4f} USD"
