"""The workplace of a review job: a git worktree on a branch of its own, so that the user's files stay unchanged."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from marvin_core import (
    GIT_ALONE,
    HABITUALLY_IGNORED,
    Processes,
    ProcessResult,
    ToolError,
    git_command,
    in_thread,
    output_text,
    own_folder,
    remove_worktree,
    remove_worktree_locks,
)

from .records import KIND, ReviewOrder

_GIT = (*git_command(), "--literal-pathspecs")
_OUTPUT = 20_000_000
_WORKTREES = ".marvin/worktrees"
_TRIES = 20
_SHOWN = 10
_REPOSITORY = b"160000"
"""The mode of a submodule, or of another repository that was added like a file."""
_LEFT_OUT = "Ignore the files of the review"
_OWN = (".marvin", ".tickets")
"""Marvin's folders in a project."""
_UPSTREAM = ".marvin/upstream"
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Place:
    """The repository of a folder to review.

    Args:
        folder: the folder, links resolved.
        processes: runs git.
        timeout: seconds for each git command.
    """

    def __init__(self, folder: Path, processes: Processes, timeout: float) -> None:
        self._folder = folder
        self._processes = processes
        self._timeout = timeout

    async def base(self) -> str:
        """The commit from which a review starts.

        Raises:
            ToolError: the folder is not in a repository with a commit.
        """
        base = (await self._try("rev-parse", "--verify", "--quiet", "HEAD^{commit}")).output.decode().strip()
        top = await self._try("rev-parse", "--show-toplevel")
        if top.exit_code != 0 and b"not a git repository" not in top.stderr:
            raise _fault("rev-parse", top)  # such as a folder that belongs to another user
        if top.exit_code != 0 or not base:
            raise ToolError(
                f"{self._folder} is not in a git repository with a commit. The review needs a branch, so create a "
                "repository: git init, then commit."
            )
        if Path(os.fsdecode(top.output.rstrip(b"\n"))) != self._folder:
            raise ToolError(
                f"{self._folder} is a part of the repository {os.fsdecode(top.output.strip())}. Pass the repository "
                "as working_dir, and the part as focus."
            )
        return base

    async def files(self) -> Sequence[str]:
        """The tracked files, relative to the folder. Raises `ToolError` if git fails."""
        return [os.fsdecode(name) for name in (await self._run("ls-files", "-z")).split(b"\0") if name]

    async def open(self, base: str, focus: str, documents: str, rounds: int) -> ReviewOrder:
        """Create the worktree and the branch of a new job at a commit.

        Raises:
            ToolError: the worktree cannot be created.
        """
        changed = await self._run("status", "--porcelain", "-z", "--untracked-files=no")
        left_out = sum(1 for line in changed.split(b"\0") if line)
        await in_thread(self._make_folder)
        now = datetime.now(UTC)
        for extra in range(_TRIES):
            stamp = f"{now:%Y%m%d-%H%M%S}" + (f"-{extra}" if extra else "")
            branch, tree = f"{KIND}/{stamp}", self._folder / _WORKTREES / f"{KIND}-{stamp}"
            added = await self._try("worktree", "add", "--quiet", "-b", branch, str(tree), base)
            if added.exit_code == 0:
                await in_thread(partial(_hide, tree))
                return ReviewOrder(
                    id=f"{KIND}-{stamp}",
                    folder=str(self._folder),
                    tree=str(tree),
                    branch=branch,
                    base=base,
                    focus=focus,
                    documents=documents,
                    rounds=rounds,
                    left_out=left_out,
                )
            if b"already exists" not in added.stderr + added.output:
                raise _fault("worktree add", added)
        raise ToolError("No free name was found for the branch of the review. Try again in a second.")

    async def unlock(self, order: ReviewOrder) -> None:
        """Remove the locks that a killed git left in a job's worktree: nothing else runs there.

        Raises:
            MarvinError: git fails.
        """
        common = await self._common()
        await in_thread(lambda: remove_worktree_locks(self._folder, Path(order.tree), common))

    async def remove(self, order: ReviewOrder, *, with_branch: bool = False) -> None:
        """Remove a worktree, and its branch if that is empty.

        It stays if a tracked file has uncommitted changes, or no branch has the commits of an agent.

        Other files left there are caches and the like, which are fetched or generated, or ignored.
        """
        tree = Place(Path(order.tree), self._processes, self._timeout)
        for name in _OWN:  # Marvin's own files are not code
            await tree._try("checkout", "--quiet", "HEAD", "--", name)
        if (await tree._try("diff", "--quiet", "--ignore-submodules", "HEAD")).exit_code != 0:
            return
        tip = await tree._try("rev-parse", "--verify", "--quiet", "HEAD")
        is_empty = (await tree._try("diff", "--quiet", "--ignore-submodules=dirty", order.base, "HEAD")).exit_code == 0
        if not is_empty and not await tree._is_on_a_branch():
            return
        if with_branch and is_empty:  # `git branch -D` refuses while the worktree is there
            await self._try("update-ref", "-d", f"refs/heads/{order.branch}", tip.output.decode().strip())
        # Not with git: a sandbox cannot remove its own root folder, and git follows links that are swapped in.
        common = await self._common()
        await in_thread(lambda: remove_worktree(self._folder, Path(order.tree), common))

    async def tidy(self, order: ReviewOrder) -> int:
        """Remove Marvin's own files from the branch; returns its commits.

        Commits that an agent made on another branch are moved to the job's branch first.

        Raises:
            MarvinError: git fails.
        """
        tree = Place(Path(order.tree), self._processes, self._timeout)
        await tree._return_to(order)
        kept = [name for name in _OWN if await tree._differs(order.base, name)]
        if kept:
            await tree._run("reset", "--quiet", order.base, "--", *kept)
            who = ("-c", "user.name=Marvin", "-c", "user.email=marvin@localhost")
            await tree._run("commit", "--quiet", "--no-verify", "-m", _LEFT_OUT, who=who)
        if (await tree._try("diff", "--quiet", order.base, "HEAD")).exit_code == 0:
            return 0
        return int((await tree._run("rev-list", "--count", f"{order.base}..HEAD")).strip() or b"0")

    async def check_repositories(self, order: ReviewOrder) -> None:
        """Refuse to count everything as committed if the worktree has other repositories, such as submodules.

        Commits have the names of their commits, but not their files.

        Raises:
            MarvinError: it has some, or git fails.
        """
        tree = Path(order.tree)
        staged = await Place(tree, self._processes, self._timeout)._run("ls-files", "--stage", "-z")
        entries = (line.partition(b"\t") for line in staged.split(b"\0") if line.startswith(_REPOSITORY))
        names = [os.fsdecode(name) for _, _, name in entries]
        here = await in_thread(lambda: [name for name in names if os.path.lexists(tree / name / ".git")])
        if here:
            names = here[:_SHOWN]
            raise ToolError(f"No commit contains the files of other repositories in it: {', '.join(names)}.")

    async def _return_to(self, order: ReviewOrder) -> None:
        """Check out the job's branch in the worktree. If an agent continued from it elsewhere, the branch is moved
        there."""
        wanted = f"refs/heads/{order.branch}"
        if (await self._try("symbolic-ref", "--quiet", "HEAD")).output.decode().strip() == wanted:
            return
        found = await self._try("rev-parse", "--verify", "--quiet", wanted)
        tip = found.output.decode().strip() if found.exit_code == 0 else order.base
        if (await self._try("merge-base", "--is-ancestor", tip, "HEAD")).exit_code == 0:
            await self._run("update-ref", wanted, "HEAD")
            await self._run("symbolic-ref", "HEAD", wanted)
        else:  # it went back to before the fixes
            await self._run("checkout", "--quiet", "-B", order.branch, tip)

    async def _is_on_a_branch(self) -> bool:
        listed = await self._try("for-each-ref", "--count=1", "--contains=HEAD", "refs/heads")
        return listed.exit_code == 0 and bool(listed.output)

    async def _common(self) -> Path:
        """Git's folder, which all worktrees share."""
        said = os.fsdecode((await self._run("rev-parse", "--git-common-dir")).rstrip(b"\n"))
        return await in_thread((self._folder / said).resolve)

    async def _differs(self, base: str, name: str) -> bool:
        return (await self._try("diff", "--cached", "--quiet", base, "--", name)).exit_code == 1

    def _make_folder(self) -> None:
        try:
            with own_folder(self._folder, self._folder / _WORKTREES, 0o777) as opened:
                _ignore_all(opened)
        except OSError as error:
            folder = self._folder / _WORKTREES
            raise ToolError(
                f"No worktree can be created in {folder}: {error.strerror}. Check whether it is a link."
            ) from error

    async def _run(self, *arguments: str, who: tuple[str, ...] = ()) -> bytes:
        done = await self._try(*arguments, who=who)
        if done.exit_code != 0:
            raise _fault(arguments[0], done)
        return done.output

    async def _try(self, *arguments: str, who: tuple[str, ...] = ()) -> ProcessResult:
        return await self._processes.run(
            [*_GIT, *who, *arguments],
            cwd=self._folder,
            timeout=self._timeout,
            output_limit=_OUTPUT,
            env=GIT_ALONE,
        )


