"""Git commands for Marvin's own work in a repository: without hooks, fetching or prompts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from ...api.errors import ToolError
from ...api.record import Record
from ...guard.sandbox.repository import linked_folder
from ...util.git_calls import GIT_ALONE, GIT_PROGRAMS, git_command, git_without_programs
from ...util.text import one_line

if TYPE_CHECKING:
    from ...api.processes import Processes, ProcessResult

_GIT = (*git_command(), "--literal-pathspecs")
_OUTPUT = 20_000_000
_SAID = 2_000
_IN_PROGRESS = ("MERGE_HEAD", "rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "REVERT_HEAD", "sequencer")


class GitFailure(ToolError):
    """A git command failed; the text contains its error."""


class Repository(Record):
    """A git working tree, and a folder in it."""

    root: Path
    """The folder to work in."""
    top: Path
    """The top of the working tree."""
    git_dir: Path
    common: Path
    """The git folder that all working trees of the repository share."""
    without: Mapping[str, str] = MappingProxyType({})
    """Variables that disable hooks defined in settings."""

    @property
    def prefix(self) -> str:
        """The prefix of paths below the root when git counts from the top."""
        return "" if self.root == self.top else f"{self.root.relative_to(self.top)}/"

    @property
    def in_progress(self) -> str:
        """The unfinished operation in the git folder, such as a merge or rebase; empty if there is none."""
        return next((name for name in _IN_PROGRESS if os.path.lexists(self.git_dir / name)), "")


class Git:
    """Runs git in working trees, in the session's sandbox."""

    def __init__(self, processes: Processes, timeout: float) -> None:
        self._processes = processes
        self._timeout = timeout

    @property
    def is_there(self) -> bool:
        """Whether git is installed."""
        return self._processes.which("git") is not None

    async def attempt(
        self,
        at: Repository,
        *arguments: str,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
    ) -> ProcessResult:
        """Git in a working tree. Its `.git` is not read, since the agent there may have changed it."""
        places = {"GIT_DIR": str(at.git_dir), "GIT_WORK_TREE": str(at.top)}
        return await self._run(at.top, (*_case_of(at.top), *arguments), {**places, **at.without, **(env or {})}, stdin)

    async def look(self, folder: Path, *arguments: str) -> ProcessResult:
        """Git in a folder that has not been examined yet; for commands that change nothing."""
        return await self._run(folder, arguments, {}, None)

    async def run(self, at: Repository, what: str, *arguments: str, stdin: bytes | None = None) -> str:
        """The same, with text as the result. Raises `GitFailure` if it fails; `what` describes the attempt."""
        return text_of(checked(what, await self.attempt(at, *arguments, stdin=stdin)))

    async def names(self, at: Repository, what: str, *arguments: str) -> list[str]:
        """The NUL-terminated fields that git lists. Raises `GitFailure` as `run` does, and if there are too many."""
        result = checked(what, await self.attempt(at, *arguments))
        if result.omitted:
            raise GitFailure(f"{what} failed: there are too many files.")
        return [name for name in text_of(result).split("\0") if name]

    async def find(self, root: Path) -> Repository:
        """The repository of a folder.

        Raises:
            GitFailure: there is none, or its files are in another place.
        """
        options = ("--git-dir", "--git-common-dir", "--show-toplevel")
        result = await self._run(root, ("rev-parse", "--path-format=absolute", *options), {}, None)
        if result.exit_code != 0:
            raise GitFailure(
                f"{root} is not in a git repository that can be used. git says: {said(result) or 'nothing'}"
            )
        paths = text_of(result).removesuffix("\n").split("\n")
        if len(paths) != len(options):
            raise GitFailure(f"The path of the repository has a line break in it: {one_line(str(root))}.")
        git_dir, common, top = map(real, paths)
        if not _is_top(top, root) or not _is_own(top / ".git", common):
            raise GitFailure(f"The repository of {root} keeps its files or its history in another place ({git_dir}).")
        at = Repository(root=root, top=top, git_dir=git_dir, common=common)
        programs = await self.attempt(at, *GIT_PROGRAMS)
        if programs.exit_code not in (0, 1) or programs.omitted:  # 1: there is none
            raise GitFailure(f"The settings of the repository of {root} cannot be read. git says: {said(programs)}")
        return at.replace(without=git_without_programs(programs.output, filters=False))

    async def _run(
        self, cwd: Path, arguments: Sequence[str], env: Mapping[str, str], stdin: bytes | None
    ) -> ProcessResult:
        return await self._processes.run(
            [*_GIT, *arguments],
            cwd=cwd,
            stdin=stdin,
            timeout=self._timeout,
            output_limit=_OUTPUT,
            env={**GIT_ALONE, **env},
        )

    async def identity(self, at: Repository) -> dict[str, str]:
        """Variables with the identity of the committer, used if nothing else sets it."""
        found = await self.attempt(at, "var", "GIT_COMMITTER_IDENT")
        if found.exit_code == 0:
            return {}
        who = {"NAME": "Marvin", "EMAIL": "marvin@localhost"}
        return {f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in who.items()}


def real(path: Path | str) -> Path:
    """The same folder with links resolved."""
    return Path(os.path.realpath(path))


def _case_of(top: Path) -> Sequence[str]:
    """The setting by which git ignores the case of names, if the file system does.

    A repository from another system may have another setting, and a renamed file would then be missing in commits.
    """
    return () if os.path.lexists(top / ".GIT") else ("-c", "core.ignorecase=false")


def _is_top(top: Path, root: Path) -> bool:
    """Whether a folder is the nearest one, starting here and going up, with a `.git`."""
    between = [folder for folder in (root, *root.parents) if folder != top and folder.is_relative_to(top)]
    return root.is_relative_to(top) and not any(os.path.lexists(folder / ".git") for folder in between)


def _is_own(dot: Path, common: Path) -> bool:
    """Whether a repository belongs to a `.git`, or to one that it points to and that points back."""
    return common == dot if dot.is_dir() and not dot.is_symlink() else linked_folder(dot) == common


def checked(what: str, result: ProcessResult) -> ProcessResult:
    """The result of a successful git command. Raises `GitFailure` for another."""
    if result.exit_code != 0:
        raise GitFailure(f"{what} failed. git says: {said(result) or f'nothing (exit code {result.exit_code})'}")
    return result


def said(result: ProcessResult) -> str:
    """Git's description of a failure."""
    if result.timed_out:
        return "nothing in the time it had"
    return (result.stderr + result.output).decode("utf-8", "replace")[:_SAID].strip()


def text_of(result: ProcessResult) -> str:
    """Its output; names that are not UTF-8 stay as they are."""
    return os.fsdecode(result.output)
