"""Checkpoints: commits of the project before and after what agents do, and what was changed since one of them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TypedDict, Unpack

from marvin_core import (
    KEY_SAMPLE,
    MarvinError,
    Processes,
    ProcessResult,
    in_thread,
    output_text,
    why_content_left_out,
    why_left_out,
)

_PLAIN = ("core.quotepath=off", "color.ui=false", "core.fsmonitor=false", "core.hooksPath=/dev/null")
_ALONE = ("commit.gpgSign=false", "gc.auto=0", "maintenance.auto=false", "submodule.recurse=false")
GIT = ("git", "--no-pager", *(part for one in (*_PLAIN, *_ALONE) for part in ("-c", one)))
"""Git without hooks, pagers, monitors and signatures, which could ask somebody or run what a repository names."""
_NAME, _ADDRESS = "Marvin", "marvin@localhost"
_WHO = ("-c", f"user.name={_NAME}", "-c", f"user.email={_ADDRESS}")
_NO_FETCH = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": ""}
"""What is missing in a partial clone would be fetched, by a program that the repository may name."""
ENVIRONMENT = {"LANGUAGE": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true", **_NO_FETCH}
"""The variables of each step of git."""
_NAMES = 20_000_000
"""Bytes of a list of names."""
_DIFF = 60_000
"""Bytes of a diff, as agents get it."""
_OUTPUT = 4_000
_LOCK = ".marvin/pipeline_state.lock"
_NO_TICKETS = ":(exclude).tickets"
"""Commands in the sandbox do not see the tickets, and git would call them deleted."""
_KEPT = (b".marvin/", b".tickets/")
_UNFINISHED = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
}
"""What git keeps while something goes on, and what that is."""


class GitFault(MarvinError):
    """A step of git failed."""


class _Options(TypedDict, total=False):
    """How a step of git is run: who commits, its input, the bytes of its output, and whether outside of the sandbox."""

    who: Sequence[str]
    stdin: bytes
    limit: int
    outside: bool


class Checkpoints:
    """The commits that the pipeline makes of one project.

    Hooks of the repository have no part in them, and nobody has to sign them.

    Args:
        folder: the project's folder.
        processes: the way to git.
    """

    def __init__(self, folder: Path, processes: Processes, timeout: float) -> None:
        self._folder = folder
        self._processes = processes
        self._timeout = timeout

    async def prepare(self) -> bool:
        """Make the project's folder a repository where it is in none; says whether it did.

        Where nobody has told git who commits, Marvin does in a repository that is made here.

        Raises:
            GitFault: git is missing or fails.
        """
        inside = await self._try("rev-parse", "--is-inside-work-tree")
        if inside.exit_code == 0 and inside.output.strip() == b"true":
            return False
        # Outside of the sandbox, which keeps the settings of repositories; there is none yet that could have a say.
        await self._run("init", "--quiet", outside=True)
        if not await self._knows_who():  # agents commit here, too
            await self._run("config", "user.name", _NAME, outside=True)
            await self._run("config", "user.email", _ADDRESS, outside=True)
        return True

    async def checkpoint(self, message: str) -> str:
        """Commit all changes of the project; returns the newest commit, which is an old one where nothing changed.

        New files that do not belong into a commit, such as keys and logs, are left out.

        Raises:
            GitFault: a merge is not finished, or git fails.
        """
        await self._refuse_unfinished()
        await self._stage()
        staged = await self._try("diff", "--cached", "--quiet")
        if staged.exit_code == 1 or not await self._has_commits():
            who = () if await self._knows_who() else _WHO
            await self._run(
                "commit", "--quiet", "--allow-empty", "--no-verify", "--file=-", who=who, stdin=message.encode()
            )
        return await self.newest()

    async def _stage(self) -> None:
        new = await self._new()
        wanted = await in_thread(lambda: [name for name in new if not self._why_left_out(name)])
        await self._run("add", "--update", "--", ".")
        if wanted:
            # Not `git add`, which fails as a whole for one name that has gone since, as those of editors do.
            stdin = b"".join(os.fsencode(name) + b"\0" for name in wanted)
            await self._run("update-index", "--add", "--remove", "-z", "--stdin", stdin=stdin)

    async def newest(self) -> str:
        """The newest commit; empty where there is none."""
        found = await self._try("rev-parse", "--verify", "--quiet", "HEAD")
        return found.output.decode().strip() if found.exit_code == 0 else ""

    async def content(self) -> str:
        """What stands for the content of the project as git knows it: the same for the same files.

        What Marvin keeps in it, as tickets and documents, does not count.
        """
        listed = await self._run("ls-files", "-s", "-z", limit=_NAMES)
        lines = (line for line in listed.split(b"\0") if not line.partition(b"\t")[2].startswith(_KEPT))
        return sha256(b"\0".join(lines)).hexdigest()

    async def diff_since(self, commit: str, paths: Sequence[str] = ()) -> str:
        """What was changed since a commit, at most some 60,000 bytes of it.

        Args:
            commit: as `checkpoint` returned it.
            paths: the files and folders to look at, relative to the project; all where there are none.

        Raises:
            GitFault: git fails.
        """
        self._check(commit)
        result = await self._try(
            "diff", "--no-ext-diff", "--no-textconv", commit, "--", *_literal(paths), _NO_TICKETS, limit=_DIFF
        )
        if result.exit_code != 0:
            raise self._fault("diff", result)
        return output_text(result.output, result.omitted, "Read the files for the rest.")

    async def changed_since(self, commit: str) -> Sequence[str]:
        """The files that were changed since a commit, new ones included, relative to the project."""
        self._check(commit)
        listed = ("diff", "--name-only", "--no-ext-diff", "--relative", "-z", commit, "--", ".", _NO_TICKETS)
        changed = await self._run(*listed, limit=_NAMES)
        names = {os.fsdecode(name) for name in changed.split(b"\0") if name}
        return sorted({*names, *(name for name in await self._new() if not why_left_out(name))})

    async def _new(self) -> list[str]:
        """The files that git does not know and does not ignore."""
        listed = await self._run("ls-files", "-z", "--others", "--exclude-standard", limit=_NAMES)
        return [os.fsdecode(name) for name in listed.split(b"\0") if name]

    async def _refuse_unfinished(self) -> None:
        """A commit would end a merge as it stands, markers of conflicts included, or become a part of a rebase."""
        asked = [word for name in _UNFINISHED for word in ("--git-path", name)]
        paths = (await self._run("rev-parse", *asked)).splitlines()
        there = await in_thread(lambda: [os.path.lexists(self._folder / os.fsdecode(path)) for path in paths])
        unfinished = [what for what, is_there in zip(_UNFINISHED.values(), there, strict=False) if is_there]
        if not unfinished and await self._run("ls-files", "--unmerged", "-z", "--", ".", limit=_NAMES):
            unfinished = ["merge"]
        if unfinished:
            raise GitFault(
                f"A {unfinished[0]} is not finished in {self._folder}, and the pipeline commits. Finish it, or git "
                f"{unfinished[0]} --abort, and run the pipeline again."
            )

    def _check(self, commit: str) -> None:
        if not re.fullmatch(r"[0-9a-f]{7,64}", commit):
            raise GitFault(f"{commit[:80]!r} is no commit.")

    def _why_left_out(self, name: str) -> str:
        if reason := why_left_out(name):
            return reason
        if name == _LOCK:
            return "Marvin's own"
        path = self._folder / name
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                return why_content_left_out(os.fstat(file.fileno()).st_size, file.read(KEY_SAMPLE))
        except PermissionError:  # git would fail as a whole
            return "it cannot be read"
        except OSError:  # a link, or gone by now: git looks at it itself
            return ""

    async def _has_commits(self) -> bool:
        return bool(await self.newest())

    async def _knows_who(self) -> bool:
        name, address = await self._try("config", "user.name"), await self._try("config", "user.email")
        return name.exit_code == 0 and address.exit_code == 0

    async def _run(self, *arguments: str, **options: Unpack[_Options]) -> bytes:
        result = await self._try(*arguments, **options)
        if result.exit_code != 0:
            raise self._fault(arguments[0], result)
        return result.output

    async def _try(self, *arguments: str, **options: Unpack[_Options]) -> ProcessResult:
        return await self._processes.run(
            [*GIT, *options.get("who", ()), *arguments],
            cwd=self._folder,
            stdin=options.get("stdin"),
            timeout=self._timeout,
            output_limit=options.get("limit", _OUTPUT),
            env=ENVIRONMENT,
            outside=options.get("outside", False),
        )

    def _fault(self, what: str, result: ProcessResult) -> GitFault:
        said = output_text(result.stderr or result.output, 0, "").strip()
        why = "took too long" if result.timed_out else f"failed: {said}"
        return GitFault(f"git {what} {why}\nMend that in {self._folder}, and run the pipeline again.")


def _literal(paths: Sequence[str]) -> list[str]:
    """Names as git takes them for names alone; the whole folder where there are none."""
    return [f":(literal){path}" for path in paths] or ["."]