def _hide(tree: Path) -> None:
    """Keep documents and tickets of the job out of agents' commits: they may be private. Blocks.

    Existing ignore rules of such a folder are kept. A link in its place is reported later, when it is
    written to.
    """
    with suppress(OSError):
        for name in (".marvin", _UPSTREAM):
            with own_folder(tree, tree / name, 0o777) as opened:
                _ignore_all(opened)
    with suppress(OSError):
        # Without it the tickets would go to the nearest folder above, which is the user's.
        (tree / ".tickets").mkdir(exist_ok=True)
        folder = os.open(tree / ".tickets", _FOLDER)
        try:
            _ignore_all(folder)
        finally:
            os.close(folder)


def check_left_out(left_out: Iterable[str]) -> None:
    """Refuse to count everything as committed if the last checkpoint left out files that cannot be made again.

    Raises:
        ToolError: it did.
    """
    names = [name for name in left_out if name.rstrip("/").rpartition("/")[2] not in HABITUALLY_IGNORED]
    if names:
        rest = f" and {len(names) - _SHOWN:,} more" if names[_SHOWN:] else ""
        raise ToolError(f"No commit contains these new files: {', '.join(names[:_SHOWN])}{rest}.")


def _ignore_all(folder: int) -> None:
    """Have git ignore a whole folder, unless it has rules already."""
    try:
        descriptor = os.open(".gitignore", _NEW_FILE, 0o666, dir_fd=folder)
    except FileExistsError:
        return
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write("*\n")


class GitFailed(ToolError):
    """A git command failed."""


def _fault(what: str, done: ProcessResult) -> GitFailed:
    said = output_text(done.stderr or done.output).strip()
    return GitFailed(f"git {what} {'took too long' if done.timed_out else f'failed: {said}'}")
