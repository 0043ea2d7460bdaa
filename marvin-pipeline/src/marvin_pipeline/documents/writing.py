"""Has an agent write a document, and makes sure that there is one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

from marvin_core import AgentResult, MarvinError, in_thread

from ..progress import Progress
from ..run.files import ProjectFiles
from .checks import why_no_document

if TYPE_CHECKING:
    from ..run.context import Run

TRIES = 3
"""Attempts at one document."""


class DocumentMissing(MarvinError):
    """No agent wrote the document."""


async def write_document(run: Run, document: str, role: str, values: Mapping[str, str], *, phase: str) -> None:
    """Have an agent of a role write a document; it may write no other file.

    The agent's answer is never used as the document. An invalid file is removed before the next attempt, whose agent is
    told what was wrong. A document that was finished before the run was killed is
    not written again.

    A document from before, for example if the pipeline is restarted, stays, but does not count until an
    agent has changed it. A document that an agent left unfinished is for the next one to complete.

    Args:
        document: its name below `.marvin`, as `spec.md`.
        values: values for the prompt, in addition to `document` and `earlier`.

    Raises:
        DocumentMissing: there is none after three attempts.
        MarvinError: as of `Run.ask`.
    """
    path = f".marvin/{document}"
    writing = _Writing(run.files, document, Progress(run.files, phase, document.removesuffix(".md")))
    if await in_thread(writing.begin):
        run.tell(f"{phase}: {path} was already finished.")
        return
    earlier, why = await in_thread(writing.found), ""
    for number in range(1, TRIES + 1):
        asked = {**values, "document": path, "earlier": earlier}
        result = await run.ask(role, asked, phase=phase, writable_files=(path,))
        why = await in_thread(partial(writing.fault, result))
        if not why:
            return
        run.journal.note("document", phase=phase, document=path, attempt=number, fault=why)
        run.tell(f"{phase}: try {number} of {TRIES} at {path}: {why}.")
        earlier = f"An earlier attempt failed: {why}. {_ONLY_FILES.format(path=path)} {await in_thread(writing.found)}"
    raise DocumentMissing(
        f"{path} was not written in {TRIES} attempts; the last failure: {why}. Run the pipeline again, perhaps with "
        f"another model for {role}, or write {path} yourself and start with the phase after {phase}."
    )


_ONLY_FILES = (
    "Only what you write into {path} with create_file and append_file counts; your answer is not saved as a file."
)
_OLD = (
    "A file {path} from before this run exists. Read it, keep what is still valid, and write the whole document "
    "again with write_file: the existing file does not count."
)
_PART = (
    "An agent that did not finish left {size:,} bytes in {path}. Read the whole file. If it is complete, stop; "
    "otherwise continue it with append_file, or write it again with write_file."
)


class _Writing:
    """The state of one document while it is written. Methods block.

    Args:
        files: the pipeline's own files of the project.
        document: its name below `.marvin`.
        progress: where the state is stored.
    """

    def __init__(self, files: ProjectFiles, document: str, progress: Progress) -> None:
        self._files = files
        self._document = document
        self._progress = progress
        self._before = ""

    def begin(self) -> bool:
        """Store the state before the first attempt; returns whether an earlier run finished the document."""
        content, now = self._content(), self._files.stamp(self._document)
        noted = self._progress.read()
        if noted and noted[-1].get("sha256") == _digest(content) and not why_no_document(content):
            return True
        begun = next((note["before"] for note in reversed(noted) if isinstance(note.get("before"), str)), None)
        if begun is None:
            self._progress.note(before=now)
        self._before = now if begun is None else begun
        return False

    def found(self) -> str:
        """What the next agent should know of the existing file; empty without one."""
        content, path = self._content(), f".marvin/{self._document}"
        if not content:
            return ""
        return _OLD.format(path=path) if self._is_old() else _PART.format(path=path, size=len(content))

    def fault(self, result: AgentResult) -> str:
        """What is wrong after an attempt, in a few words; empty for a written document, which is recorded."""
        if why := why_no_document(self._content()):
            self._files.remove(self._document)
        elif self._is_old():
            why = "the file is still the one from before the run"
        elif result.answered:
            self._progress.note(sha256=_digest(self._content()))
            return ""
        return _told(why, result)

    def _is_old(self) -> bool:
        return self._files.stamp(self._document) == self._before

    def _content(self) -> bytes | None:
        return self._files.read(self._document)


def _digest(content: bytes | None) -> str:
    return sha256(content or b"").hexdigest()


def _told(why: str, result: AgentResult) -> str:
    unfinished = "" if result.answered else f"the agent did not finish ({result.ended}: {result.reason})"
    return ", and ".join(part for part in (why, unfinished) if part)
