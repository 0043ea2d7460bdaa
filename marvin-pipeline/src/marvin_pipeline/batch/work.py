"""A worker's part of a task: the clone, a run of the pipeline in it, and its results."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from marvin_core import MarvinError, is_locked, one_line

from ..run.files import ProjectFiles
from ..run.summary import NAME as RUN_REPORT
from .child import Child, Place
from .clone import Clone
from .records import (
    CLONE,
    LOG,
    PROMPT,
    REPORT,
    SUMMARY,
    Order,
    TaskFolder,
    TaskRecord,
    TaskState,
    Try,
    write_whole,
)

_STATES: Mapping[int, TaskState] = {0: "passed", 3: "budget", 4: "findings", 5: "tests"}
"""The state of a task by the exit code of its run."""
_INTERRUPTED = 130
_COST = "MARVIN_COST:"
_TAIL, _WHY, _LARGEST, _FILES = 20_000, 500, 20_000_000, 50
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,80}")
_REPORTS = "report"
"""The folder below `.marvin` with the evidence of a run."""


def work_on(values: Mapping[str, Any]) -> dict[str, Any]:
    """Run a task until it is finished or the batch is no longer led; returns its record. Blocks.

    Several workers may get the same task: one of them runs it, and the others find it finished. A killed run
    is resumed.

    Args:
        values: an `Order`, as plain values.

    Raises:
        BatchFault: the task's stored state cannot be read or written.
    """
    order = Order(**{**values, "words": tuple(values["words"])})
    folder = TaskFolder(Path(order.folder))

    def is_over() -> bool:
        return not is_locked(order.led)

    with folder.held(is_over, order.poll) as lock:
        record = folder.read() or TaskRecord(id=order.id, digest=order.digest)
        if lock is not None and not record.is_over:
            if record.tries and record.tries[-1].was_killed:
                _wait(order.settle, order.poll, is_over)  # its agents write to the same clone until they have exited
            if not is_over():
                record = _Work(order, folder, lock).done(record)
    return record.as_json()


def _wait(seconds: float, poll: float, is_over: Callable[[], bool]) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not is_over():
        time.sleep(poll)


class _Work:
    def __init__(self, order: Order, folder: TaskFolder, lock: int) -> None:
        self._order = order
        self._folder = folder
        self._lock = lock
        self._tree = folder.path / CLONE
        self._clone = Clone(self._tree, order.clone_timeout, lock)
        self._record = TaskRecord(id=order.id, digest=order.digest)

    def done(self, record: TaskRecord) -> TaskRecord:
        """One attempt; returns the stored record afterwards."""
        self._keep(record.replace(tries=(*record.tries, Try(begun=time.time(), host=socket.gethostname()))))
        try:
            if not self._tree.is_dir():
                base = self._clone.make(self._order.repository, self._order.base, self._order.branch)
                self._keep(self._record.replace(base=base))
            self._run()
        except (MarvinError, OSError) as error:  # such as a missing repository: other tasks continue
            this = self._record.tries[-1]
            if this.ended is None:  # no run was started
                self._tried(ended=time.time(), cost=0.0)
            self._keep(self._record.replace(state="failed", reason=one_line(str(error), _WHY)))
        return self._record

    def _keep(self, record: TaskRecord) -> None:
        self._record = record
        self._folder.write(record)

    def _tried(self, **fields: Any) -> None:
        """Store what is known of this attempt."""
        tries = self._record.tries
        self._record = self._record.replace(tries=(*tries[:-1], tries[-1].replace(**fields)))

    def _run(self) -> None:
        order, path = self._order, self._folder.path
        write_whole(path / PROMPT, f"{order.prompt}\n".encode())
        log = path / LOG
        before = log.stat().st_size if log.exists() else 0
        place = Place(
            folder=self._tree,
            log=log,
            summary=path / SUMMARY,
            variables={
                "TICKETS_DIR": str(self._tree / ".tickets"),
                **({"MARVIN_LEDGER": order.ledger} if order.ledger else {}),
            },
            lock=self._lock,
        )
        words = ("--non-interactive", "--design-first", f"--working-dir={self._tree}", *order.words)
        child = Child([*words, f"--prompt-file={path / PROMPT}"], place)
        code = child.wait(lambda: not is_locked(order.led), order.poll, order.grace)
        said = _tail(log, before)
        cost, line = _cost(said)
        self._tried(ended=time.time(), exit_code=code, cost=cost, cost_line=line)
        if code < 0 or code == _INTERRUPTED:  # it was killed or stopped early, and will be resumed
            self._keep(self._record.replace(reason=f"Its run was stopped: {_ending(code)}."))
        else:
            self._keep(self._judged(self._record, code, said))

    def _judged(self, record: TaskRecord, code: int, said: str) -> TaskRecord:
        order, report = self._order, self._collected()
        state = _STATES.get(code, "failed")
        reason = str(report.get("reason") or "") or ("" if code == 0 else _said(said) or _ending(code))
        record = record.replace(
            state=state,
            reason=one_line(reason, _WHY) if reason else "",
            next_phase=str(report.get("next_phase") or ""),
            commit=self._clone.head(),
            is_strict="--strict" in order.words,
        )
        if order.push and record.commit and record.commit != record.base:
            try:
                self._clone.push(order.repository, order.branch)
                record = record.replace(pushed=True)
            except MarvinError as error:
                told = f"{record.reason} {error}".strip()
                record = record.replace(state="failed" if state == "passed" else state, reason=told)
        return record

    def _collected(self) -> Mapping[str, Any]:
        """Copy the reports of the run; returns the JSON report, empty if there is no readable one.

        The agents work in the same folder, so links are not followed, and only regular files are copied.
        """
        files, place = ProjectFiles(self._tree), self._folder.path / REPORT
        place.mkdir(exist_ok=True)
        found = [name for name in files.names(_REPORTS) if _NAME.fullmatch(name)][:_FILES]
        for name in (*(f"{_REPORTS}/{name}" for name in found), RUN_REPORT):
            if (content := _read(files, name)) is not None:
                write_whole(place / Path(name).name, content)
        try:
            value = json.loads(_read(files, RUN_REPORT) or b"")
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}


def _read(files: ProjectFiles, name: str) -> bytes | None:
    try:
        return files.read(name, _LARGEST)
    except MarvinError:  # such as a folder in its place
        return None


def _tail(path: Path, since: int) -> str:
    """The end of the text that was appended to a file."""
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        file.seek(max(since, size - _TAIL))
        return file.read(_TAIL).decode("utf-8", "replace")


def _cost(said: str) -> tuple[float | None, str]:
    """The cost of a run in USD, and the line with it; None and nothing if unknown."""
    last = said.rstrip("\n").rpartition("\n")[2]
    if not last.startswith(_COST):
        return None, ""
    try:
        cost = json.loads(last.removeprefix(_COST))["session_cost"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None, ""
    return (float(cost) if isinstance(cost, (int, float)) else None), last


def _said(said: str) -> str:
    """The last message of a run for people."""
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith(_COST)]
    return lines[-1].removeprefix("marvin: ") if lines else ""


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
