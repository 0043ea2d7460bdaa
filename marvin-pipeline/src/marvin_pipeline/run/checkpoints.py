"""Checkpoints: commits of the project before and after an agent's work, and the changes since one of them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from marvin_core import Processes, Record, Timeouts, in_thread, one_line, output_text

from .git.commits import BETWEEN_COMMITS, Commits
from .git.locks import identity
from .git.project_git import NAMES, OUTPUT, GitFault, ProjectGit
from .git.staging import ALL, RAW, WHOLE, Staging, of_index, own_index, remove_left, removed

_NAME, _ADDRESS = "Marvin", "marvin@localhost"
_WHO = ("-c", f"user.name={_NAME}", "-c", f"user.email={_ADDRESS}")
_SNAPSHOTS = "refs/marvin/snapshots"
_DIFF = 60_000
"""Bytes of a diff for agents."""
_KEPT = (b".marvin/", b".tickets/")
_SHOWN, _NAME_LENGTH = 20, 200
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


class KeptStaged(Record):
    """A ref with what was staged of these files, relative to the project."""

    ref: str
    files: Sequence[str]


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
        self.left_out: Mapping[str, str] = {}
        """What the last checkpoint left out: new files, and folders with a slash, each with the reason."""
        self.kept: list[KeptStaged] = []
        """What was staged and in no file when checkpoints were made."""
        self._told = set[str]()
        self._folder = folder
        self._git = ProjectGit(folder, processes, timeout, timeouts or Timeouts())

    @property
    def commits(self) -> Commits:
        """The reader of commits."""
        return Commits(self._git.whole, self._folder)

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
            await self._git.run("init", "--quiet", outside=True)
            if not await self._knows_who():  # agents commit here, too
                await self._git.run("config", "user.name", _NAME, outside=True)
                await self._git.run("config", "user.email", _ADDRESS, outside=True)
        await self._refuse_unfinished()
        folder = await self._git.place("--absolute-git-dir")
        await in_thread(lambda: remove_left(folder))
        return made

    async def _is_kept(self) -> bool:
        """Whether the project lies in the working tree of a repository that does not ignore it."""
        inside = await self._git.attempt("rev-parse", "--is-inside-work-tree")
        if inside.exit_code != 0:
            dot = self._folder / ".git"
            if b"not a git repository" in inside.stderr and not await in_thread(lambda: os.path.lexists(dot)):
                return False
            if b"not a git repository" in inside.stderr:  # damaged, or a link: git would create one where it leads
                raise GitFault(
                    f"{dot} is no repository that can be used. Repair or remove it, and run the pipeline again."
                )
            raise self._git.fault("rev-parse", inside)  # such as a folder of another user
        if inside.output.strip() != b"true":
            raise GitFault(
                f"{self._folder} is in a bare repository or a git directory. Give another folder with --working-dir."
            )
        ignored = await self._git.attempt("check-ignore", "--quiet", "--", ".")
        return ignored.exit_code != 0 or bool(await self._git.run("ls-files", "-z", "--", ".", limit=OUTPUT))

    async def _keep_staged(self) -> None:
        """Keep what is staged of files that have another content: a checkpoint stages what the files have.

        Raises:
            GitFault: git fails.
        """
        listed = ("diff", "--name-only", "--no-ext-diff", "--no-renames", "--relative", "-z")
        staged = await self._git.whole(*listed, "--cached", *ALL, limit=NAMES)
        changed = await self._git.whole(*listed, *ALL, limit=NAMES) if staged else b""
        names = {*filter(None, staged.split(b"\0"))}.intersection(changed.split(b"\0"))
        made = await self._git.attempt("write-tree") if names else None
        if made is None or made.exit_code != 0:  # during conflicts there is no tree; the checkpoint refuses those
            return
        tree = made.output.decode().strip()
        head, who = await self.newest(), () if await self._knows_who() else _WHO
        parent = ("-p", head) if head else ()
        arguments = ("commit-tree", *parent, "-F", "-", tree)
        commit = (await self._git.run(*arguments, who=who, stdin=b"Staged before the pipeline\n")).decode().strip()
        ref = f"{_SNAPSHOTS}/{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{commit[:8]}"
        await self._git.run("update-ref", ref, commit)
        self.kept.append(KeptStaged(ref=ref, files=sorted(map(os.fsdecode, names))))

    async def checkpoint(self, message: str) -> str:
        """Commit all changes of the project; returns the newest commit, which is an old one without changes.

        New files that should not be committed, such as keys and logs, are left out, and so are the tickets.
        `left_out` has them without the tickets and files of `.marvin`. What is staged, and in no file, is kept in refs,
        which `kept` has. Files that are staged outside of the project, in a repository around it, stay staged.

        Raises:
            GitFault: a merge or the like is not finished, or git fails.
        """
        tries = self._git.tries()
        while not await self._is_committed(message):
            if not await tries.again():
                raise GitFault(
                    f"Another program commits in {self._folder} all the time, so the pipeline cannot. Stop it, and run "
                    "the pipeline again."
                )
        return await self.newest()

    def newly_left_out(self) -> str:
        """What the last checkpoint left out, for people, without what this has returned before; empty if nothing is."""
        new = [name for name in self.left_out if name not in self._told]
        self._told.update(new)
        shown = [f"{one_line(name, _NAME_LENGTH)} ({self.left_out[name]})" for name in new[:_SHOWN]]
        return ", ".join(shown) + (f" and {len(new) - _SHOWN:,} more" if new[_SHOWN:] else "")

    async def _is_committed(self, message: str) -> bool:
        """Commit all changes; returns false if somebody else has committed meanwhile.

        What was read before may be older than that commit. It is not git that commits: it would read files once more,
        commit what is staged in a repository around the project, and end a merge that somebody has just begun.
        """
        head = await self.newest()
        await self._refuse_unfinished()
        await self._keep_staged()
        staging = Staging(self._git)
        await staging.stage()
        self.left_out = staging.left_out
        await self._refuse_unfinished()
        index, base = await self._git.index(), (head,) if head else ()
        seen = await in_thread(lambda: identity(index))
        if await self.newest() != head:
            return False
        staged = await self._git.whole("diff", "--cached", *RAW, "--no-relative", *base, *ALL, limit=NAMES)
        if await in_thread(lambda: identity(index)) != seen:  # it may be of another branch, which was left again
            return False
        if head and not staged:
            return await self.newest() == head
        who = () if await self._knows_who() else _WHO
        parent = ("-p", head) if head else ()
        arguments = ("commit-tree", *parent, "-F", "-", await self._tree(head, staged))
        commit = (await self._git.run(*arguments, who=who, stdin=message.encode("utf-8", "replace"))).decode().strip()
        moved = await self._git.attempt("update-ref", "-m", "commit: checkpoint", "HEAD", commit, head, who=who)
        if moved.exit_code != 0:  # None: it took too long
            if await self.newest() == head:
                raise self._git.fault("update-ref", moved)
            return False
        await self._git.attempt("update-index", "-q", "--refresh")
        return True

    async def _tree(self, head: str, staged: bytes) -> str:
        """The tree of a commit with what is staged of the project."""
        index = own_index(await self._git.place("--absolute-git-dir"))
        env = of_index(index)
        try:
            if head:
                await self._git.run("read-tree", head, who=WHOLE, env=env)
            update, lines = ("update-index", "-z", "--add", "--replace", "--index-info"), _as_index(staged)
            await self._git.run(*update, who=WHOLE, env=env, stdin=lines)
            return (await self._git.run("write-tree", who=WHOLE, env=env)).decode().strip()
        finally:
            await in_thread(lambda: removed(index))

    async def branch(self) -> str:
        """The current branch; empty if HEAD is detached."""
        found = await self._git.attempt("symbolic-ref", "--quiet", "--short", "HEAD")
        return found.output.decode("utf-8", "replace").strip() if found.exit_code == 0 else ""

    async def knows(self, commit: str) -> bool:
        """Whether a commit exists; a recorded one may be gone."""
        if not _COMMIT.fullmatch(commit):
            return False
        return (await self._git.attempt("cat-file", "-e", f"{commit}^{{commit}}")).exit_code == 0

    async def newest(self) -> str:
        """The newest commit; empty if there is none."""
        found = await self._git.attempt("rev-parse", "--verify", "--quiet", "HEAD")
        return found.output.decode().strip() if found.exit_code == 0 else ""

    async def history(self) -> Sequence[str]:
        """The ancestors of the newest commit, itself included, the newest first. Raises `GitFault`."""
        if not await self._has_commits():
            return ()
        listed = await self._git.run("rev-list", f"--max-count={_COMMITS}", "HEAD", limit=NAMES)
        return listed.decode("ascii", "replace").split()

    async def files(self) -> Sequence[str]:
        """The tracked files of the project, relative to it. Raises `GitFault`."""
        listed = await self._git.run("ls-files", "-z", "--", ".", limit=NAMES)
        return [os.fsdecode(name) for name in listed.split(b"\0") if name]

    async def new_lines(self, commit: str, file: str) -> Sequence[int]:
        """The numbers of a file's new lines between a commit and the last one; none for a binary file.

        Raises:
            GitFault: git fails.
        """
        self._check(commit)
        arguments = ("diff", "--no-ext-diff", "--no-textconv", "-U0", commit, "HEAD", "--", *_literal([file]))
        printed = await self._git.run(*arguments, env=BETWEEN_COMMITS, limit=NAMES)
        heads = map(_HUNK.match, printed.split(b"\n"))
        ranges = (range(int(head[1]), int(head[1]) + int(head[2] or 1)) for head in heads if head)
        return [line for lines in ranges for line in lines]

    async def copy_to(self, folder: Path) -> Path:
        """Write the project's tracked files, as of the last checkpoint, to another folder; returns where they begin.

        That is below the folder if the project is a part of a repository. Raises `GitFault`.
        """
        await self._git.run("checkout-index", "--all", "--force", f"--prefix={folder}/")
        return folder / await self._git.prefix()

    async def came_with(self, file: str, lines: Sequence[int]) -> Mapping[int, str]:
        """The commit that added each of these lines of a file; uncommitted lines are left out.

        Args:
            lines: their numbers, from 1 on.
        """
        ranges = [f"-L{line},{line}" for line in lines]
        found = await self._git.attempt("blame", "--porcelain", *ranges, "HEAD", "--", file, limit=NAMES)
        if found.exit_code != 0:  # it is new, or shorter now
            return {}
        heads = (_BLAMED.fullmatch(line) for line in found.output.split(b"\n"))
        return {int(head["line"]): head["commit"].decode() for head in heads if head}

    async def content(self) -> str:
        """A hash of the project's tracked content.

        Marvin's own files in it, such as tickets and documents, do not count.
        """
        listed = await self._git.run("ls-files", "-s", "-z", limit=NAMES)
        lines = (line for line in listed.split(b"\0") if not line.partition(b"\t")[2].startswith(_KEPT))
        return sha256(b"\0".join(lines)).hexdigest()

    async def diff_since(self, commit: str, paths: Sequence[str] = ()) -> str:
        """The changes between a commit and the last one, at most about 60,000 bytes of them.

        Args:
            commit: as `checkpoint` returned it.
            paths: the files and folders to look at, relative to the project; all if it is empty.

        Raises:
            GitFault: git fails.
        """
        self._check(commit)
        arguments = ("diff", "--no-ext-diff", "--no-textconv", commit, "HEAD", "--", *_literal(paths), ALL[-1])
        result = await self._git.attempt(*arguments, env=BETWEEN_COMMITS, limit=_DIFF)
        if result.exit_code != 0:
            raise self._git.fault("diff", result)
        return output_text(result.output, result.omitted, "Read the files for the rest.")

    async def changed_since(self, commit: str) -> Sequence[str]:
        """The files that differ between a commit and the last one, relative to the project. Raises `GitFault`."""
        self._check(commit)
        listed = ("diff", "--name-only", "--no-ext-diff", "--no-renames", "--relative", "-z", commit, "HEAD", *ALL)
        changed = await self._git.whole(*listed, env=BETWEEN_COMMITS, limit=NAMES)
        return sorted(os.fsdecode(name) for name in changed.split(b"\0") if name)

    async def _refuse_unfinished(self) -> None:
        """Refuse a checkpoint during a merge or rebase, which would get commits that do not belong to it."""
        folder = await self._git.place("--absolute-git-dir")
        left = await in_thread(lambda: next((name for name in _UNFINISHED if os.path.lexists(folder / name)), ""))
        if left:
            what, command = _UNFINISHED[left]
            raise GitFault(
                f"A {what} is not finished in {self._folder}, and the pipeline needs to commit. Finish it, or abort "
                f"it with {command}, and run the pipeline again."
            )

    def _check(self, commit: str) -> None:
        if not _COMMIT.fullmatch(commit):
            raise GitFault(f"{commit[:80]!r} is not a commit.")

    async def _has_commits(self) -> bool:
        return bool(await self.newest())

    async def _knows_who(self) -> bool:
        name, address = await self._git.attempt("config", "user.name"), await self._git.attempt("config", "user.email")
        return name.exit_code == 0 and address.exit_code == 0


def _literal(paths: Sequence[str]) -> list[str]:
    """Names as literal pathspecs; the whole folder without names."""
    return [f":(literal){path}" for path in paths] or ["."]


def _as_index(changes: bytes) -> bytes:
    """The entries of an index, from the raw list of what is staged."""
    parts = changes.split(b"\0")
    entries = ((head.split(), name) for head, name in zip(parts[::2], parts[1::2], strict=False))
    return b"".join(b"%b %b\t%b\0" % (head[1], head[3], name) for head, name in entries)
