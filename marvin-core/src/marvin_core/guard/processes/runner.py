"""The only way to a child process: apart from the terminal, bounded, and ended with all that it started."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ...api.errors import ToolError
from ...api.tool_context import Job, ProcessResult

if TYPE_CHECKING:
    import subprocess

    from ...api.timeouts import Timeouts
    from .child import Capture, Child, Sink
    from .jobs import KeptJob


class WorkFolders(Protocol):
    """Where programs run and where logs go, asked anew each time."""

    @property
    def root(self) -> Path:
        """The folder programs run in where a call names none."""
        ...

    def folder(self, name: str) -> Path:
        """The folder of this name for what Marvin itself writes, such as `logs`."""
        ...


class ProcessRunner:
    """Runs programs for the tools of one session.

    Args:
        folders: where programs run and jobs write their logs.
        child_env: the environment of every child, already without secrets and git's local variables.
        timeouts: how long to wait for what.
    """

    def __init__(self, folders: WorkFolders, child_env: Mapping[str, str], timeouts: Timeouts) -> None:
        self._folders = folders
        self._child_env = child_env
        self._timeouts = timeouts
        self._children: set[Child] = set()
        self._jobs: dict[str, KeptJob] = {}
        self._last_job = 0
        self._endings: set[asyncio.Task[None]] = set()
        self._closed = False

    @staticmethod
    def prepare() -> None:
        """Import and set up what the first child needs; may run in a thread."""
        import subprocess  # noqa: F401

        from . import child, jobs  # noqa: F401
        from .tree import adopts_orphans

        adopts_orphans()

    def which(self, program: str) -> str | None:
        """Where a program is in the children's PATH, or None. Relative folders of PATH do not count.

        A program from the current folder would be whatever the project that Marvin works on put there.
        """
        folders = [""] if "/" in program else self._child_env.get("PATH", os.defpath).split(os.pathsep)
        for folder in folders:
            candidate = os.path.join(folder, program)
            if os.path.isabs(candidate) and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
                return candidate
        return None

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
    ) -> ProcessResult:
        """Run a program to its end; afterwards no descendant of it is alive.

        It has no terminal, and reads `stdin` or nothing. When it has ended, its output is read
        for `timeouts.output_tail` at most.

        Args:
            timeout: seconds; when they are over the result says `timed_out`.
            output_limit: bytes kept of each stream, half from its head and half from its tail.
            env: variables added to the child's environment.
            leave_jobs: what the program leaves running becomes a job instead of being killed.

        Raises:
            ToolError: where the program does not exist or cannot be started.
        """
        from .child import Capture

        begin = time.monotonic()
        output, errors = Capture(output_limit), Capture(output_limit)
        sinks = [output] if merge_stderr else [output, errors]
        child = self._start(argv, cwd or self._folders.root, stdin, sinks, env)
        if timeout is not None:
            child.expire_after(timeout)
        job = await self._finished(child, argv, (output, errors) if leave_jobs else None)
        return _result(child, output, errors).replace(elapsed=time.monotonic() - begin, job=job)

    async def _finished(self, child: Child, argv: Sequence[str], kept: tuple[Capture, Capture] | None) -> str:
        """Wait for a program, and end what it left; or make a job of that, which begins with what was `kept`.

        Returns:
            The id of the job; "" where there is none.
        """
        job = ""
        try:
            await child.finished
            if kept is not None and not child.timed_out:
                job = await self._keep_rest(child, argv, *kept)
        finally:
            if not job:
                await self._end(child)
            self._children.discard(child)
        return job

    def _start(
        self,
        argv: Sequence[str],
        cwd: Path,
        stdin: bytes | None,
        sinks: Sequence[Sink],
        env: Mapping[str, str] | None,
    ) -> Child:
        """Start a program that writes to one sink, standard error merged, or to two."""
        from .child import Child
        from .tree import MARKER, Family, adopts_orphans, ticks

        if self._closed:
            raise ToolError("The session is closing: no program is started any more.")
        program = argv[0] if "/" in argv[0] else self.which(argv[0])
        if program is None:
            raise ToolError(f"{argv[0]!r} is not installed, or not in PATH. Install it or use another program.")
        adopts_orphans()
        token = os.urandom(8).hex()
        environment = {**self._child_env, **(env or {})}
        environment[MARKER] = f"{environment.get(MARKER, '')}{token}."
        since = ticks()
        try:
            popen, ours = _spawn(program, argv, cwd, environment, outputs=len(sinks), has_input=bool(stdin))
        except (OSError, ValueError) as error:
            raise ToolError(_why_not_started(argv, cwd, error)) from error
        outputs = dict(zip(ours, sinks, strict=False))
        child = Child(popen, Family(popen.pid, token, since), outputs, self._timeouts.output_tail)
        self._children.add(child)
        if stdin:
            child.feed(ours[-1], stdin)
        return child

    async def _keep_rest(self, child: Child, argv: Sequence[str], output: Capture, errors: Capture) -> str:
        """Make a job of what the program left running; its id, or "" where nothing is left."""
        from .jobs import KeptJob, open_log

        # What closed its output is as a rule about to end: the `cat` of `> >(cat)` is no job.
        deadline = time.monotonic() + (self._timeouts.settle if child.output_ended else 0)
        while not child.family.is_gone():
            if time.monotonic() < deadline:
                await asyncio.sleep(self._timeouts.kill_poll)
                continue
            self._last_job, log = open_log(self._folders.folder("logs"), self._last_job + 1)
            log.add(output.data)
            log.add(errors.data)
            child.stop_timers()
            child.redirect(log)
            child.family.outlive_call()
            command = argv[2] if len(argv) == 3 and argv[1] == "-c" else " ".join(argv)
            kept = KeptJob(str(self._last_job), command, child, log)
            self._jobs[kept.id] = kept
            return kept.id
        return ""

    async def _end(self, child: Child) -> None:
        """See to it that nothing of a call is alive. Costs next to nothing where nothing is."""
        if child.exit_code is not None and child.family.is_gone():
            child.close()
            return
        ending = asyncio.ensure_future(self._kill(child))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)
        # A second cancel ends the waiting; the killing goes on.
        await asyncio.shield(ending)

    async def _kill(self, child: Child) -> None:
        family, timeouts = child.family, self._timeouts
        try:
            family.ask_to_end()
            await self._until(lambda: not family.is_alive(), timeouts.terminate)
        finally:
            family.kill()
            child.close()
        await self._until(lambda: child.exit_code is not None and not family.kill(), timeouts.kill_limit)

    async def _until(self, reached: Callable[[], bool], limit: float) -> None:
        deadline = time.monotonic() + limit
        while True:
            if reached() or time.monotonic() > deadline:
                return
            await asyncio.sleep(self._timeouts.kill_poll)

    def job_list(self) -> Sequence[Job]:
        """The jobs of this session, oldest first."""
        return [job.look() for job in self._jobs.values()]

    async def stop_job(self, job_id: str) -> Job:
        """End a job and all its descendants; `ToolError` for an unknown one."""
        job = self._jobs.get(job_id)
        if job is None:
            known = ", ".join(self._jobs) or "none; a command that leaves something running makes one"
            raise ToolError(f"There is no job {job_id!r}. Jobs of this session: {known}.")
        if job.look().running:
            await self._end(job.child)
        return job.look()

    async def close(self) -> None:
        """End every job and every call that still runs, and start nothing any more."""
        self._closed = True
        rest = self._children | {job.child for job in self._jobs.values() if job.look().running}
        await asyncio.gather(*(self._end(child) for child in rest), *self._endings)
        for job in self._jobs.values():
            job.look()
            job.log.close()

    def kill(self) -> None:
        """Kill everything that was started, at once, and start nothing any more. Blocks for some milliseconds."""
        self._closed = True
        for child in self._children | {job.child for job in self._jobs.values()}:
            child.family.kill()


def _result(child: Child, output: Capture, errors: Capture) -> ProcessResult:
    return ProcessResult(
        exit_code=None if child.timed_out else child.exit_code,
        output=output.data,
        stderr=errors.data,
        omitted=output.omitted + errors.omitted,
        timed_out=child.timed_out,
        elapsed=0.0,
    )


def _spawn(
    program: str, argv: Sequence[str], cwd: Path, env: Mapping[str, str], *, outputs: int, has_input: bool
) -> tuple[subprocess.Popen[bytes], Sequence[int]]:
    """The program and our ends of its pipes: one or two outputs, then its input."""
    import subprocess  # it costs 10 ms, and a run without tools needs none of it

    pipes: list[int] = []
    try:
        for _ in range(outputs):
            pipes += os.pipe()
        if has_input:
            pipes += reversed(os.pipe())
        theirs = pipes[1::2]
        popen = subprocess.Popen(
            argv,
            executable=program,
            cwd=cwd,
            env=env,
            stdin=theirs[-1] if has_input else subprocess.DEVNULL,
            stdout=theirs[0],
            stderr=theirs[1] if outputs > 1 else subprocess.STDOUT,
            start_new_session=True,
        )
    except BaseException:
        for descriptor in pipes:
            os.close(descriptor)
        raise
    for descriptor in theirs:
        os.close(descriptor)
    return popen, pipes[::2]


def _why_not_started(argv: Sequence[str], cwd: Path, error: OSError | ValueError) -> str:
    import errno

    name = argv[0]
    if not isinstance(error, OSError):
        return f"{name} was not started: {error}. Arguments and variables may not hold a NUL byte."
    if not cwd.is_dir():
        return f"{name} was not started: the folder {cwd} does not exist. Make it again, or work in another folder."
    if error.filename == str(cwd) or not os.access(cwd, os.X_OK):
        return f"{name} was not started: the folder {cwd} may not be entered. Use another working directory."
    if error.errno == errno.E2BIG:
        return f"{name} was not started: its arguments are too long. Hand them over in a file or a script."
    if error.errno == errno.ENOENT:
        return f"{name} was not started: it, or the interpreter that its first line names, does not exist."
    if error.errno == errno.EACCES:
        return f"{name} was not started: it is not executable. Use chmod +x, or name its interpreter."
    if error.errno == errno.ENOEXEC:
        return f"{name} was not started: it is no program, and has no '#!' line. Name its interpreter."
    return f"{name} was not started: {error.strerror}. End what is not needed, then try again."
