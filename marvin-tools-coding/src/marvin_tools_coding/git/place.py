"""Which repository a call works on, and whether it is that of the working directory."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from marvin_core import Record, ToolContext, ToolError

from .copies import is_held
from .running import failure, try_read

_STEPS = {
    "rebase-merge": "A rebase is in progress. Next: {resolve}commit, then run_command: git rebase --continue "
    "(or git rebase --abort)",
    "rebase-apply": "A rebase or git am is in progress. Next: {resolve}stage or commit, then run_command: "
    "git rebase --continue or git am --continue (or --abort)",
    "MERGE_HEAD": "A merge is in progress. Next: {resolve}git_commit completes it (or run_command: git merge --abort)",
    "CHERRY_PICK_HEAD": "A cherry-pick is in progress. Next: {resolve}git_commit, then run_command: git cherry-pick "
    "--continue if there are more commits (or git cherry-pick --abort)",
    "REVERT_HEAD": "A revert is in progress. Next: {resolve}git_commit, then run_command: git revert --continue if "
    "there are more commits (or git revert --abort)",
    "sequencer": "There are more commits. Next, run_command: git cherry-pick --continue or git revert --continue",
    "BISECT_LOG": "A bisect is in progress. Next: test this commit, then run_command: git bisect good or "
    "git bisect bad (git bisect reset ends it)",
}
"""The next step, by the file or folder in the git directory that shows an operation in progress; the first one
counts."""
_POINTER_LIMIT = 10_000
_LEFT = ("marvin-index-", "marvin-objects-", "marvin-snapshot-")
"""The first characters of names in a git directory, of what is needed during a call only."""
_LEFT_AFTER = 86_400
"""Seconds after which no call needs it."""


class Place(Record):
    """A repository that calls may use."""

    git_dir: Path
    top: Path | None
    """The top folder of its working tree; None for a bare repository."""
    root: Path

    @property
    def below(self) -> bool:
        """Whether the working directory is a subfolder of the repository."""
        return self.top is not None and self.top != self.root

    @property
    def scope(self) -> Sequence[str]:
        """The pathspec that limits a command to the working directory."""
        return ["."] if self.below else []

    @property
    def prefix(self) -> str:
        """The prefix of the working directory in names that git gives relative to the top."""
        return f"{self.root.relative_to(self.top)}/" if self.top is not None and self.below else ""

    @property
    def up(self) -> str:
        """The path from the working directory to the top of the repository; empty if it is the top."""
        return "../" * self.prefix.count("/")

    @property
    def changed_folders(self) -> Sequence[Path]:
        """The folders in which a checkout changes files: this one, and the repository's own if it is not in it."""
        is_worktree = (self.git_dir / "commondir").exists()
        own = self.git_dir.parent.parent if is_worktree else self.git_dir
        return [self.root, *([] if own.is_relative_to(self.root) else [own])]

    def name_of(self, path: str) -> str:
        """The name that git gives a path relative to the working directory; empty for the top of the repository."""
        return f"{self.prefix}{'' if path == '.' else path}".rstrip("/")

    @property
    def unseen(self) -> str:
        """Which changes git is not asked about; empty if it is asked about all."""
        if self.top is None or not (self.top / ".gitmodules").is_file():
            return ""
        return "Changes inside submodules are not listed here. For each, run_command: git -C FOLDER status"

    def next_step(self, *, unmerged: bool = False) -> str:
        """The next step of a merge, rebase, cherry-pick or bisect in progress; empty without one."""
        for name, step in _STEPS.items():
            if (self.git_dir / name).exists():
                return step.format(resolve="resolve the conflicts, " if unmerged else "")
        return ""


