"""Having an agent write a document, and seeing to it that there is one."""

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
"""How often an agent is asked for one document."""


class DocumentMissing(MarvinError):
    """No agent wrote the document."""


async def write_document(run: Run, document: str, role: str, values: Mapping[str, str], *, phase: str) -> None:
    """Have an agent of a role write a document, with that file alone to write.

    What an agent says is never made a file. What it leaves in the place of a document is removed before the next one
    is asked, which is told what became of the earlier try. A document that was finished before the run was killed is
    not written again.

    A document that was there before, as where the pipeline begins anew, stays, and is none of this phase until an
    agent has changed it. What an agent left that did not come to its end is for the next one to finish.

    Args:
        document: its name below `.marvin`, as `spec.md`.
        values: what the prompt is filled with, beside `document` and `earlier`.

    Raises:
        DocumentMissing: after three tries there is none.
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
    """One document while it is written. Its methods block.

    Args:
        files: the pipeline's own files of the project.
        document: its name below `.marvin`.
        progress: what is noted of it.
    """

    def __init__(self, files: ProjectFiles, document: str, progress: Progress) -> None:
        self._files = files
        self._document = document
        self._progress = progress
        self._before = ""

    def begin(self) -> bool:
        """Note how it is before the first try; says whether it was finished by an earlier run."""
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
        """What the next agent is to know of the file that is there; empty for none."""
        content, path = self._content(), f".marvin/{self._document}"
        if not content:
            return ""
        return _OLD.format(path=path) if self._is_old() else _PART.format(path=path, size=len(content))

    def fault(self, result: AgentResult) -> str:
        """What is wrong after a try, in a few words; empty where the document is written, which is noted."""
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
