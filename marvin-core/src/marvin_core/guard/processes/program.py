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
    """What is to be started: `program` by its path, with the three standard descriptors.

    The session of processes that it begins is its own, and it has no terminal.
    """

    program: str
    argv: Sequence[str]
    cwd: Path
    environment: Mapping[str, str]
    descriptors: Sequence[int]


class Program(Protocol):
    """A program that runs or has ended."""

    @property
    def pid(self) -> int:
        """Its number among the processes as Marvin sees them."""
        ...

    @property
    def exit_code(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        ...

    def watch(self, on_exit: Callable[[], None]) -> None:
        """Have the event loop call this, once, when it has ended."""
        ...


class Launcher(Protocol):
    """What starts programs in a sandbox."""

    @property
    def place(self) -> Place:
        """Where its programs are among the processes of the system."""
        ...

    def launch(self, request: Request) -> asyncio.Future[Program]:
        """Start a program. The descriptors may be closed once this has returned.

        The future fails with `OSError` where the program cannot be started, and with `ToolError` where the sandbox is
        gone, or did not answer.
        """
        ...

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """The environment as it has to be inside."""
        ...

    def explain(self, output: bytes, cwd: Path) -> str:
        """What of an unsuccessful program's output tells that the sandbox held something back; empty where nothing."""
        ...


class Sandbox(Protocol):
    """The sandbox of a session."""

    async def launcher(self) -> Launcher | None:
        """What starts programs in it, made where it was not yet; None where there is none.

        Raises:
            ToolError: where there is none and no program may run without.
        """
        ...

    def news(self) -> str:
        """What the model is to be told once: that jobs are gone, or what a command did that nothing held back."""
        ...

    async def close(self) -> None:
        """End everything in it."""
        ...

    def kill(self) -> None:
        """The same, at once."""
        ...


class OwnProgram:
    """A program that is a child of this process."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self.pid = popen.pid
        self._popen = popen
        self._pidfd = -1

    @property
    def exit_code(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return self._popen.returncode

    def watch(self, on_exit: Callable[[], None]) -> None:
        """Have the event loop call this, once, when it has ended."""
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
    """The pipes to a program: one or two for its output, and one for its input where it has any."""

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
        """The program's input, output and errors; with one output that takes both."""
        stdin, outputs = self._theirs[-1], self._theirs[:-1]
        return (stdin, outputs[0], outputs[-1])

    @property
    def stamp(self) -> str:
        """By what the program knows its input again: the inode of the pipe."""
        return str(os.fstat(self._theirs[-1]).st_ino)

    def outputs(self, count: int) -> Sequence[int]:
        """Our ends of the outputs, given away."""
        taken, self._ours = self._ours[:count], self._ours[count:]
        return taken

    def input(self) -> int:
        """Our end of the input, given away."""
        return self._ours.pop()

    def close(self) -> None:
        """Close what was not given away."""
        for descriptor in (*self._ours, *self._theirs):
            os.close(descriptor)
        self._ours.clear()
        self._theirs.clear()


def start(request: Request) -> OwnProgram:
    """Start a program as a child of this process.

    Raises:
        OSError, ValueError: where it cannot be started.
    """
    import subprocess  # it costs 10 ms, and a run without tools needs none of it

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
    """A child of this process, tried again after each of these pauses while the system has no room for one more.

    A command that used up all processes may just have been killed, and still counts. Raises as `start`.
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
    """The program, started in a sandbox, or as of `_started_here`; whoever is cancelled leaves nothing of it behind."""
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
    """The text of the error, which says what to do."""
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
    """What a program is called that has no title of its own: the command of a shell, else its arguments."""
    return argv[2] if len(argv) == 3 and argv[1] == "-c" else " ".join(argv)
