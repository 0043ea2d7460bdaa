"""Having an agent write a document, and seeing to it that there is one."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING

from marvin_core import AgentResult, MarvinError, in_thread

from ..progress import Progress
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

    Args:
        document: its name below `.marvin`, as `spec.md`.
        values: what the prompt is filled with, beside `document` and `earlier`.

    Raises:
        DocumentMissing: after three tries there is none.
        MarvinError: as of `Run.ask`.
    """
    path = f".marvin/{document}"
    progress = Progress(run.files, phase, document.removesuffix(".md"))
    if await in_thread(lambda: _is_finished(run, document, progress)):
        run.tell(f"{phase}: {path} was finished before.")
        return
    earlier, why = "", ""
    for number in range(1, TRIES + 1):
        asked = {**values, "document": path, "earlier": earlier}
        result = await run.ask(role, asked, phase=phase, writable_files=(path,))
        why = await in_thread(lambda: _fault(run, document))
        if not why:
            await in_thread(lambda: progress.note(sha256=_digest(run, document)))
            return
        why = _told(why, result)
        run.journal.note("document", phase=phase, document=path, attempt=number, fault=why)
        run.tell(f"{phase}: try {number} of {TRIES} at {path}: {why}.")
        earlier = (
            f"An earlier try failed: {why}. Only what you write into {path} with create_file and append_file counts; "
            "nobody makes a file of your answer."
        )
    raise DocumentMissing(
        f"{path} was not written in {TRIES} tries; the last time {why}. Run the pipeline again for further tries, "
        f"with another model for {role}, or write {path} yourself and begin with the phase after {phase}."
    )


def _fault(run: Run, document: str) -> str:
    """What is wrong with the document; then it is removed."""
    why = why_no_document(run.files.read(document))
    if why:
        run.files.remove(document)
    return why


def _is_finished(run: Run, document: str, progress: Progress) -> bool:
    noted = progress.read()
    if not noted or why_no_document(run.files.read(document)):
        return False
    return noted[-1].get("sha256") == _digest(run, document)


def _digest(run: Run, document: str) -> str:
    return sha256(run.files.read(document) or b"").hexdigest()


def _told(why: str, result: AgentResult) -> str:
    return why if result.answered else f"{why}, and the agent did not finish ({result.ended}: {result.reason})"
