"""The clone of a task: made once, on a branch of its own, and pushed if requested."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from marvin_core import GIT_PROGRAMS, GIT_TRANSFERS, git_command, git_without_programs, one_line

from .child import environment
from .records import BatchFault

_GIT = git_command()
_WHY = 400
_WHO = (("user.name", "Marvin"), ("user.email", "marvin@localhost"))


class CloneFault(BatchFault):
    """A git command for the task failed."""


class Clone:
    """A clone. Blocks; each git command has a timeout, and runs no hooks, filters or monitors of the repository.

    Args:
        folder: its path.
        timeout: seconds for each git command.
        lock: a descriptor that git inherits, so that a git that outlives its worker still holds the task's lock.
    """

    def __init__(self, folder: Path, timeout: float, lock: int) -> None:
        self._folder = folder
        self._timeout = timeout
        self._lock = lock

    def make(self, repository: str, base: str, branch: str) -> str:
        """Make the clone, on its branch; returns the branch's first commit, empty if there is none.

        What a killed worker left is removed. Nothing is shared with the repository, as with git's hard links, so
        that damage here does not affect it.

        Raises:
            CloneFault: git fails, or the repository has no such base.
        """
        part = self._folder.with_name(f"{self._folder.name}.part")
        if part.is_dir() and not part.is_symlink():
            shutil.rmtree(part)
        self._check(
            ("clone", "--quiet", "--no-hardlinks", "--no-checkout", "--", repository, str(part)), part.parent, "clone"
        )
        begun = self._begun(part, base)
        if begun:
            self._make_room(part, begun, branch)
            self._check(("checkout", "--quiet", "--no-track", "-b", branch, begun), part, "checkout")
        else:
            self._check(("symbolic-ref", "HEAD", f"refs/heads/{branch}"), part, "symbolic-ref")
        self._know_who(part)
        (part / ".tickets").mkdir(exist_ok=True)  # else those of a project around the results folder would be used
        os.rename(part, self._folder)
        return begun

    def _make_room(self, folder: Path, begun: str, branch: str) -> None:
        """Remove a branch `marvin`, because git cannot store `marvin/ID` beside it. It stays as `origin/marvin`."""
        taken = f"refs/heads/{branch.partition('/')[0]}"
        if self._commit(folder, taken):
            self._check(("update-ref", "--no-deref", "HEAD", begun), folder, "update-ref")
            self._check(("update-ref", "-d", taken), folder, "update-ref")

    def _know_who(self, folder: Path) -> None:
        """Configure Marvin as the committer if git has none: agents commit here, too."""
        for name, value in _WHO:
            if self._run(("config", name), folder).returncode:
                self._check(("config", name, value), folder, "config")

    def head(self) -> str:
        """The newest commit; empty if there is none."""
        return self._commit(self._folder, "HEAD")

    def push(self, repository: str, branch: str) -> None:
        """Push the branch; never overwrites commits in the repository.

        Raises:
            CloneFault: git fails, for example because the repository has a different branch of this name.
        """
        listed = self._run(GIT_PROGRAMS, self._folder).stdout
        quiet = git_without_programs(listed)
        ref = f"refs/heads/{branch}"
        done = self._run(("push", "--quiet", "--", repository, f"{ref}:{ref}"), self._folder, quiet)
        if done.returncode:
            raise _fault("push", done.stderr)

    def _begun(self, folder: Path, base: str) -> str:
        if not base:
            return self._commit(folder, "HEAD")
        for name in (f"refs/remotes/origin/{base}", f"refs/tags/{base}", base):
            if found := self._commit(folder, name):
                return found
        raise CloneFault(f"The repository has no branch, tag or commit {base!r}.")

    def _commit(self, folder: Path, name: str) -> str:
        words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        done = self._run(words, folder)
        return done.stdout.decode("ascii", "replace").strip() if done.returncode == 0 else ""

    def _check(self, words: Sequence[str], folder: Path, what: str) -> None:
        done = self._run(words, folder)
        if done.returncode:
            raise _fault(what, done.stderr)

    def _run(
        self, words: Sequence[str], folder: Path, variables: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        env = {**environment(_local()), **GIT_TRANSFERS, **(variables or {})}
        try:
            return subprocess.run(
                [*_GIT, *words],
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self._timeout,
                check=False,
                pass_fds=(self._lock,),
            )
        except subprocess.TimeoutExpired as error:
            raise CloneFault(f"git {words[0]} did not end within {self._timeout:g} s.") from error
        except OSError as error:
            raise CloneFault(f"git cannot be started: {error.strerror}.") from error


def _local() -> Sequence[str]:
    """The variables that tie git to another repository, which the clone must not use."""
    listed = subprocess.run(["git", "rev-parse", "--local-env-vars"], capture_output=True, check=False)
    return listed.stdout.decode("ascii", "replace").split()


def _fault(what: str, said: bytes) -> CloneFault:
    return CloneFault(f"git {what} failed: {one_line(said.decode('utf-8', 'replace'), _WHY)}")
