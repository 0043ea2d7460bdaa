"""Asks the reviewers of a round in parallel. None of them can change anything."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from marvin_core import AgentResult, in_thread, one_line

from ..run.ends import raise_first
from .convergence import Convergence
from .findings import Review
from .parsing import read_review
from .recorded import Said
from .subjects import FAILED, Reviewer, Subject
from .texts import fenced, known_list

if TYPE_CHECKING:
    from ..run.context import Run

_REASON = 300
_SAID = 2_000
"""Characters of an answer without a verdict that its author is shown again."""


async def ask_all(run: Run, subject: Subject, loop: Convergence, diff: str, said: Said) -> Mapping[str, Review]:
    """Ask the active reviewers that have not answered in this round; returns all reviews of the round.

    If one cannot be asked, the others still finish, and their reviews are stored.

    Args:
        diff: the changes of the last fix; empty for none.
        said: the stored reviews of this round, to which new ones are added.

    Raises:
        BudgetExceeded, MarvinError: as of `Run.ask`.
    """
    asked = [reviewer for reviewer in subject.reviewers if reviewer.name in loop.active]
    values = _values(run, subject, loop, diff)

    async def ask(reviewer: Reviewer) -> None:
        review = await _ask(run, subject, reviewer, values)
        await in_thread(lambda: said.note(reviewer.name, review))

    missing = [ask(reviewer) for reviewer in asked if reviewer.name not in said.reviews]
    raise_first(await asyncio.gather(*missing, return_exceptions=True))
    return {reviewer.name: said.reviews[reviewer.name] for reviewer in asked}


async def _ask(run: Run, subject: Subject, reviewer: Reviewer, values: Mapping[str, str]) -> Review:
    values = {**values, "focus": reviewer.focus}
    result = await run.ask(reviewer.role, {**values, "earlier": ""}, phase=subject.phase, read_only=True)
    review = await in_thread(lambda: _read(result))
    if review.verdict == "empty" and result.ended == "timeout":
        run.limits.check()  # a reviewer that the run's time limit cut off does not count as silent
    if review.verdict == "unclear":
        earlier = (
            "Your last answer contained neither findings in the required form nor a verdict. Report your findings "
            f"in that form. Your answer was:\n{fenced(review.text[:_SAID])}"
        )
        result = await run.ask(reviewer.role, {**values, "earlier": earlier}, phase=subject.phase, read_only=True)
        again = await in_thread(lambda: _read(result))
        review = review if again.verdict == "empty" else again
    return review


def _read(result: AgentResult) -> Review:
    """An agent's review. One that did not finish never passes."""
    review = read_review(result.text)
    if result.answered or review.findings:
        return review if result.answered else review.replace(verdict="failed")
    return Review(verdict="empty", text=f"[{result.ended}: {one_line(result.reason, _REASON)}]")


def _values(run: Run, subject: Subject, loop: Convergence, diff: str) -> dict[str, str]:
    common = {**subject.values, "history": f".marvin/review-history-{subject.name}.md", "failed": FAILED}
    known = known_list(loop.known.values(), loop.round)
    if loop.is_adversarial:
        task = run.prompts.fill("review_first_round", common)
    elif loop.round == 1:
        task = run.prompts.fill("review_only_round", {**common, "keyword": subject.keyword})
    else:
        later = {
            **common,
            "keyword": subject.keyword,
            "known": known or "Nothing was found so far.",
            "diff": fenced(diff, "diff") if diff else "Nothing was changed since.",
        }
        task = run.prompts.fill("review_later_round", later)
    return {**common, "task": task, "form": run.prompts.fill("review_form", common)}
