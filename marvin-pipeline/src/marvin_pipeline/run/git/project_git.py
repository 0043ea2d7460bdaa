"""Runs git in one project: without hooks of the repository, and past the lock of a killed git."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict, Unpack

from marvin_core import (
    GIT_ALONE,
    MarvinError,
    Processes,
    ProcessResult,
    Timeouts,
    git_command,
    in_thread,
    output_text,
)

from .locks import lock_in, set_free
from .tries import Tries

_GIT = git_command("core.safecrlf=false", "core.untrackedCache=keep")
_ENVIRONMENT = {
    **GIT_ALONE,
    **{f"GIT_{kind}_PATHSPECS": "0" for kind in ("LITERAL", "GLOB", "NOGLOB", "ICASE")},
    "GIT_NO_REPLACE_OBJECTS": "1",  # commits must be distinguishable
}
NAMES = 100_000_000
"""Bytes of a list of names."""
OUTPUT = 4_000
_WAITS = 6
"""The limit for all tries of an action, as a multiple of the wait for a lock."""


class GitFault(MarvinError):
    """A git command failed."""


class Options(TypedDict, total=False):
    """How to run a git command.

    These are settings such as the committer, the program that starts git, variables, the input, the bytes of output,
    and whether outside of the sandbox.
    """

    who: Sequence[str]
    through: Sequence[str]
    env: Mapping[str, str]
    stdin: bytes
    limit: int
    outside: bool


class ProjectGit:
    """Runs git in a project.

    Args:
        folder: the project's folder.
        processes: runs git.
        timeout: seconds for each git command.
        timeouts: how long another git may hold its lock.
    """

    def __init__(self, folder: Path, processes: Processes, timeout: float, timeouts: Timeouts) -> None:
        self.folder = folder
        self._processes = processes
        self._timeout = timeout
        self._timeouts = timeouts

    async def run(self, *arguments: str, **options: Unpack[Options]) -> bytes:
        """The output of git; a long one is cut. Raises `GitFault` if it fails."""
        result = await self.attempt(*arguments, **options)
        if result.exit_code != 0:
            raise self.fault(arguments[0], result)
        return result.output

    async def whole(self, *arguments: str, **options: Unpack[Options]) -> bytes:
        """The same, but truncated output is an error."""
        result = await self.attempt(*arguments, **options)
        if result.exit_code != 0:
            raise self.fault(arguments[0], result)
        if result.omitted:
            raise GitFault(f"git {arguments[0]} printed more about {self.folder} than can be read. Commit fewer files.")
        return result.output

    async def attempt(self, *arguments: str, **options: Unpack[Options]) -> ProcessResult:
        """The same, for callers that check the exit code."""
        tries = self.tries()
        result = await self._once(*arguments, **options)
        while result.exit_code and (lock := lock_in(result.stderr)) is not None:
            if not await self._is_free(lock) or not await tries.again():
                break
            result = await self._once(*arguments, **options)  # another git may have been faster again
        return result

    def tries(self) -> Tries:
        """The tries of an action."""
        return Tries(_WAITS * self._timeouts.lock)

    async def _is_free(self, lock: Path) -> bool:
        repository = await self.place("--path-format=absolute", "--git-common-dir")
        top = await self.place("--show-toplevel")
        return await in_thread(lambda: set_free(lock, repository, top, self._timeouts))

    async def place(self, *what: str) -> Path:
        """A folder that git names."""
        return Path(os.fsdecode((await self.run("rev-parse", *what)).removesuffix(b"\n")))

    async def index(self) -> Path:
        """The index of the working tree."""
        return await self.place("--path-format=absolute", "--git-path", "index")

    async def prefix(self) -> str:
        """The path of the project below the top of the repository, with a slash at its end; empty at the top."""
        return os.fsdecode((await self.run("rev-parse", "--show-prefix")).removesuffix(b"\n"))

    async def _once(self, *arguments: str, **options: Unpack[Options]) -> ProcessResult:
        return await self._processes.run(
            [*options.get("through", ()), *_GIT, *options.get("who", ()), *arguments],
            cwd=self.folder,
            stdin=options.get("stdin"),
            timeout=self._timeout,
            output_limit=options.get("limit", OUTPUT),
            env={**_ENVIRONMENT, **options.get("env", {})},
            outside=options.get("outside", False),
        )

    def fault(self, what: str, result: ProcessResult) -> GitFault:
        """The error of a git command that failed."""
        said = output_text(result.stderr or result.output, 0, "").strip()
        why = "took too long" if result.timed_out else f"failed: {said}"
        return GitFault(f"git {what} {why}\nFix that in {self.folder}, and run the pipeline again.")
