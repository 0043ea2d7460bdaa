"""A started program: a child of Marvin itself, or of another process."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ...api.record import Record
from ...util.threads import in_thread

if TYPE_CHECKING:
    import subprocess

    from .table import Place
    from .tree import Family


class Request(Record):
    """A program to start: `program` by its path, with the three standard descriptors.

    It starts a new session, without a terminal.
    """

    program: str
    argv: Sequence[str]
    cwd: Path
    environment: Mapping[str, str]
    descriptors: Sequence[int]


class Program(Protocol):
    """A program that is running or has ended."""

    @property
    def pid(self) -> int:
        """Its process id, as Marvin sees it."""
        ...

    @property
    def exit_code(self) -> int | None:
        """The exit status, negative for a signal; None while it is running."""
        ...

    def watch(self, on_exit: Callable[[], None]) -> None:
        """Register a function that the event loop calls once when the program has ended."""
        ...


class Launcher(Protocol):
    """Starts programs, in a sandbox or directly."""

    @property
    def place(self) -> Place:
        """The part of the process table that holds its programs."""
        ...

    def launch(self, request: Request) -> asyncio.Future[Program]:
        """Start a program. The descriptors may be closed after this returns.

        The future fails with `OSError` if the program cannot be started, and with `ToolError` if the sandbox has ended,
        or did not answer.
        """
        ...

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """The environment with the values that apply inside."""
        ...

    def explain(self, output: bytes, cwd: Path) -> str:
        """A hint that the sandbox blocked something, from the output of a failed program; empty if it did not."""
        ...


class Sandbox(Protocol):
    """The sandbox of a session."""

    async def launcher(self) -> Launcher | None:
        """The launcher of this sandbox, created if necessary; None if there is no sandbox.

        Raises:
            ToolError: if there is none, and programs may not run without one.
        """
        ...

    def news(self) -> str:
        """One-time notes for the model: lost jobs, or changes of a command that the sandbox did not prevent."""
        ...

    async def close(self) -> None:
        """End all processes in it."""
        ...

    def kill(self) -> None:
        """The same, immediately."""
        ...


class OwnProgram:
    """A program that is a child of this process."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self.pid = popen.pid
        self._popen = popen
        self._pidfd = -1

    @property
    def exit_code(self) -> int | None:
        """The exit status, negative for a signal; None while it is running."""
        return self._popen.returncode

    def watch(self, on_exit: Callable[[], None]) -> None:
        """Register a function that the event loop calls once when the program has ended."""
        loop = asyncio.get_running_loop()

        def ended() -> None:
            if self._popen.poll() is None:
                return
            if self._pidfd >= 0:
                loop.remove_reader(self._pidfd)
                os.close(self._pidfd)
                self._pidfd = -1
            on_exit()

        if sys.platform == "linux":
            try:
                self._pidfd = os.pidfd_open(self.pid)
            except OSError:  # a kernel before 5.3
                pass
            else:
                loop.add_reader(self._pidfd, ended)
                return
        waiting = asyncio.ensure_future(in_thread(self._popen.wait))
        waiting.add_done_callback(lambda _: ended())


class Pipes:
    """The pipes to a program: one or two for its output, and one for its input if it has any."""

    def __init__(self, *, outputs: int, has_input: bool) -> None:
        self._ours: list[int] = []
        self._theirs: list[int] = []
        try:
            for _ in range(outputs):
                self._open(os.pipe())
            if has_input:
                self._open(reversed(os.pipe()))
            else:
                self._theirs.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        except OSError:
            self.close()
            raise

    def _open(self, pair: Iterable[int]) -> None:
        ours, theirs = pair
        self._ours.append(ours)
        self._theirs.append(theirs)

    @property
    def theirs(self) -> Sequence[int]:
        """The program's input, output and errors; a single output takes both."""
        stdin, outputs = self._theirs[-1], self._theirs[:-1]
        return (stdin, outputs[0], outputs[-1])

    @property
    def stamp(self) -> str:
        """The identity of the input pipe for the program: its inode."""
        return str(os.fstat(self._theirs[-1]).st_ino)

    def outputs(self, count: int) -> Sequence[int]:
        """Our ends of the outputs; the caller closes them."""
        taken, self._ours = self._ours[:count], self._ours[count:]
        return taken

    def input(self) -> int:
        """Our end of the input; the caller closes it."""
        return self._ours.pop()

    def close(self) -> None:
        """Close the ends that no caller took."""
        for descriptor in (*self._ours, *self._theirs):
            os.close(descriptor)
        self._ours.clear()
        self._theirs.clear()


def start(request: Request) -> OwnProgram:
    """Start a program as a child of this process.

    Raises:
        OSError, ValueError: it cannot be started.
    """
    import subprocess  # the import takes 10 ms, and a run without tools does not need it

    stdin, stdout, stderr = request.descriptors
    return OwnProgram(
        subprocess.Popen(
            request.argv,
            executable=request.program,
            cwd=request.cwd,
            env=request.environment,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
    )


async def _started_here(request: Request, pauses: Sequence[float]) -> OwnProgram:
    """Start a child of this process, retrying after each of these pauses while the process limit is reached.

    A command that used up all processes may have been killed just now, and still count. Raises like `start`.
    """
    for pause in pauses:
        try:
            return start(request)
        except BlockingIOError:  # EAGAIN
            await asyncio.sleep(pause)
    return start(request)


async def launched(
    launcher: Launcher | None, request: Request, family: Callable[[Program], Family], pauses: Sequence[float]
) -> Program:
    """Start the program, in a sandbox or by `_started_here`. After a cancellation, no process of it remains."""
    if launcher is None:
        return await _started_here(request, pauses)
    launching = launcher.launch(request)

    def abandon(done: asyncio.Future[Program]) -> None:
        if not done.cancelled() and done.exception() is None:
            family(done.result()).kill()

    try:
        return await asyncio.shield(launching)
    except asyncio.CancelledError:
        launching.add_done_callback(abandon)
        raise


def why_not_started(argv: Sequence[str], cwd: Path, error: OSError | ValueError) -> str:
    """The text of the error, with advice."""
    name = argv[0]
    if not isinstance(error, OSError):
        return f"{name} was not started: {error}. Arguments and variables may not contain a NUL byte."
    if not cwd.is_dir():
        return f"{name} was not started: the folder {cwd} does not exist. Create it again, or work in another folder."
    if error.filename == str(cwd) or not os.access(cwd, os.X_OK):
        return f"{name} was not started: the folder {cwd} may not be entered. Use another working directory."
    if error.errno == errno.E2BIG:
        return f"{name} was not started: its arguments are too long. Pass them in a file or a script."
    if error.errno == errno.ENOENT:
        return f"{name} was not started: it does not exist, or the interpreter in its first line does not exist."
    if error.errno == errno.EACCES:
        return f"{name} was not started: it is not executable. Use chmod +x, or call it with its interpreter."
    if error.errno == errno.ENOEXEC:
        return f"{name} was not started: it is not a program and has no '#!' line. Call it with its interpreter."
    return f"{name} was not started: {error.strerror}. Stop processes that are not needed, then try again."


def title_of(argv: Sequence[str]) -> str:
    """The title of a program that has none of its own: the command of a shell, else its arguments."""
    return argv[2] if len(argv) == 3 and argv[1] == "-c" else " ".join(argv)
