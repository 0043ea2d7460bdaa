"""Access to child processes for one call, with a record of actions that the sandbox blocked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ...api.processes import Job, ProcessResult
from ...guard.processes.runner import ProcessRunner
from .timer import CallTimer


class CallProcesses:
    """The `Processes` of one call, whose time-out is `timer`. `outside`: its programs run outside of the sandbox."""

    def __init__(self, runner: ProcessRunner, timer: CallTimer, *, outside: bool) -> None:
        self._runner = runner
        self._timer = timer
        self._outside = outside
        self.held_back: list[str] = []
        """The actions of its programs that the sandbox blocked, and other notes about them."""
        self.which = runner.which
        self.job_list = runner.job_list
        self.converse = runner.converse
        self.stop_job = runner.stop_job
        self.job_output = runner.job_output

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        stdin: bytes | None = None,
        timeout: float | None = None,
        output_limit: int = 1_000_000,
        merge_stderr: bool = False,
        env: Mapping[str, str] | None = None,
        leave_jobs: bool = False,
        outside: bool = False,
        enough: Callable[[bytes], bool] | None = None,
        keep_output: bool = False,
        on_output: Callable[[str], None] | None = None,
        title: str = "",
        interrupt: bool = False,
    ) -> ProcessResult:
        """Run a program to its end, as the session's runner does."""
        with self._runner.counted(self._timer):
            result = await self._runner.run(
                argv,
                cwd=cwd,
                stdin=stdin,
                timeout=timeout,
                output_limit=output_limit,
                merge_stderr=merge_stderr,
                env=env,
                leave_jobs=leave_jobs,
                outside=outside or self._outside,
                enough=enough,
                keep_output=keep_output,
                on_output=on_output,
                title=title,
                interrupt=interrupt,
                as_typed=self._outside and not outside,
            )
        if result.held_back and result.held_back not in self.held_back:
            self.held_back.append(result.held_back)
        return result

    async def start_job(
        self, argv: Sequence[str], *, cwd: Path | None = None, stdin: bytes | None = None, title: str = ""
    ) -> Job:
        """Start a program as a job, as the session's runner does."""
        with self._runner.counted(self._timer):
            return await self._runner.start_job(argv, cwd=cwd, stdin=stdin, title=title, outside=self._outside)
