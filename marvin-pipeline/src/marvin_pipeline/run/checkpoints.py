"""Checkpoints: commits of the project before and after an agent's work, and the changes since one of them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TypedDict, Unpack

from marvin_core import (
    GIT_ALONE,
    KEY_SAMPLE,
    MarvinError,
    Processes,
    ProcessResult,
    Timeouts,
    git_command,
    in_thread,
    output_text,
    why_content_left_out,
    why_left_out,
)

from .commits import Commits
from .git_locks import lock_in, set_free

_GIT = git_command("core.safecrlf=false")
_ENVIRONMENT = {
    **GIT_ALONE,
    **{f"GIT_{kind}_PATHSPECS": "0" for kind in ("LITERAL", "GLOB", "NOGLOB", "ICASE")},
    "GIT_NO_REPLACE_OBJECTS": "1",  # commits must be distinguishable
}
_NAME, _ADDRESS = "Marvin", "marvin@localhost"
_WHO = ("-c", f"user.name={_NAME}", "-c", f"user.email={_ADDRESS}")
_NAMES = 20_000_000
"""Bytes of a list of names."""
_DIFF = 60_000
"""Bytes of a diff for agents."""
_OUTPUT = 4_000
_LOCK = ".marvin/pipeline_state.lock"
_TICKETS = ".tickets/"
_NO_TICKETS = ":(exclude).tickets"
"""Commands in the sandbox do not see the tickets, and git would report them as deleted."""
_ALL = ("--", ".", _NO_TICKETS)
_KEPT = (b".marvin/", _TICKETS.encode())
_UNFINISHED = {
    "MERGE_HEAD": ("merge", "git merge --abort"),
    "rebase-merge": ("rebase", "git rebase --abort"),
    "rebase-apply": ("rebase", "git rebase --abort, or git am --abort"),
    "CHERRY_PICK_HEAD": ("cherry-pick", "git cherry-pick --abort"),
    "REVERT_HEAD": ("revert", "git revert --abort"),
    "sequencer": ("cherry-pick", "git cherry-pick --abort, or git revert --abort"),
    "BISECT_LOG": ("bisect", "git bisect reset"),
}
"""Files of unfinished operations in git's folder, with their names and the commands that abort them."""


_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_BLAMED = re.compile(rb"(?P<commit>[0-9a-f]{40,64}) \d+ (?P<line>\d{1,9})(?: \d+)?")
_HUNK = re.compile(rb"@@ -[\d,]+ \+(\d+)(?:,(\d+))? @@")
_COMMITS = 50_000
"""Commits of a history that are read."""


class GitFault(MarvinError):
    """A git command failed."""


class _Options(TypedDict, total=False):
    """How to run a git command: the committer, the input, the bytes of output, and whether outside of the sandbox."""

    who: Sequence[str]
    stdin: bytes
    limit: int
    outside: bool


