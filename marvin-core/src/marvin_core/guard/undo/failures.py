"""Failures of snapshots: whether another try may help, and whether the stored files are damaged."""

from __future__ import annotations

import re

from ...api.errors import MarvinError
from ...api.processes import ProcessResult

_DAMAGE = re.compile(
    "(invalid|bad) object|null sha1|is corrupt|is empty|unable to (read|unpack|stream)|bad tree|not a git repository"
)
_ELSEWHERE = re.compile("Permission denied|Input/output error|No space left|Too many open files|allocate memory")
"""Failures of the machine, which may end; the files may be intact."""
_LISTS = ("diff-files", "ls-files")
"""Commands that read the index and nothing else."""
_FATAL = range(1, 130)
"""The exit codes of git's own errors; a killed git has another one."""


class SnapshotFailure(MarvinError):
    """A snapshot could not be taken, or cannot be read; the text says why.

    `is_lasting` means that the next command would wait and fail in the same way; `is_final` that what commands did can
    never be undone; `is_damaged` that git cannot read what is stored.
    """

    def __init__(
        self, text: str, *, is_lasting: bool = False, is_final: bool = False, is_damaged: bool = False
    ) -> None:
        super().__init__(text)
        self.is_lasting = is_lasting or is_final
        self.is_final = is_final
        self.is_damaged = is_damaged


def failure_of(what: str, result: ProcessResult) -> SnapshotFailure:
    """The failure of a git command."""
    if result.timed_out:
        return SnapshotFailure("scanning the folder took too long (timeouts.snapshot)", is_lasting=True)
    if result.omitted:
        return SnapshotFailure("the folder has too many files", is_final=True)
    said = result.stderr.decode("utf-8", "replace").strip()[-500:] or f"exit code {result.exit_code}"
    is_damaged = what in _LISTS or _DAMAGE.search(said) is not None
    is_damaged = is_damaged and result.exit_code in _FATAL and not _ELSEWHERE.search(said)
    return SnapshotFailure(f"git {what}: {said}", is_damaged=is_damaged)
