"""The progress of a project's pipeline: the last finished phase, in `.marvin/pipeline_state`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from marvin_core import MarvinError, Timeouts

from .progress import forget
from .run.files import FileFault, Held, ProjectFiles

PHASES = ("1a", "1a_review", "1b", "1b_review", "2a", "2b", "3", "4a", "4b", "4c", "5")
"""The phases in order."""

MEANINGS = {
    "1a": "specification and user experience",
    "1a_review": "their review",
    "1b": "design",
    "1b_review": "its review",
    "2a": "functional tests",
    "2b": "integration tests",
    "3": "implementation",
    "4a": "debugging until the tests pass",
    "4b": "testing the program end to end",
    "4c": "frontend checks",
    "5": "adversarial quality review",
}
"""What each phase does."""

_NAME, _LOCK, _LOG = "pipeline_state", "pipeline_state.lock", "logs/pipeline.log"
_LONGEST = 200
"""Bytes of the file that are read; no phase is nearly as long."""


class StateError(MarvinError):
    """The state file is damaged, or a phase does not exist."""


class PipelineState:
    """The state of one project. Nothing is cached: each call reads the file, which others may have changed.

    Symbolic links in its path are not followed: their target would be shown, or overwritten.

    Args:
        working_dir: the project's folder.
        timeouts: how long to wait for another process's lock, if not the default.
    """

    def __init__(self, working_dir: Path, timeouts: Timeouts | None = None) -> None:
        self.path = working_dir / ".marvin" / _NAME
        self._files = ProjectFiles(working_dir)
        self._timeouts = timeouts or Timeouts()

    def last_finished(self) -> str | None:
        """The last finished phase; None without one.

        Raises:
            StateError: the file has other content, or is not a regular file.
        """
        content = self._content()
        return None if content is None else self._phase(content)

    def is_done(self, phase: str) -> bool:
        """Whether a phase is finished."""
        last = self.last_finished()
        return _index(phase) <= (-1 if last is None else _index(last))

    def next_phase(self) -> str | None:
        """The first phase that is not finished; None if all are."""
        last = self.last_finished()
        following = PHASES[0 if last is None else _index(last) + 1 :]
        return following[0] if following else None

    def save(self, phase: str) -> bool:
        """Record that a phase is finished, unless a later one is; returns whether it was recorded.

        Raises:
            StateError: the file is damaged or cannot be written.
        """
        wanted = _index(phase)
        with self._changing():
            last = self.last_finished()
            if last is not None and wanted <= _index(last):
                return False
            self._files.write(_NAME, phase.encode())
        return True

    def restart_from(self, phase: str) -> None:
        """Make a phase the next one again: the only way back. Also works with a damaged file, and is logged.

        The progress of that phase and of later ones is removed. Documents stay.

        Raises:
            StateError: the file, the log or the progress cannot be written.
        """
        number = _index(phase)
        finished = PHASES[number - 1] if number else ""
        with self._changing():
            content = self._content()
            before = "nothing" if content is None else repr(content.decode("utf-8", "replace"))
            self._note(f"--from {phase}: {before} was finished, now {finished or 'nothing'} is")
            # First the progress, which would make agents be skipped: if killed in between, work is repeated but none is
            # missed.
            forget(self._files, PHASES[number:])
            if finished:
                self._files.write(_NAME, finished.encode())
            else:
                self._files.remove(_NAME)

    def _content(self) -> bytes | None:
        """The start of the file; None if there is none."""
        try:
            content = self._files.read(_NAME, _LONGEST)
            if content is not None or not self._files.is_there(_NAME):
                return content
            content = self._files.read(_NAME, _LONGEST)  # it may have been created since
        except FileFault as error:
            raise StateError(str(error)) from error
        if content is None:
            raise StateError(f"{self.path} is not a file. Remove it, and run the pipeline again.")
        return content

    @contextmanager
    def _changing(self) -> Iterator[None]:
        try:
            with self._files.locked(_LOCK, self._timeouts):
                yield
        except (FileFault, Held) as error:
            raise StateError(str(error)) from error

    def _phase(self, content: bytes) -> str:
        text = content.decode("utf-8", "replace").strip()
        if text not in PHASES:
            raise StateError(
                f"{self.path} is damaged: it holds {text[:40]!r} and not a phase. Start again with --from PHASE, one "
                f"of {', '.join(PHASES)}; --from {PHASES[0]} restarts the pipeline."
            )
        return text

    def _note(self, text: str) -> None:
        self._files.append(_LOG, f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {text}\n".encode())


def _index(phase: str) -> int:
    if phase not in PHASES:
        raise StateError(f"Unknown phase {phase!r}. Use one of {', '.join(PHASES)}.")
    return PHASES.index(phase)
