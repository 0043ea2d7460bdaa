"""Runs child processes: without a terminal, with limits, and killed with all their descendants."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...api.errors import ToolError
from ...api.limits import Limits
from ..search_path import ProgramSearch
from .endings import Endings
from .standstill import Standstill

if TYPE_CHECKING:
    from ...api.processes import Conversation, Job, ProcessResult
    from ...api.timeouts import Timeouts
    from .agents import AgentLife
    from .apart import ApartJobs
    from .child import Capture, Child, Sink
    from .jobs import JobLog, KeptJob
    from .program import Launcher, Program, Sandbox
    from .surroundings import WorkFolders
    from .tree import Family


class ProcessRunner(Standstill):
    """Runs programs for the tools of one session.

    Args:
        folders: the folders in which programs run and jobs write their logs.
        child_env: the environment of every child, already without secrets and git's local variables.
        timeouts: the time limits.
        sandbox: the sandbox for programs; without one they run unconfined.
        limits: how much output is kept in files; without them the defaults apply.
    """

    def __init__(
        self,
        folders: WorkFolders,
        child_env: Mapping[str, str],
        timeouts: Timeouts,
        sandbox: Sandbox | None = None,
        limits: Limits | None = None,
    ) -> None:
        super().__init__()
        self._folders = folders
        self._limits = limits or Limits()
        self._sandbox = sandbox
        self._child_env = child_env
        self._timeouts = timeouts
        self._jobs: dict[str, KeptJob] = {}
        self._put_away: dict[str, KeptJob] = {}
        self._last_job = 0
        self._programs = ProgramSearch(child_env, lambda: folders.root)
        self._endings = Endings(timeouts)
        self._end, self.until = self._endings.end, self._endings.until
        self._closed = False
        self.apart: Callable[[], ApartJobs | None] = lambda: None
        """Returns the Marvins that outlive this one; those of this folder are listed and stopped like jobs. It is
        called each time, since another Marvin may start the first one. None if there are none."""
        self.marks: Callable[[], Mapping[str, str]] = dict
        """Additional variables of a program that depend on its caller, such as the tool call."""

    @staticmethod
    def prepare() -> None:
        """Import and set up the dependencies of the first child; may run in a thread."""
        import subprocess  # noqa: F401

        from . import child, jobs, program, tree  # noqa: F401
        from .table import adopts_orphans

        adopts_orphans()

    def which(self, program: str, *, outside: bool = False) -> str | None:
        """The path of a program in the children's PATH, or None; see `Processes.which`."""
        return self._programs.find(program, outside=outside)

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
        agent: AgentLife | None = None,
        as_typed: bool = False,
    ) -> ProcessResult:
        """Run a program to its end, as `Processes.run` does; afterwards no descendant of it is alive.

        It has no terminal, and reads `stdin` or nothing. After its end, its output is read for at most
        `timeouts.output_tail`. An `agent` is a Marvin, which ends itself when its standard input closes. With
        `as_typed`, a command that a person runs outside finds programs as their shell does, including those of
        projects.

        Raises:
            ToolError: if the program does not exist or cannot be started.
        """
        from .child import Capture, result_of
        from .outputs import KeptOutput, Reports
        from .program import title_of

        begin, where = time.monotonic(), cwd or self._folders.root
        output, errors = Capture(output_limit), Capture(output_limit)
        sinks: list[Sink] = [output] if merge_stderr else [output, errors]
        launcher = await self._launcher(outside=outside)
        argv = self._programs.located(argv) if outside else argv
        if outside and not as_typed and agent is None:
            env = {"PATH": self._programs.outside, **(env or {})}
        with ExitStack() as stack:
            kept = None
            if keep_output:
                kept = KeptOutput(output, self._folders.root, partial(self._folders.folder, "logs"), self._limits)
                sinks[0] = stack.enter_context(closing(kept))
            if on_output is not None:
                sinks = [stack.enter_context(closing(Reports(sink, on_output, self._timeouts))) for sink in sinks]
            child = await self._start(launcher, argv, where, stdin, sinks, env, agent)
            if timeout is not None:
                child.expire_after(timeout)
            if enough is not None:
                child.end_when(enough)
            if interrupt:
                child.yield_to_interrupt(self._timeouts.interrupt)
            job = await self._finished(child, title or title_of(argv), (output, errors) if leave_jobs else None)
        result = result_of(child, output, errors).replace(elapsed=time.monotonic() - begin, job=job)
        if kept is not None and kept.path is not None:
            result = result.replace(file=kept.path, file_size=kept.size)
        return result if launcher is None else result.replace(held_back=self._held_back(launcher, result, where))

    async def _launcher(self, *, outside: bool) -> Launcher | None:
        if self._closed:
            raise ToolError("The session is closing, so no program can be started.")
        return None if outside or self._sandbox is None else await self._sandbox.launcher()

    def _held_back(self, launcher: Launcher, result: ProcessResult, cwd: Path) -> str:
        """The sandbox's notes about a program that has ended."""
        news = self._sandbox.news() if self._sandbox is not None else ""
        said = launcher.explain(result.output + result.stderr, cwd) if result.exit_code else ""
        return "\n".join(filter(None, (news, said)))

    async def start_job(
        self,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        stdin: bytes | None = None,
        title: str = "",
        outside: bool = False,
    ) -> Job:
        """Start a program as a job, as `Processes.start_job` does; `outside` of the sandbox if that is given."""
        from .program import title_of

        launcher = await self._launcher(outside=outside)
        argv = self._programs.located(argv) if outside else argv
        where = cwd or self._folders.root
        log = self._open_log()
        try:
            child = await self._start(launcher, argv, where, stdin, [log], None)
        except BaseException:
            log.close()
            raise
        try:
            # An immediate failure is reported at once.
            await self.until(child.exited.is_set, self._timeouts.settle)
        except BaseException:
            log.close()
            await self._end(child)
            raise
        finally:
            self._children.discard(child)
        return self._keep_job(title or title_of(argv), child, log, is_whole=True).look()

    async def converse(
        self,
        argv: Sequence[str],
        *,
        on_output: Callable[[bytes], None],
        on_end: Callable[[], None],
        on_error: Callable[[bytes], None] | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        outside: bool = False,
    ) -> Conversation:
        """Start a program to converse with, as `Processes.converse` does."""
        from .conversation import bound_to_us, outside_of_sandboxes, sinks, talk_with

        launcher = await self._launcher(outside=outside)
        argv, env = outside_of_sandboxes(self._programs, argv, env) if outside else (argv, env)
        argv = bound_to_us(self.which, argv) if launcher is None else argv
        given, grace = (cwd or self._folders.root, None, sinks(on_output, on_error), env), self._timeouts.terminate
        child = await self._start(launcher, argv, *given, grace=grace)
        return talk_with(child, (self._end, self._children.discard), on_end, sandboxed=launcher is not None)

    def _open_log(self) -> JobLog:
        from .jobs import open_log

        self._last_job, log = open_log(self._folders.root, lambda: self._folders.folder("logs"), self._last_job + 1)
        return log

    def _keep_job(self, title: str, child: Child, log: JobLog, *, is_whole: bool) -> KeptJob:
        from .jobs import KeptJob

        child.family.outlive_call()
        kept = KeptJob(title, child, log, is_whole=is_whole)
        return self._jobs.setdefault(kept.id, kept)

    async def _finished(self, child: Child, title: str, kept: tuple[Capture, Capture] | None) -> str:
        """Wait for a program, then end its leftover processes, or make a job of them that begins with `kept`.

        Returns:
            The id of the job; "" if there is none.
        """
        job = ""
        try:
            await child.finished
            if kept is not None and not child.timed_out:
                job = await self._keep_rest(child, title, *kept)
        finally:
            if not job:
                await self._end(child)
            self._children.discard(child)
        return job

    async def _start(
        self,
        launcher: Launcher | None,
        argv: Sequence[str],
        cwd: Path,
        stdin: bytes | None,
        sinks: Sequence[Sink],
        env: Mapping[str, str] | None,
        agent: AgentLife | None = None,
        grace: float = 0.0,
    ) -> Child:
        """Start a program that writes to one or two sinks; with `grace`, seconds to shut down, its input stays open."""
        from .child import Child
        from .program import Pipes, Request, launched, why_not_started
        from .table import OWN, adopts_orphans, ticks
        from .tree import MARKER, Family

        program = argv[0] if "/" in argv[0] else self.which(argv[0])
        if program is None:
            raise ToolError(f"{argv[0]!r} is not installed, or not in PATH. Install it or use another program.")
        adopts_orphans()
        token = os.urandom(8).hex()
        environment = {**self._child_env, **(env or {})} if agent is None else dict(agent.environment)
        environment.update(self.marks())
        environment[MARKER] = f"{environment.get(MARKER, '')}{token}."
        if launcher is not None:
            environment = launcher.environment(environment)
        since = ticks()

        def family(started: Program) -> Family:
            return Family(started.pid, token, since, OWN if launcher is None else launcher.place)

        pipes = Pipes(outputs=len(sinks), has_input=bool(stdin or grace) or agent is not None)
        try:
            if agent is not None:
                environment[agent.lifeline] = pipes.stamp
            request = Request(program=program, argv=argv, cwd=cwd, environment=environment, descriptors=pipes.theirs)
            started = await launched(launcher, request, family, self._timeouts.process_backoff)
            outputs = dict(zip(pipes.outputs(len(sinks)), sinks, strict=True))
            child = Child(started, family(started), outputs, self._timeouts.output_tail)
            self._children.add(child)
            if stdin:
                child.feed(pipes.input(), stdin)
            elif agent is not None or grace:
                child.hold(pipes.input(), grace if agent is None else agent.grace)
            return child
        except (OSError, ValueError) as error:
            raise ToolError(why_not_started(argv, cwd, error)) from error
        finally:
            pipes.close()

    async def _keep_rest(self, child: Child, title: str, output: Capture, errors: Capture) -> str:
        """Make a job of processes that the program left running; its id, or "" if there are none."""
        # A process that closed its output is usually about to end: the `cat` of `> >(cat)` is not a job.
        deadline = time.monotonic() + (self._timeouts.settle if child.output_ended else 0)
        while not child.family.is_gone():
            if time.monotonic() < deadline:
                await asyncio.sleep(self._timeouts.kill_poll)
                continue
            log = self._open_log()
            log.add(output.data)
            log.add(errors.data)
            child.stop_timers()
            child.redirect(log)
            return self._keep_job(title, child, log, is_whole=False).id
        return ""

    def job_list(self) -> Sequence[Job]:
        """The jobs of this session, oldest first, then the background Marvins of its folder."""
        apart = self.apart()
        running = () if apart is None else apart.running(self._folders.root)
        return [*(job.look() for job in self._jobs.values()), *running]

    async def stop_job(self, job_id: str) -> Job:
        """End a job and all its descendants; `ToolError` for an unknown one."""
        if (apart := self._apart_with(job_id)) is not None:
            return await apart.stop(job_id)
        job = self._job(job_id)
        if job.look().running:
            await self._end(job.child)
        return job.look()

    def job_output(self, job_id: str, most: int, since: int = 0) -> tuple[bytes, int]:
        """The newest bytes of a job's output and the total size; `ToolError` for an unknown job."""
        if (apart := self._apart_with(job_id)) is not None:
            return apart.output(job_id, most, since)
        return self._job(job_id).log.newest(most, since)

    def _apart_with(self, job_id: str) -> ApartJobs | None:
        """The background Marvins, if the job is one of them and of this folder; it may have ended."""
        apart = None if job_id in self._jobs else self.apart()
        return None if apart is None or apart.find(job_id, self._folders.root) is None else apart

    def _job(self, job_id: str) -> KeptJob:
        job = self._jobs.get(job_id)
        if job is None:
            known = ", ".join(one.id for one in self.job_list())
            known = known or "none; a command that runs in the background becomes one"
            raise ToolError(f"There is no job {job_id!r}. Jobs of this session: {known}.")
        return job

    @asynccontextmanager
    async def jobs_apart(self) -> AsyncIterator[None]:
        """Hide the current jobs, and protect them from being stopped, while the context lasts; new ones end with it."""
        self._put_away, self._jobs = self._jobs, {}
        try:
            yield
        finally:
            ended, self._jobs, self._put_away = self._jobs, self._put_away, {}
            await self._end_jobs(ended)

    async def _end_jobs(self, jobs: Mapping[str, KeptJob]) -> None:
        await asyncio.gather(*(self._end(job.child) for job in jobs.values() if job.look().running))
        for job in jobs.values():
            job.look()
            job.log.close()

    async def close(self) -> None:
        """End all jobs and running calls, and start no more programs."""
        self._closed = True
        children = (self._end(child) for child in tuple(self._children))
        await asyncio.gather(
            *children, self._end_jobs({**self._put_away, **self._jobs}), *self._endings.running.values()
        )
        if self._sandbox is not None:
            await self._sandbox.close()

    def kill(self) -> None:
        """Kill everything that was started, at once, and start no more programs. Blocks for some milliseconds."""
        self._closed = True
        for child in self._children | {job.child for job in (*self._jobs.values(), *self._put_away.values())}:
            child.family.kill()
        if self._sandbox is not None:
            self._sandbox.kill()
