"""Loops of reviews and fixes: of a document, and of the code of a phase."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from marvin_core import MarvinError, in_thread

from ..progress import Progress
from ..run.ends import LoopEnd, Outcome
from .asking import ask_all
from .convergence import Convergence, Decision, EmptyReviews, Rules
from .findings import Finding
from .fixing import Fixer, changed_files
from .history import History
from .recorded import Said, as_noted, replay
from .subjects import (
    CODE_KEYWORD,
    CODE_REVIEWERS,
    DOCUMENT_KEYWORD,
    DOCUMENT_REVIEWERS,
    TEST_PHASES,
    Subject,
)
from .texts import REASONS, line_of

if TYPE_CHECKING:
    from ..run.context import Run


class ReviewFailed(MarvinError):
    """No reviewer answered, so the subject was not reviewed."""


async def review_document(run: Run, document: str, phase: str) -> LoopEnd:
    """Have four agents review a document and another one fix it, until the loop ends.

    Args:
        document: its name below `.marvin`, as `spec.md`.

    Raises:
        ReviewFailed: no reviewer of a round answered.
        MarvinError: as of `Run.ask`, and where git fails.
    """
    path = f".marvin/{document}"
    subject = Subject(
        name=document.removesuffix(".md"),
        phase=phase,
        reviewers=DOCUMENT_REVIEWERS,
        rules=Rules(rounds=run.settings.review_rounds, floor=run.settings.review_floor),
        fixer="fixer",
        path=path,
        keyword=DOCUMENT_KEYWORD,
        values={"document": path, "tdd": "", "since": ""},
    )
    return await ReviewLoop(run, subject).run()


async def review_code(run: Run, phase: str, since: str = "") -> LoopEnd:
    """Have an agent review the code of a phase and another one fix it, until the loop ends.

    Args:
        since: the commit at the start of the phase; without it the reviewer finds out what belongs to the phase.

    Raises:
        ReviewFailed, MarvinError: as of `review_document`.
    """
    changed = await changed_files(run, since) if since else []
    tdd = run.prompts.fill("review_tdd", {}) if phase in TEST_PHASES else ""
    subject = Subject(
        name=f"code-{phase}",
        phase=phase,
        reviewers=CODE_REVIEWERS,
        rules=Rules(rounds=run.settings.review_rounds, adversarial=0, floor=run.settings.review_floor),
        fixer="code_fixer",
        keyword=CODE_KEYWORD,
        values={"document": "the code of this phase", "tdd": tdd, "since": _changed(changed)},
    )
    return await ReviewLoop(run, subject).run()


def _changed(names: Sequence[str]) -> str:
    if not names:
        return "git_log and git_diff show what this phase changed."
    more = len(names) - _NAMES
    shown = "\n".join([f"- `{name}`" for name in names[:_NAMES]] + ([f"- and {more} more"] if more > 0 else []))
    return f"What this phase changed:\n{shown}"


_CODE = "code"
_NAMES = 200
"""Files that reviewers are shown."""
_NOTED = 100
"""Open findings of each kind in the journal."""


class ReviewLoop:
    """One loop.

    Args:
        run: gives access to agents, files and git.
        subject: what is reviewed.
    """

    def __init__(self, run: Run, subject: Subject) -> None:
        self._run = run
        self._subject = subject
        self._history = History(run.files, subject.name)
        self._progress = Progress(run.files, subject.phase, subject.name if subject.path else _CODE)
        self._fixer = Fixer(run, subject, self._progress)
        self._since = ""
        self._looked_at = ""

    async def run(self) -> LoopEnd:
        """Start the loop, or resume it; returns how it ended."""
        loop = await in_thread(self._resumed)
        decision = loop.decision
        while decision.step != "end":
            if decision.step == "review":
                decision = await self._round(loop)
            else:
                decision = await self._fix(loop)
        return self._ended(loop, decision)

    def _resumed(self) -> Convergence:
        noted = self._progress.read()
        loop = self._new()
        understood = replay(loop, noted)
        for note in noted[:understood]:
            self._since = str(note.get("since", self._since))
        if understood < len(noted) or self._has_failed(loop.decision):
            # The records are damaged, or the loop stopped the run, and running it again means another try.
            self._progress.forget()
            self._since = ""
            return self._new()
        return loop

    def _new(self) -> Convergence:
        return Convergence(self._subject.rules, [reviewer.name for reviewer in self._subject.reviewers])

    def _has_failed(self, decision: Decision) -> bool:
        return any(finding.is_at_least(self._subject.rules.floor) for finding in decision.findings) and (
            decision.step == "end"
        )

    async def _round(self, loop: Convergence) -> Decision:
        run, subject, number = self._run, self._subject, loop.round
        before = f"{subject.phase}: before round {number} of the review of {subject.name}"
        self._looked_at = await run.git.checkpoint(before)
        run.tell(f"{subject.phase}: round {number} of the review of {subject.name}, {len(loop.active)} reviewers.")
        if subject.path:
            diff = await in_thread(self._fixer.diff)
        else:
            diff = await self._fixer.diff_of_code(self._since)
        said = await in_thread(lambda: Said(self._progress, number))
        reviews = await ask_all(run, subject, loop, diff, said)
        await in_thread(lambda: self._history.round(subject.phase, number, reviews))
        try:
            decision = await in_thread(lambda: loop.judge(reviews))
        except EmptyReviews:
            why = " ".join(f"{name}: {review.text}" for name, review in reviews.items() if review.text)
            raise ReviewFailed(
                f"No reviewer of {subject.name} answered in round {number}, so there is no result. {why} Run the "
                "pipeline again to repeat the round."
            ) from None
        await in_thread(lambda: self._note(loop, decision, reviews=as_noted(reviews)))
        return decision

    async def _fix(self, loop: Convergence) -> Decision:
        number = loop.round
        fixed = await self._fixer.fix(loop)
        self._since, ended = fixed.since, fixed.result.ended
        if not fixed.result.answered:
            self._run.tell(f"{self._subject.phase}: the fixer did not finish ({ended}): {fixed.result.reason}")
        following = loop.fixed(changed=fixed.changed)
        await in_thread(lambda: self._history.fix(number, ended, changed=fixed.changed))
        await in_thread(lambda: self._note(loop, following, changed=fixed.changed))
        return following

    def _note(self, loop: Convergence, decision: Decision, **fields: object) -> None:
        from ..evidence.findings import FindingsLog

        self._progress.note(**fields)
        subject = self._subject
        FindingsLog(self._run.files).note(loop, subject.phase, subject.name, self._looked_at)
        kept = {"step": decision.step, "ending": decision.ending, "findings": len(decision.findings)}
        blocking, carried = self._told(loop.open_findings())
        self._run.journal.note(
            "review",
            phase=subject.phase,
            subject=subject.name,
            round=loop.round,
            **kept,
            blocking=blocking[:_NOTED],
            carried=carried[:_NOTED],
        )
        if "reviews" in fields or decision.step == "end":
            self._history.decision(loop, decision)

    def _ended(self, loop: Convergence, decision: Decision) -> LoopEnd:
        blocking, carried = self._told(decision.findings)
        ending = decision.ending or "round_limit"
        outcome: Outcome = "failed" if blocking else "passed" if ending == "passed" else "ended"
        reason = f"The review of {self._subject.name} ended after round {loop.round} ({ending}): {REASONS[ending]}"
        return LoopEnd(
            outcome=outcome,
            reason=reason,
            rounds=loop.round,
            carried=carried,
            blocking=blocking,
            cause="findings" if blocking else "",
        )

    def _told(self, findings: Sequence[Finding]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Findings above the floor and below it, one a line each."""
        floor = self._subject.rules.floor
        return (
            tuple(line_of(one) for one in findings if one.is_at_least(floor)),
            tuple(line_of(one) for one in findings if not one.is_at_least(floor)),
        )
