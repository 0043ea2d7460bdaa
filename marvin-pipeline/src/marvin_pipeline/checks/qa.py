"""Phase 5: the program is attacked, the problems found are fixed, and the tests still pass afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..run.ends import PhaseEnd
from .debug import Suite
from .repair import RepairPlan, repair
from .running import commands_of

if TYPE_CHECKING:
    from ..run.context import Run

_PHASE = "5"
_LENSES = "its security, its speed with large input, and edge cases of its input"


async def run_qa(run: Run) -> PhaseEnd:
    """Attack and fix, for `qa_rounds` rounds at most, then make sure that the tests still pass.

    Raises:
        BudgetExceeded: the budget or the time is used up.
        ReviewFailed: the attacker gave no answer.
    """
    from ..evidence.held import held_tests
    from ..review.convergence import Rules
    from ..review.rounds import ReviewLoop
    from ..review.subjects import CODE_KEYWORD, Reviewer, Subject

    held = await held_tests(run, _PHASE)
    commands = await commands_of(run.folder, run.control.session.processes, run.settings.test_command)
    end = PhaseEnd(outcome="skipped", reason="No rounds of attacks are configured.")
    if run.settings.qa_rounds:
        subject = Subject(
            name="qa",
            phase=_PHASE,
            reviewers=(Reviewer(name="main", role="qa_reviewer", focus=_LENSES),),
            rules=Rules(rounds=run.settings.qa_rounds, floor=run.settings.review_floor),
            fixer="qa_fixer",
            keyword=CODE_KEYWORD,
            values={"document": "the program", "tdd": "", "since": "", "commands": commands.told},
        )
        end = end.then(await ReviewLoop(run, subject).run())
    if not end.goes_on:
        return end
    plan = RepairPlan(phase=_PHASE, role="debug", rounds=run.settings.debug_rounds, commands=commands.told)
    end = end.then(await repair(run, plan, held.watched(Suite(run, _PHASE).check)))
    return end.then(held.left_over())
