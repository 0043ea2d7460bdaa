"""Merges an agent's branch into the branch of the main folder, if there is no conflict.

The merge takes place in the agent's worktree, which contains only files of the agent. The main folder is then
fast-forwarded to the result. Git refuses that as a whole if a file there has other changes.
"""

from __future__ import annotations

from ...api.record import Record
from ...util.text import shortened
from .git import Git, GitFailure, Repository, checked, said, text_of
from .leftovers import head_of

_TRIES = 3
"""The number of attempts if the branch of the main folder moves meanwhile."""


class Merged(Record):
    """The result of a merge: the new commit of the main folder's branch, or why the branch did not move."""

    commit: str = ""
    files: tuple[str, ...] = ()
    """The changed files of the main folder, by their names in git."""
    refusal: str = ""
    conflicts: tuple[str, ...] = ()
    is_elsewhere: bool = False
    """Whether another branch was checked out when git moved one."""


class Merging:
    """Merges branches of worktrees into the working tree from which they were made."""

    def __init__(self, git: Git) -> None:
        self._git = git

    async def merge(self, main: Repository, place: Repository, into: str, title: str) -> Merged:
        """Merge the current commit of the worktree at `place` into the branch `into` (a full name) of `main`.

        Raises:
            GitFailure: git fails for a reason other than the merge itself.
        """
        at = await head_of(self._git, main)
        for _ in range(_TRIES):
            merged = await self._merged(main, place, at, into, title)
            before, at = at, await head_of(self._git, main)
            if merged.commit or merged.is_elsewhere or at == before:
                return merged
        return Merged(refusal="the main folder got new commits at each attempt")

    async def _merged(self, main: Repository, place: Repository, at: tuple[str, str], into: str, title: str) -> Merged:
        branch, head = at
        if not into:
            return Merged(refusal="the main folder is on no branch")
        if branch != into:
            names = [name.removeprefix("refs/heads/") or "no branch" for name in (branch, into)]
            return Merged(refusal=f"the main folder is on {names[0]} now, and was on {names[1]} when the agent began")
        if main.in_progress:
            return Merged(
                refusal=f"a merge, rebase or similar operation is in progress in the main folder ({main.in_progress})"
            )
        tip = (await self._git.run(place, "git rev-parse", "rev-parse", "--verify", "HEAD^{commit}")).strip()
        is_ahead = await self._git.attempt(main, "merge-base", "--is-ancestor", head, tip)
        joint = Merged(commit=tip) if is_ahead.exit_code == 0 else await self._joined(place, head, tip, title)
        return await self._moved(main, branch, head, joint.commit) if joint.commit else joint

    async def _joined(self, place: Repository, head: str, tip: str, title: str) -> Merged:
        """A merge commit of both sides, which no branch contains yet."""
        who = await self._git.identity(place)
        options = ("--no-commit", "--no-ff", "--no-verify", "--quiet")
        tried = await self._git.attempt(place, "merge", *options, head, env=who)
        try:
            if tried.exit_code == 0:
                tree = (await self._git.run(place, "git write-tree", "write-tree")).strip()
                arguments = ("commit-tree", tree, "-p", head, "-p", tip, "-m", title)
                made = checked("git commit-tree", await self._git.attempt(place, *arguments, env=who))
                return Merged(commit=text_of(made).strip())
            conflicts = await self._git.names(place, "git diff", "diff", "--name-only", "--diff-filter=U", "-z")
        finally:
            if place.in_progress == "MERGE_HEAD":
                await self._git.run(place, "git merge --abort", "merge", "--abort")
        why = f"both sides changed {shortened(conflicts)}" if conflicts else f"git says: {said(tried)}"
        return Merged(refusal=why, conflicts=tuple(conflicts))

    async def _moved(self, main: Repository, branch: str, head: str, commit: str) -> Merged:
        """Fast-forward the branch of the main folder, with its files, from its head to a commit."""
        fields = await self._git.names(main, "git diff", "diff-tree", "-r", "--no-renames", "-z", head, commit)
        changes = dict(zip(fields[1::2], fields[::2], strict=True))
        files = list(changes)
        outside = [name for name in files if not name.startswith(main.prefix)]
        if outside:
            return Merged(refusal=f"it changes files outside of the working directory: {shortened(outside)}")
        # What a submodule's folder contains has no copy, and git would delete it with the submodule.
        modules = [name for name, modes in changes.items() if modes.startswith(":160000") and " 160000 " not in modes]
        if modules:
            return Merged(refusal=f"it removes the submodule {shortened(modules)}, whose files may have changes")
        how = ("--ff-only", "--no-overwrite-ignore", "--quiet", "--no-verify")
        moved = await self._git.attempt(main, "merge", *how, commit, env=_without_options(main, branch))
        if moved.exit_code != 0:
            return Merged(refusal=f"the main folder has uncommitted changes or new commits. git says: {said(moved)}")
        has_moved = await self._git.attempt(main, "merge-base", "--is-ancestor", commit, branch)
        if has_moved.exit_code != 0:
            return Merged(refusal=await self._elsewhere(main, commit), is_elsewhere=True)
        return Merged(commit=commit, files=tuple(files))

    async def _elsewhere(self, main: Repository, commit: str) -> str:
        """Why a merge did not move its branch: git moves the one that is checked out when it ends."""
        now, head = await head_of(self._git, main)
        where = now.removeprefix("refs/heads/") or "no branch"
        has_it = await self._git.attempt(main, "merge-base", "--is-ancestor", commit, head)
        got = ", which has the changes now" if has_it.exit_code == 0 else ""
        return f"the main folder was switched to {where} in the same moment{got}"


def _without_options(main: Repository, branch: str) -> dict[str, str]:
    """Variables that disable the branch's options for merges: they may leave out the commit, or the changes."""
    number = int(main.without.get("GIT_CONFIG_COUNT", "0"))
    name = branch.removeprefix("refs/heads/")
    return {
        "GIT_CONFIG_COUNT": str(number + 1),
        f"GIT_CONFIG_KEY_{number}": f"branch.{name}.mergeoptions",
        f"GIT_CONFIG_VALUE_{number}": "",
    }


async def count_commits(git: Git, at: Repository, base: str, tip: str) -> int:
    """The number of commits of a branch since its start. Raises `GitFailure` if that commit does not exist."""
    number = await git.run(at, "git rev-list", "rev-list", "--count", tip, f"^{base}", "--")
    if not number.strip().isdigit():
        raise GitFailure("git rev-list did not return a number.")
    return int(number)
