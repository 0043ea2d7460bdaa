"""What a tool reaches of other programs: how they are run, how they ended, and what they left running."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from .record import Record


class ProcessResult(Record):
    """How a child process ended. `output` is standard output and, where merged, standard error.

    `exit_code` is negative for a signal, None after a time-out. `omitted` counts the bytes that were dropped from the
    middle of the output, `job` names what still runs in the background. `held_back` says what the sandbox kept it from,
    where its output tells; models are told by themselves. `file` holds the whole output where some was dropped and it
    was to be kept, or the first `file_size` bytes of a very long one.
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
    """A program that is talked with over its standard input and output. It ends with the session at the latest."""

    @property
    def pid(self) -> int: ...
    @property
    def running(self) -> bool: ...
    @property
    def sandboxed(self) -> bool:
        """Whether it runs in a sandbox."""
        ...

    def send(self, data: bytes) -> None:
        """Write to its standard input, as it takes it, and do not wait.

        `ToolError` where it has ended, or does not read what was sent before.
        """
        ...

    async def close(self) -> None:
        """Close its input. Where it does not end by that soon, it is ended, with all that it started."""
        ...


class Processes(Protocol):
    """The only way to a child process."""

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
    ) -> ProcessResult:
        """Run a program to its end; afterwards no descendant of it is alive.

        It runs in the sandbox, where there is one.

        Args:
            timeout: seconds; when they are over the result says `timed_out`.
            output_limit: bytes kept of each stream, half from its head and half from its tail.
            env: variables added to the child's environment.
            leave_jobs: what the program leaves running becomes a job instead of being killed.
            outside: run it outside of the sandbox. This is for programs in which neither a model nor the repository
                has a say; what a model asks for goes outside by its own parameter `outside`, which a person is asked
                about.
            enough: gets each piece of standard output as it comes; once it returns True the program is ended and
                its exit code is 0.
            keep_output: standard output of more than `output_limit` is kept in a file, which the result names.
            on_output: called while the program runs, from `timeouts.output_first` on, at most 20 times a second, with
                the whole lines since the last call, the newest 4,000 bytes of them. `context.progress` fits.
            title: what a job is called that it leaves; without one, by its arguments.

        Raises:
            ToolError: where the program does not exist or cannot be started.
        """
        ...

    async def start_job(
        self, argv: Sequence[str], *, cwd: Path | None = None, stdin: bytes | None = None, title: str = ""
    ) -> Job:
        """Start a program as a job of the session, and do not wait for it. Its two streams go to the log.

        `title` is as of `run`. `ToolError` where the program cannot be started, or no log can be written.
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
        """Start a program to talk with, and do not wait for its end. It runs in the sandbox, where there is one.

        It outlives the call, so keep it in a `ToolContext.resource` that closes it. On Linux it ends with Marvin, even
        where that is killed.

        Args:
            on_output: gets its standard output, in pieces as they come.
            on_end: called once when it ends, by itself or closed.
            on_error: gets its standard error in the same way; without it that is dropped.
            outside: run it outside of the sandbox, as `run` does.

        Raises:
            ToolError: where the program does not exist or cannot be started.
        """
        ...

    def which(self, program: str, *, outside: bool = False) -> str | None:
        """Where a program is in the children's PATH, or None. Relative folders of PATH do not count.

        For what is run `outside` of the sandbox no folder of a project counts either, as commands can write there.
        """
        ...

    def job_list(self) -> Sequence[Job]:
        """The jobs of this session, oldest first."""
        ...

    async def stop_job(self, job_id: str) -> Job:
        """End a job and all its descendants; `ToolError` for an unknown one."""
        ...

    def job_output(self, job_id: str, most: int, since: int = 0) -> tuple[bytes, int]:
        """The newest bytes of a job's output, `most` of them, without the first `since`, and how many there were.

        `ToolError` for an unknown job.
        The file itself is not to be opened for that: a command may have put another one in its place.
        """
        ...


class Job(Record):
    """A process that outlived its command. `log` is the file its output goes to; `running` is as of now.

    `exit_code` is that of an ended job that was started as one, negative for a signal; of a command's rest it is None.
    """

    id: str
    command: str
    log: Path
    pid: int
    running: bool
    exit_code: int | None = None