async def find(context: ToolContext, what: str, *, files: bool = True) -> Place:
    """The repository of the working directory, which must be the folder's own or link back to it.

    Args:
        files: whether it must have a working tree.

    Raises:
        ToolError: there is none, it belongs to another folder, or git refuses it.
    """
    root = context.paths.root
    result = await try_read(
        context, ["rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir", "--is-inside-work-tree"]
    )
    holder = _holder(root)
    if result.exit_code != 0:
        if holder is not None and b"not a git repository" in result.stderr and b"parent up to" not in result.stderr:
            raise ToolError(_broken(what, holder, result.stderr.decode("utf-8", "replace")))
        raise failure(context, what, result)
    lines = result.output.decode("utf-8", "surrogateescape").rstrip("\n").split("\n")
    if len(lines) != 3:
        raise ToolError(f"{what} is refused: the path of the repository, {root}, has a line break. Rename its folder.")
    git_dir, common, inside = lines
    if holder is None:
        return _bare(what, root, Path(git_dir), files=files)
    top_of = await try_read(context, ["rev-parse", "--path-format=absolute", "--show-toplevel"])
    top = top_of.output.decode("utf-8", "surrogateescape").rstrip("\n")
    if inside != "true" and top_of.exit_code != 0 and not files and _own(holder, Path(git_dir), Path(common)):
        return Place(git_dir=Path(git_dir), top=None, root=root)
    if top_of.exit_code != 0 and "work tree" not in top_of.stderr.decode("utf-8", "replace"):
        raise failure(context, what, top_of)
    if not top or _real(top) != holder:
        raise ToolError(
            f"{what} is refused: the repository in {holder} has its files in another folder ({top or 'none'}), "
            "because of its setting core.worktree or core.bare. Ask the user; run_command: git config --unset "
            "core.worktree"
        )
    if not _own(holder, Path(git_dir), Path(common)):
        raise ToolError(
            f"{what} is refused: {holder}/.git leads to the repository {git_dir}, which does not refer back to this "
            "folder as a worktree or a submodule would. Ask the user; git worktree repair repairs a worktree that "
            "was moved."
        )
    return Place(git_dir=Path(git_dir), top=holder, root=root)


def remove_left(git_dir: Path) -> None:
    """Remove what a Marvin that was killed has left in a git directory. Blocks."""
    oldest = time.time() - _LEFT_AFTER
    with suppress(OSError), os.scandir(git_dir) as entries:
        for entry in entries:
            if not entry.name.startswith(_LEFT) or entry.stat(follow_symlinks=False).st_mtime > oldest:
                continue
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            elif not is_held(Path(entry.path)):  # a copy has the time of its index
                os.unlink(entry.path)


def _real(path: Path | str) -> Path:
    return Path(os.path.realpath(path))


def _holder(root: Path) -> Path | None:
    """This folder, or the nearest one above, that has a `.git`."""
    return next((folder for folder in (root, *root.parents) if os.path.lexists(folder / ".git")), None)


def _broken(what: str, holder: Path, said: str) -> str:
    return (
        f"{what} failed: {holder}/.git exists, but git does not accept it as a repository: its HEAD, or the commit "
        f"of HEAD, is missing or damaged. Do not run git init; show the user its contents.\ngit says: {said.strip()}"
    )


def _bare(what: str, root: Path, git_dir: Path, *, files: bool) -> Place:
    if not files and _real(git_dir) == root:
        return Place(git_dir=git_dir, top=None, root=root)
    raise ToolError(
        f"{what} is refused: {root} has no working tree: it is (or is inside) a bare repository or a git directory. "
        "git_log, git_show and git_branch work in a bare one; for files, run_command: git worktree add FOLDER"
    )


def _own(holder: Path, git_dir: Path, common: Path) -> bool:
    """Whether a git directory belongs to the folder: it lies in it, or names it."""
    real, real_common = _real(git_dir), _real(common)
    if real == real_common:
        return real.is_relative_to(holder) or _is_named_in_config(real, holder)
    if real.parent != real_common / "worktrees":
        return False
    return _real(real / _first_line(real / "gitdir")) == _real(holder / ".git")


def _is_named_in_config(git_dir: Path, holder: Path) -> bool:
    """Whether a git directory names the working tree in its config, as that of a submodule does."""
    settings = "\n".join(_text(git_dir / name) for name in ("config", "config.worktree"))
    lines = (line.strip().partition("=") for line in settings.splitlines())
    named = (value.strip().strip('"') for key, _, value in lines if key.strip().lower() == "worktree")
    return any(_real(git_dir / path) == holder for path in named)


def _first_line(file: Path) -> str:
    return _text(file).partition("\n")[0]


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(_POINTER_LIMIT).decode("utf-8", "surrogateescape")
    except OSError:
        return ""
