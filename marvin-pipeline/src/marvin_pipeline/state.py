"""How far the pipeline of a project is: the last finished phase, in `.marvin/pipeline_state`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from marvin_core import MarvinError, Timeouts

from .progress import forget
from .run.files import FileFault, Held, ProjectFiles

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
    "4b": "testing the program end to end",
    "4c": "frontend checks",
    "5": "adversarial quality review",
}
"""What is done in each phase."""

_NAME, _LOCK, _LOG = "pipeline_state", "pipeline_state.lock", "logs/pipeline.log"
_LONGEST = 200
"""Bytes that are read of the file; no phase is nearly as long."""


class StateError(MarvinError):
    """The state file is damaged, or a phase is named that does not exist."""


class PipelineState:
    """The state of one project. Nothing is remembered: each question reads the file, which others may have changed.

    No link on the way to it is followed: what it leads to would be shown, or written over.

    Args:
        working_dir: the project's folder.
        timeouts: how long to wait for another process that changes it, where not as long as usual.
    """

    def __init__(self, working_dir: Path, timeouts: Timeouts | None = None) -> None:
        self.path = working_dir / ".marvin" / _NAME
        self._files = ProjectFiles(working_dir)
        self._timeouts = timeouts or Timeouts()

    def last_finished(self) -> str | None:
        """The last finished phase; None where none is.

        Raises:
            StateError: where the file holds something else, or is none.
        """
        content = self._content()
        return None if content is None else self._phase(content)

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
        wanted = _index(phase)
        with self._changing():
            last = self.last_finished()
            if last is not None and wanted <= _index(last):
                return False
            self._files.write(_NAME, phase.encode())
        return True

    def restart_from(self, phase: str) -> None:
        """Make a phase the next one again: the only way back. Works with a damaged file, too, and is logged.

        What is done of that phase and of later ones is forgotten. No document is removed.

        Raises:
            StateError: where the file, the log or the notes of what is done cannot be written.
        """
        number = _index(phase)
        finished = PHASES[number - 1] if number else ""
        with self._changing():
            content = self._content()
            before = "nothing" if content is None else repr(content.decode("utf-8", "replace"))
            self._note(f"--from {phase}: {before} was finished, now {finished or 'nothing'} is")
            # First what would have agents passed over: killed in between, more is done again, and nothing too little.
            forget(self._files, PHASES[number:])
            if finished:
                self._files.write(_NAME, finished.encode())
            else:
                self._files.remove(_NAME)

    def _content(self) -> bytes | None:
        """The beginning of the file; None where there is none."""
        try:
            content = self._files.read(_NAME, _LONGEST)
            if content is not None or not self._files.is_there(_NAME):
                return content
            content = self._files.read(_NAME, _LONGEST)  # it may have been made since
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
