"""How far the pipeline of a project is: the last finished phase, in `.marvin/pipeline_state`."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from marvin_core import MarvinError, update_file

PHASES = ("1a", "1a_review", "1b", "1b_review", "2a", "2b", "3", "4a", "4b", "4c", "5")
"""The phases in their order."""

MEANINGS = {
    "1a": "specification and user experience",
    "1a_review": "their review",
    "1b": "design",
    "1b_review": "its review",
    "2a": "functional tests",
    "2b": "integration tests",
    "3": "implementation",
    "4a": "debugging until the tests pass",
    "4b": "trying the program from end to end",
    "4c": "frontend checks",
    "5": "adversarial quality review",
}
"""What is done in each phase."""

_LONGEST = 200
"""Bytes that are read of the file; no phase is nearly as long."""


class StateError(MarvinError):
    """The state file is damaged, or a phase is named that does not exist."""


class PipelineState:
    """The state of one project. Nothing is remembered: each question reads the file, which others may have changed.

    Args:
        working_dir: the project's folder.
    """

    def __init__(self, working_dir: Path) -> None:
        self.path = working_dir / ".marvin" / "pipeline_state"
        self._log = working_dir / ".marvin" / "logs" / "pipeline.log"

    def last_finished(self) -> str | None:
        """The last finished phase; None where none is.

        Raises:
            StateError: where the file holds something else, or is a link.
        """
        self._refuse_links()
        try:
            with self.path.open("rb") as stream:
                content = stream.read(_LONGEST)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StateError(f"{self.path} cannot be read: {error.strerror}. Check its permissions.") from error
        return self._phase(content)

    def is_done(self, phase: str) -> bool:
        """Whether a phase is finished. Reads the file each time."""
        last = self.last_finished()
        return _index(phase) <= (-1 if last is None else _index(last))

    def next_phase(self) -> str | None:
        """The first phase that is not finished; None where all are."""
        last = self.last_finished()
        following = PHASES[0 if last is None else _index(last) + 1 :]
        return following[0] if following else None

    def save(self, phase: str) -> bool:
        """Note that a phase is finished; does nothing where a later one is, and says whether it did something.

        Raises:
            StateError: where the file is damaged or cannot be written.
        """
        wanted, saved = _index(phase), []

        def change(content: bytes | None) -> bytes | None:
            if content is not None and wanted <= _index(self._phase(content[:_LONGEST])):
                return None
            saved.append(phase)
            return phase.encode()

        self._update(change)
        return bool(saved)

    def restart_from(self, phase: str) -> None:
        """Make a phase the next one again: the only way back. Works with a damaged file, too, and is logged.

        What is done of that phase and of later ones is forgotten. No document is removed.

        Raises:
            StateError: where the file or the log cannot be written.
            FileFault: where the notes of what is done cannot be removed.
        """
        from .progress import forget
        from .run.files import ProjectFiles

        number = _index(phase)
        finished = PHASES[number - 1] if number else ""

        def change(content: bytes | None) -> bytes | None:
            before = "nothing" if content is None else repr(content[:_LONGEST].decode("utf-8", "replace"))
            self._note(f"--from {phase}: {before} was finished, now {finished or 'nothing'} is")
            if not finished:
                self.path.unlink(missing_ok=True)
            return finished.encode() or None

        self._update(change)
        forget(ProjectFiles(self.path.parent.parent.resolve()), PHASES[number:])

    def _refuse_links(self) -> None:
        """Follow no link that a repository brings: what it leads to would be shown, or written over."""
        for path in (self.path.parent, self.path, self._log.parent, self._log):
            if path.is_symlink():
                raise StateError(f"{path} is a link, which may lead anywhere, so it was left alone. Remove it.")

    def _update(self, change: Callable[[bytes | None], bytes | None]) -> None:
        self._refuse_links()
        try:
            update_file(self.path, change)
        except OSError as error:
            name = error.filename or self.path
            raise StateError(f"{name} cannot be written: {error.strerror}. Check its permissions.") from error

    def _phase(self, content: bytes) -> str:
        text = content.decode("utf-8", "replace").strip()
        if text not in PHASES:
            raise StateError(
                f"{self.path} is damaged: it holds {text[:40]!r} and no phase. "
                f"Start again with --from PHASE, one of {', '.join(PHASES)}; --from {PHASES[0]} begins anew."
            )
        return text

    def _note(self, text: str) -> None:
        line = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {text}\n"
        self._log.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8") as stream:
            stream.write(line)


def _index(phase: str) -> int:
    if phase not in PHASES:
        raise StateError(f"There is no phase {phase!r}. The phases are {', '.join(PHASES)}.")
    return PHASES.index(phase)
