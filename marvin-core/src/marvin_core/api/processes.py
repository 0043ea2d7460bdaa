"""Child processes of tools: running programs, their results, and background jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from .record import Record


class ProcessResult(Record):
    """The result of a child process. `output` is standard output and, if merged, standard error.

    `exit_code` is negative for a signal, None after a time-out. `omitted` counts the bytes dropped from the middle of
    the output. `job` names the job that still runs in the background. `held_back` says what the sandbox blocked, as far
    as the output shows; models are told anyway. `file` holds the whole output, or the first `file_size` bytes of a very
    long one, if some of it was dropped and `keep_output` was set.
    """

    exit_code: int | None
    output: bytes
    stderr: bytes = b""
    omitted: int = 0
    timed_out: bool = False
    elapsed: float = 0.0
    job: str = ""
    held_back: str = ""
    file: Path | None = None
    file_size: int = 0


class Conversation(Protocol):
    """A running program with pipes to its standard input and output. It ends with the session at the latest."""

    @property
    def pid(self) -> int: ...
    @property
    def running(self) -> bool: ...
    @property
    def sandboxed(self) -> bool:
        """Whether it runs in a sandbox."""
        ...

    def send(self, data: bytes) -> None:
        """Write to its standard input without blocking.

        Raises `ToolError` if it has ended, or does not read its input.
        """
        ...

    async def close(self) -> None:
        """Close its input. If it does not end within this time, it is killed with all its descendants."""
        ...


class Processes(Protocol):
    """Starts child processes. Tools must not start them in any other way."""

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
        """Run a program to its end; afterwards none of its descendants is running.

        It runs in the sandbox, if there is one.

        Args:
            timeout: seconds; after them the program is killed and the result says `timed_out`.
            output_limit: the bytes kept of each stream, half from its head and half from its tail.
            env: variables added to the child's environment.
            leave_jobs: processes that the program leaves running become a job instead of being killed.
            outside: run it outside of the sandbox. Only for programs that neither a model nor the repository
                influences; for requests of a model use its own parameter `outside`, which needs the user's
                approval.
            enough: called with each piece of standard output; once it returns True the program is killed and
                its exit code is 0.
            keep_output: keep standard output of more than `output_limit` bytes in a file, which the result names.
            on_output: called while the program runs, from `timeouts.output_first` on, at most 20 times a second,
                with the whole lines since the last call, at most the newest 4,000 bytes of them. `context.progress`
                fits.
            title: the title of a job that it leaves; by default its arguments.
            interrupt: if it is ended early, interrupt it and its descendants first, as Ctrl+C does, and give them
                `timeouts.interrupt` to clean up.

        Raises:
            ToolError: the program does not exist or cannot be started.
        """
        ...

    async def start_job(
        self, argv: Sequence[str], *, cwd: Path | None = None, stdin: bytes | None = None, title: str = ""
    ) -> Job:
        """Start a program as a job of the session, and return at once. Both of its output streams go to the log.

        `title` is as of `run`. Raises `ToolError` if the program cannot be started, or the log cannot be written.
        """
        ...

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
        """Start a program with pipes, and return at once. It runs in the sandbox, if there is one.

        It outlives the call, so keep it in a `ToolContext.resource` that closes it. On Linux it ends with Marvin, even
        if Marvin is killed.

        Args:
            on_output: called with each piece of its standard output.
            on_end: called once when it has ended or was closed, or is ended because it closed one of these pipes.
            on_error: called with each piece of its standard error, which is dropped by default.
            outside: run it outside of the sandbox, as `run` does.

        Raises:
            ToolError: the program does not exist or cannot be started.
        """
        ...

    def which(self, program: str, *, outside: bool = False) -> str | None:
        """The path of a program in the PATH of child processes, or None. Relative folders of PATH are skipped.

        For programs that run `outside` of the sandbox folders of a project are skipped as well: commands can write
        there.
        """
        ...

    def job_list(self) -> Sequence[Job]:
        """The jobs of this session, oldest first."""
        ...

    async def stop_job(self, job_id: str) -> Job:
        """Kill a job and all its descendants. Raises `ToolError` for an unknown job."""
        ...

    def job_output(self, job_id: str, most: int, since: int = 0) -> tuple[bytes, int]:
        """The newest `most` bytes of a job's output after the first `since`, and the size of the whole output.

        Raises `ToolError` for an unknown job.
        Do not open the log file instead: a command may have replaced it.
        """
        ...


class Job(Record):
    """A process that outlived its command. `log` is the path of its output; `running` is its state at this moment.

    `exit_code` is set for an ended job that was started as one, negative for a signal; otherwise it is None.
    """

    id: str
    command: str
    log: Path
    pid: int
    running: bool
    exit_code: int | None = None
