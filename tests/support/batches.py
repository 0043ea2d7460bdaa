"""Batches of the pipeline: repositories, task files, and their processes."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tests.e2e.support_e2e import Marvin, Running, wait_until
from tests.support.agents import processes_in


class Batches:
    """A file of tasks beside a repository, and the batches that do them.

    Args:
        marvin: the program; the repository is in its project.
    """

    def __init__(self, marvin: Marvin) -> None:
        self.marvin = marvin
        self.file = marvin.home.parent / "tasks.jsonl"
        self.results = marvin.home.parent / "results"
        marvin.make_repository()

    def tasks(self, count: int = 0, *lines: Mapping[str, Any]) -> None:
        """Write the file: so many like tasks, t01 and so on, and these lines behind them."""
        like = [{"id": f"t{number:02}", "prompt": f"Build adder number {number}."} for number in range(1, count + 1)]
        written = [{"repository": str(self.marvin.project), **line} for line in (*like, *lines)]
        self.file.write_text("".join(f"{json.dumps(line)}\n" for line in written))

    def words(self, *more: str) -> list[str]:
        """The command line."""
        return ["pipeline", "batch", str(self.file), f"--results={self.results}", "--until=1a", *more]

    def start(self, *more: str) -> Running:
        """Start a batch."""
        return self.marvin.start(*self.words(*more))

    def record(self, name: str) -> dict[str, Any]:
        """The record of a task; empty if it was not started."""
        try:
            found: dict[str, Any] = json.loads((self.results / name / "task.json").read_text())
        except FileNotFoundError:
            return {}
        return found

    def at_work(self, running: Running, least_over: int) -> int:
        """The process of a running task, once this many others are finished."""
        found: list[int] = []

        def is_so() -> bool:
            found[:] = self.pipelines() if len(self.over()) >= least_over else []
            return bool(found)

        running.until(is_so, f"{least_over} tasks that are over, and one that is not")
        return found[0]

    def over(self) -> dict[str, bytes]:
        """The records of the finished tasks."""
        files = self.results.glob("*/task.json")
        contents = {file.parent.name: file.read_bytes() for file in files}
        return {name: content for name, content in contents.items() if json.loads(content)["state"] != "waiting"}

    def index(self) -> dict[str, Any]:
        """The report for programs."""
        found: dict[str, Any] = json.loads((self.results / "index.json").read_text())
        return found

    def states(self) -> dict[str, str]:
        """By task, its state in that report."""
        return {task["id"]: task["state"] for task in self.index()["tasks"]}

    def junit(self) -> ElementTree.Element:
        """The suite of the report for CI."""
        suite = ElementTree.parse(self.results / "junit.xml").getroot().find("testsuite")
        assert suite is not None
        return suite

    def journal(self, name: str) -> list[dict[str, Any]]:
        """What happened in all runs of a task."""
        lines = (self.results / name / "repository/.marvin/logs/pipeline.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def phases_done(self, name: str) -> list[str]:
        """The phases that came to their end in all runs of a task."""
        ends = [line for line in self.journal(name) if line["event"] == "phase_end"]
        return [line["phase"] for line in ends if line["outcome"] != "failed"]

    def git(self, name: str, *words: str) -> str:
        """What git prints in the clone of a task."""
        return self.marvin.git(*words, cwd=self.results / name / "repository")

    def pipelines(self) -> list[int]:
        """The runs of the pipeline that are at work for tasks (Linux)."""
        return self._pids(b"--design-first\0")

    def everything(self) -> list[int]:
        """All processes of Marvin (Linux)."""
        return self._pids(b"marvin_core\0")

    def _pids(self, word: bytes) -> list[int]:
        found = []
        home = f"HOME={self.marvin.home}\0".encode()
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                with suppress(OSError):
                    mine = home in (folder / "environ").read_bytes()
                    if mine and word in (folder / "cmdline").read_bytes():
                        found.append(int(folder.name))
        return found

    def kill_everything(self) -> None:
        """Kill all processes at once, as when the system runs out of memory."""
        for pid in self.everything():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def until_nothing_runs(self) -> None:
        """Wait until nothing of a batch is left."""
        wait_until(lambda: not processes_in(self.marvin.home), "the end of all processes")
