"""The fixer, which fixes the findings of reviewers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from marvin_core import AgentResult, Record, head_and_tail, in_thread, unified_diff

from ..documents.checks import why_no_document
from ..progress import Progress
from .convergence import Convergence
from .subjects import Subject
from .texts import known_list, list_of

if TYPE_CHECKING:
    from ..run.context import Run

_DIFF = 60_000
"""Characters of a diff that reviewers get."""

_FILES = 500
"""Files of which the diff is shown."""
_REMNANT = 3
"""A document cut to less than one part in this many was destroyed: models may write fragments instead of the whole."""
_OWN = (".marvin/", ".tickets/")
"""Files that the pipeline and its agents write about the project."""


async def changed_files(run: Run, since: str) -> Sequence[str]:
    """The files of the project that differ between a commit and the last checkpoint.

    Raises:
        MarvinError: git fails.
    """
    return [name for name in await run.git.changed_since(since) if not name.startswith(_OWN)]


def _why_destroyed(now: bytes | None, before: bytes) -> str:
    """Why a fixer must not leave a document so: it is invalid, or a fragment; empty if it may."""
    if why_no_document(before):
        return ""
    if why := why_no_document(now):
        return why
    is_remnant = now is not None and len(now) * _REMNANT < len(before)
    return f"it had {len(before):,} bytes and has {len(now or b''):,}" if is_remnant else ""


class Fixed(Record):
    """The result of a fix."""

    result: AgentResult
    changed: bool
    """Whether the fixer changed its subject."""
    since: str
    """The commit before it."""


class Fixer:
    """Fixes one subject. For a document it may write that file only.

    Args:
        run: gives access to agents, files and git.
        subject: what is fixed.
        progress: the stored state of the loop.
    """

    def __init__(self, run: Run, subject: Subject, progress: Progress) -> None:
        self._run = run
        self._subject = subject
        self._progress = progress
        self._document = subject.path.removeprefix(".marvin/")

    async def fix(self, loop: Convergence) -> Fixed:
        """Let a model fix the findings that the loop has selected.

        A document that is invalid afterwards is restored. If an earlier run was killed during this
        fix, its changes count as well.

        Raises:
            BudgetExceeded, MarvinError: as of `Run.ask`, and where git fails.
        """
        run, subject, number = self._run, self._subject, loop.round
        since = await self._begun(number)
        before = await in_thread(self._before) if subject.path else b""
        files = (subject.path,) if subject.path else ()
        result = await run.ask(subject.fixer, self._values(loop), phase=subject.phase, writable_files=files)
        changed = await in_thread(lambda: self._kept(before)) if subject.path else False
        await run.git.checkpoint(f"{subject.phase}: after the fix of round {number} of {subject.name}")
        if not subject.path:
            changed = bool(await changed_files(run, since))
        return Fixed(result=result, changed=changed, since=since)

    def _values(self, loop: Convergence) -> dict[str, str]:
        findings = loop.decision.findings
        given = {finding.id for finding in findings}
        fixed = (known for known in loop.known.values() if known.attempts and known.finding.id not in given)
        earlier = known_list(fixed, loop.round)
        return {
            **self._subject.values,
            "findings": list_of(findings, loop.tried_before),
            "known": earlier and f"Fixed in earlier rounds; do not change these:\n{earlier}",
        }

    async def _begun(self, number: int) -> str:
        """The commit before this fix, also if a run was killed during it."""
        noted = await in_thread(self._progress.read)
        if noted and noted[-1].get("fixing") == number:
            since = str(noted[-1].get("since", ""))
            if await self._run.git.knows(since):
                return since
        name = self._subject.name
        since = await self._run.git.checkpoint(f"{self._subject.phase}: before the fix of round {number} of {name}")
        if self._subject.path:
            await in_thread(lambda: self._progress.keep(self._run.files.read(self._document) or b""))
        await in_thread(lambda: self._progress.note(fixing=number, since=since))
        return since

    def _before(self) -> bytes:
        """The document before the fix. An invalid one that a killed fixer left is restored."""
        kept = self._progress.kept() or b""
        if _why_destroyed(self._run.files.read(self._document), kept):
            self._run.files.write(self._document, kept)
        return kept

    def diff(self) -> str:
        """The changes of the last fix to the document; empty for none."""
        kept = self._progress.kept()
        if kept is None:
            return ""
        now = self._run.files.read(self._document) or b""
        difference = unified_diff(self._subject.path, kept.decode("utf-8", "replace"), now.decode("utf-8", "replace"))
        return head_and_tail(difference, _DIFF, f"Read {self._subject.path} for the rest.")

    async def diff_of_code(self, since: str) -> str:
        """The changes to the code since a commit; empty for none, and for an unknown commit."""
        changed = await changed_files(self._run, since) if await self._run.git.knows(since) else []
        return await self._run.git.diff_since(since, changed[:_FILES]) if changed else ""

    def _kept(self, before: bytes) -> bool:
        """Whether the document was changed; an invalid one is restored."""
        now = self._run.files.read(self._document)
        if why := _why_destroyed(now, before):
            self._run.files.write(self._document, before)
            self._run.tell(
                f"{self._subject.phase}: the fixer removed {self._subject.path} or damaged it ({why}); it was restored."
            )
            return False
        return now != before