class Checkpoints:
    """The commits that the pipeline makes of one project.

    They run no hooks of the repository, and are not signed.

    Args:
        folder: the project's folder.
        processes: runs git.
        timeout: seconds for each git command.
        timeouts: how long another git may hold its lock, if not the default.
    """

    def __init__(self, folder: Path, processes: Processes, timeout: float, timeouts: Timeouts | None = None) -> None:
        self._folder = folder
        self._processes = processes
        self._timeout = timeout
        self._timeouts = timeouts or Timeouts()

    @property
    def commits(self) -> Commits:
        """The reader of commits."""
        return Commits(self._whole)

    async def prepare(self) -> bool:
        """Create a repository unless the project is in one; returns whether it did.

        If git has no committer, Marvin becomes the committer of a new repository. A folder that the
        repository around it ignores gets a repository of its own.

        Raises:
            GitFault: git is missing or fails, or a merge or the like is not finished.
        """
        made = not await self._is_kept()
        if made:
            # Outside of the sandbox, which protects git's configuration; there is no repository yet that could affect
            # it.
            await self._run("init", "--quiet", outside=True)
            if not await self._knows_who():  # agents commit here, too
                await self._run("config", "user.name", _NAME, outside=True)
                await self._run("config", "user.email", _ADDRESS, outside=True)
        await self._refuse_unfinished()
        return made

    async def _is_kept(self) -> bool:
        """Whether the project lies in the working tree of a repository that does not ignore it."""
        inside = await self._try("rev-parse", "--is-inside-work-tree")
        if inside.exit_code != 0:
            if b"not a git repository" in inside.stderr:
                return False
            raise self._fault("rev-parse", inside)  # such as a folder of another user
        if inside.output.strip() != b"true":
            raise GitFault(
                f"{self._folder} is in a bare repository or a git directory. Give another folder with --working-dir."
            )
        ignored = await self._try("check-ignore", "--quiet", "--", ".")
        return ignored.exit_code != 0 or bool(await self._run("ls-files", "-z", "--", ".", limit=_OUTPUT))

    async def checkpoint(self, message: str) -> str:
        """Commit all changes of the project; returns the newest commit, which is an old one without changes.

        New files that should not be committed, such as keys and logs, are left out, and so are the tickets.
        Files that are staged outside of the project, in a repository around it, stay staged.

        Raises:
            GitFault: a merge or the like is not finished, or git fails.
        """
        await self._refuse_unfinished()
        await self._stage()
        staged = await self._try("diff", "--cached", "--quiet", *_ALL)
        if staged.exit_code == 1 or not await self._has_commits():
            who = () if await self._knows_who() else _WHO
            only = _ALL if staged.exit_code == 1 and await self._is_part() else ()
            commit = ("commit", "--quiet", "--allow-empty", "--no-verify", "--file=-", *only)
            await self._run(*commit, who=who, stdin=message.encode("utf-8", "replace"))
        return await self.newest()

    async def _stage(self) -> None:
        new = await self._new()
        wanted = await in_thread(partial(self._wanted, new))
        await self._run("add", "--update", *_ALL)
        if wanted:
            # Not `git add`, which fails entirely for one name that has disappeared, such as editors' temporary files.
            stdin = b"".join(os.fsencode(name) + b"\0" for name in wanted)
            await self._run("update-index", "--add", "--remove", "-z", "--stdin", stdin=stdin)

    def _wanted(self, new: Sequence[str]) -> list[str]:
        return [name for name in new if not self._why_left_out(name)]

    async def _is_part(self) -> bool:
        """Whether the repository's top is above the project."""
        return bool((await self._run("rev-parse", "--show-prefix")).strip())

    async def branch(self) -> str:
        """The current branch; empty if HEAD is detached."""
        found = await self._try("symbolic-ref", "--quiet", "--short", "HEAD")
        return found.output.decode("utf-8", "replace").strip() if found.exit_code == 0 else ""

    async def knows(self, commit: str) -> bool:
        """Whether a commit exists; a recorded one may be gone."""
        if not _COMMIT.fullmatch(commit):
            return False
        return (await self._try("cat-file", "-e", f"{commit}^{{commit}}")).exit_code == 0

    async def newest(self) -> str:
        """The newest commit; empty if there is none."""
        found = await self._try("rev-parse", "--verify", "--quiet", "HEAD")
        return found.output.decode().strip() if found.exit_code == 0 else ""

    async def history(self) -> Sequence[str]:
        """The ancestors of the newest commit, itself included, the newest first. Raises `GitFault`."""
        if not await self._has_commits():
            return ()
        listed = await self._run("rev-list", f"--max-count={_COMMITS}", "HEAD", limit=_NAMES)
        return listed.decode("ascii", "replace").split()

    async def files(self) -> Sequence[str]:
        """The tracked files of the project, relative to it. Raises `GitFault`."""
        listed = await self._run("ls-files", "-z", "--", ".", limit=_NAMES)
        return [os.fsdecode(name) for name in listed.split(b"\0") if name]

    async def new_lines(self, commit: str, file: str) -> Sequence[int]:
        """The numbers of a file's new lines since a commit; none for a binary file. Raises `GitFault`."""
        self._check(commit)
        arguments = ("diff", "--no-ext-diff", "--no-textconv", "-U0", commit, "--", *_literal([file]))
        heads = map(_HUNK.match, (await self._run(*arguments, limit=_NAMES)).split(b"\n"))
        ranges = (range(int(head[1]), int(head[1]) + int(head[2] or 1)) for head in heads if head)
        return [line for lines in ranges for line in lines]

    async def copy_to(self, folder: Path) -> None:
        """Write the project's tracked files, as of the last checkpoint, to another folder. Raises `GitFault`."""
        await self._run("checkout-index", "--all", "--force", f"--prefix={folder}/")

    async def came_with(self, file: str, lines: Sequence[int]) -> Mapping[int, str]:
        """The commit that added each of these lines of a file; uncommitted lines are left out.

        Args:
            lines: their numbers, from 1 on.
        """
        ranges = [f"-L{line},{line}" for line in lines]
        found = await self._try("blame", "--porcelain", *ranges, "HEAD", "--", file, limit=_NAMES)
        if found.exit_code != 0:  # it is new, or shorter now
            return {}
        heads = (_BLAMED.fullmatch(line) for line in found.output.split(b"\n"))
        return {int(head["line"]): head["commit"].decode() for head in heads if head}

    async def content(self) -> str:
        """A hash of the project's tracked content.

        Marvin's own files in it, such as tickets and documents, do not count.
        """
        listed = await self._run("ls-files", "-s", "-z", limit=_NAMES)
        lines = (line for line in listed.split(b"\0") if not line.partition(b"\t")[2].startswith(_KEPT))
        return sha256(b"\0".join(lines)).hexdigest()

    async def diff_since(self, commit: str, paths: Sequence[str] = ()) -> str:
        """The changes since a commit, at most about 60,000 bytes of them.

        Args:
            commit: as `checkpoint` returned it.
            paths: the files and folders to look at, relative to the project; all if it is empty.

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
        """The files that were changed since a commit, including new ones, relative to the project."""
        self._check(commit)
        listed = ("diff", "--name-only", "--no-ext-diff", "--relative", "-z", commit, "--", ".", _NO_TICKETS)
        changed = await self._run(*listed, limit=_NAMES)
        names = {os.fsdecode(name) for name in changed.split(b"\0") if name}
        return sorted({*names, *(name for name in await self._new() if not why_left_out(name))})

    async def _new(self) -> list[str]:
        """The untracked files that are not ignored, without tickets."""
        listed = await self._try("ls-files", "-z", "--others", "--exclude-standard", limit=_NAMES)
        if listed.exit_code != 0:
            raise self._fault("ls-files", listed)
        if listed.omitted:
            raise GitFault(
                f"There are too many new files in {self._folder} for git to record. Add folders that should not be "
                "committed to .gitignore, and run the pipeline again."
            )
        names = (os.fsdecode(name) for name in listed.output.split(b"\0") if name)
        return [name for name in names if not name.startswith(_TICKETS)]

    async def _refuse_unfinished(self) -> None:
        """Refuse a checkpoint during a merge or rebase: it would complete the merge, conflict markers included."""
        folder = await self._place("--absolute-git-dir")
        left = await in_thread(lambda: next((name for name in _UNFINISHED if os.path.lexists(folder / name)), ""))
        if left or await self._run("ls-files", "--unmerged", "-z", "--", ".", limit=_NAMES):
            what, command = _UNFINISHED[left or "MERGE_HEAD"]
            raise GitFault(
                f"A {what} is not finished in {self._folder}, and the pipeline needs to commit. Finish it, or abort "
                f"it with {command}, and run the pipeline again."
            )

    async def _place(self, *what: str) -> Path:
        """A folder that git names."""
        return Path(os.fsdecode((await self._run("rev-parse", *what)).removesuffix(b"\n")))

    def _check(self, commit: str) -> None:
        if not _COMMIT.fullmatch(commit):
            raise GitFault(f"{commit[:80]!r} is not a commit.")

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
        except PermissionError:
            return "it cannot be read"
        except FileNotFoundError:
            return "it was removed"
        except OSError:  # a link: git does not follow it
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

    async def _whole(self, *arguments: str, **options: Unpack[_Options]) -> bytes:
        """The same, but truncated output is an error."""
        result = await self._try(*arguments, **options)
        if result.exit_code != 0:
            raise self._fault(arguments[0], result)
        if result.omitted:
            raise GitFault(
                f"git {arguments[0]} printed more about {self._folder} than can be read. Commit fewer files."
            )
        return result.output

    async def _try(self, *arguments: str, **options: Unpack[_Options]) -> ProcessResult:
        result = await self._once(*arguments, **options)
        lock = lock_in(result.stderr) if result.exit_code else None
        if lock is None:
            return result
        repository = await self._place("--path-format=absolute", "--git-common-dir")
        top = await self._place("--show-toplevel")
        if not await in_thread(lambda: set_free(lock, repository, top, self._timeouts)):
            return result
        return await self._once(*arguments, **options)

    async def _once(self, *arguments: str, **options: Unpack[_Options]) -> ProcessResult:
        return await self._processes.run(
            [*_GIT, *options.get("who", ()), *arguments],
            cwd=self._folder,
            stdin=options.get("stdin"),
            timeout=self._timeout,
            output_limit=options.get("limit", _OUTPUT),
            env=_ENVIRONMENT,
            outside=options.get("outside", False),
        )

    def _fault(self, what: str, result: ProcessResult) -> GitFault:
        said = output_text(result.stderr or result.output, 0, "").strip()
        why = "took too long" if result.timed_out else f"failed: {said}"
        return GitFault(f"git {what} {why}\nFix that in {self._folder}, and run the pipeline again.")


def _literal(paths: Sequence[str]) -> list[str]:
    """Names as literal pathspecs; the whole folder without names."""
    return [f":(literal){path}" for path in paths] or ["."]
