"""The repair loop of the phases that work on a program: check, fix, check again, until a check finds nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from marvin_core import Record, counted, head_and_tail, in_thread, one_line

from ..progress import Progress
from ..review.texts import fenced
from ..run.ends import PhaseEnd
from .persistence import Attempt, EndReason, Step
from .rounds import Rounds

if TYPE_CHECKING:
    from ..run.context import Run

_SHOWN, _DIAGNOSIS = 200, 8_000
_ROUNDS_TOLD = 8
_BLOCKING = 20
"""Lines of open problems in a report."""


class Finding(Record):
    """The result of a check. `failure` is empty for success, else a fingerprint of the failure."""

    failure: str = ""
    text: str = ""
    """The failure for the agent that fixes it: the command, and its output."""
    lines: tuple[str, ...] = ()
    """The same for people, one line each."""
    passed: int = 0
    failed: int = 0
    summary: str = ""
    """What was checked, for the report."""


Check: TypeAlias = Callable[[], Awaitable[Finding]]
"""Checks the program without changing it."""


def time_for_command(run: Run) -> float:
    """The timeout in seconds for a command of the project: at most the rest of the run's time.

    Raises:
        BudgetExceeded: the budget or the time is used up.
    """
    run.limits.check()
    most, left = run.settings.command_timeout, run.limits.time_left
    return most if left is None else min(most, left)


class RepairPlan(Record):
    """What a phase repairs, and with which agent."""

    phase: str
    role: str
    """The role of the fixing agent; its prompt has the same name."""
    rounds: int
    commands: str = ""
    """The commands of the project, for the agent."""


_WHY: dict[EndReason, str] = {
    "rounds": "its limit of {rounds} was reached",
    "repeated": "the same failure was repeated, even after a change of strategy",
    "no progress": "there was no progress for many rounds, even after a change of strategy",
}


async def repair(run: Run, plan: RepairPlan, check: Check) -> PhaseEnd:
    """Check and fix until the check finds nothing, or until further rounds are pointless.

    A repeated failure changes the strategy: first a read-only agent diagnoses the cause, then the fixing agent
    is told to take another approach. Each round ends with a checkpoint. A killed run resumes
    the round that it was in.

    Raises:
        BudgetExceeded: the budget or the time is used up.
        GitFault: a checkpoint cannot be made.
    """
    rounds = await in_thread(lambda: Rounds(Progress(run.files, plan.phase, "mending"), plan.rounds))
    begun = await run.git.checkpoint(f"{plan.phase}: before the first check")
    if not await run.git.knows(rounds.begun):
        await in_thread(partial(rounds.begin, begun))
    while True:
        finding = await check()
        content = await run.git.content()
        attempt = Attempt(failure=finding.failure, tree=content, passed=finding.passed, failed=finding.failed)
        step = await in_thread(partial(rounds.next, attempt, _first(finding)))
        run.journal.note(
            "check",
            phase=plan.phase,
            round=rounds.done,
            failure=finding.failure,
            passed=finding.passed,
            failed=finding.failed,
            strategy="" if step.end else step.strategy,
            end=step.end,
            lines=list(finding.lines[:_BLOCKING]),
        )
        if step.end:
            return _end(plan, rounds.done, step, finding)
        run.tell(f"{plan.phase}: round {rounds.done} of {plan.rounds}, {step.strategy}: {_first(finding)}")
        told = _Told(round=rounds.done, history=tuple(rounds.history), begun=rounds.begun)
        await _round(run, plan, step, finding, told)
        await run.git.checkpoint(f"{plan.phase}: after round {rounds.done} ({step.strategy})")
        await in_thread(rounds.ended)


class _Told(Record):
    """The rounds so far, for an agent. `begun` is the commit at the start of the loop."""

    round: int
    history: tuple[str, ...]
    begun: str


async def _round(run: Run, plan: RepairPlan, step: Step, finding: Finding, told: _Told) -> None:
    values = {
        "commands": plan.commands,
        "failure": fenced(finding.text),
        "round": f"{told.round} of {plan.rounds}",
        "history": "\n".join(told.history[-_ROUNDS_TOLD:]),
        "begun": told.begun[:12],
    }
    diagnosis = ""
    if step.strategy == "diagnose":
        said = await run.ask("diagnosis", values, phase=plan.phase, read_only=True)
        diagnosis = head_and_tail(said.text.strip(), _DIAGNOSIS) if said.answered else ""
    strategy = _strategy(step, diagnosis)
    result = await run.ask(plan.role, {**values, "strategy": strategy}, phase=plan.phase)
    if not result.answered:
        run.tell(f"{plan.phase}: the agent did not finish ({result.ended}): {one_line(result.reason, _SHOWN)}")


def _strategy(step: Step, diagnosis: str) -> str:
    """The instructions for this round."""
    parts = []
    if step.is_unchanged:
        parts.append("Nothing in the project has changed since the last round, so its instructions were not followed.")
    elif step.is_repeated:
        parts.append("This failure occurred before, and the changes since then did not fix it.")
    if diagnosis:
        parts.append(
            f"Another agent searched for the cause without changing anything. Check its diagnosis:\n\n{diagnosis}"
        )
    elif step.strategy == "diagnose":
        parts.append(
            "Do not change code yet: find the cause, and demonstrate it with the smallest command that shows it."
        )
    if step.strategy == "rethink":
        parts.append(
            "The current approach does not work. Inspect its changes with git, revert those that do not help, and "
            "fix the cause in another place or in another way."
        )
    return "\n\n".join(parts) or "Fix the root cause, not its symptoms."


def _end(plan: RepairPlan, rounds: int, step: Step, finding: Finding) -> PhaseEnd:
    done = f"after {counted(rounds, 'round')} of fixes" if rounds else "at once"
    if step.end == "passed":
        return PhaseEnd(outcome="passed", reason=f"{finding.summary} All checks passed {done}.".strip())
    why = _WHY[step.end].format(rounds=counted(plan.rounds, "round"))
    return PhaseEnd(
        outcome="failed",
        reason=f"The phase ended {done}, because {why}. {_first(finding)}",
        blocking=finding.lines[:_BLOCKING] or (_first(finding),),
        cause="tests",
    )


def _first(finding: Finding) -> str:
    return one_line(finding.lines[0] if finding.lines else finding.text, _SHOWN)
