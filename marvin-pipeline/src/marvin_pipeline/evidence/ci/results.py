"""The results of all runs as one value, from which all report formats are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, get_args

from marvin_core import Record, in_thread

from ...review.findings import SEVERITIES, Severity
from ...run.checkpoints import Checkpoints
from ...run.files import ProjectFiles
from ...state import PHASES
from ..criteria import Criterion, Mention, criteria_of
from ..findings import FindingsLog, NotedFinding
from ..records import EvidenceLog, Gate, GateName, GateOutcome
from ..tracing import mentions_of
from .history import History, history_of
from .matrix import CriterionResult, matrix_of

GateStanding: TypeAlias = Literal["passed", "failed", "settled", "accepted", "not_measured", "of_elsewhere"]
"""The outcomes of gates. settled: it failed, and a later phase passed it. of_elsewhere: its commit is not in this
history, or is older than the phase, so that it does not apply here."""
_SETTLED_LATER = ("green", "unweakened", "mutations")
"""Gates that check the whole project in each phase; the others check what their phase wrote."""


class Ending(Record):
    """How the last run ended, or that it is running."""

    ended: str
    """running, done, paused, failed, budget, interrupted."""
    reason: str = ""
    exit_code: int | None = None
    """None while it runs."""
    next_phase: str = ""
    is_strict: bool = False


class GateResult(Record):
    """The current state of a gate."""

    gate: Gate
    standing: GateStanding

    @property
    def holds(self) -> bool:
        """Whether it does not count against the run."""
        return self.standing not in ("failed", "of_elsewhere")


class Results(Record):
    """All results of the current prompt's runs."""

    ending: Ending
    history: History
    gates: tuple[GateResult, ...]
    """The last result of each gate and phase, in the order of the phases."""
    criteria: tuple[CriterionResult, ...]
    findings: tuple[NotedFinding, ...]
    """Of all review loops, the worst first, open ones before fixed ones."""
    floor: Severity
    """Findings of at least this severity stop a run."""
    commit: str
    """The newest commit; empty if there is none."""
    branch: str

    @property
    def open_findings(self) -> Sequence[NotedFinding]:
        """Findings that are not resolved."""
        return [finding for finding in self.findings if finding.standing == "open"]

    @property
    def seconds(self) -> float:
        """Of all runs."""
        return sum(phase.seconds for phase in self.history.phases)

    @property
    def cost(self) -> float | None:
        """USD of all runs; None if the cost of an agent is unknown."""
        costs = [phase.cost for phase in self.history.phases]
        return None if None in costs else sum(cost for cost in costs if cost is not None)


async def gather(files: ProjectFiles, git: Checkpoints, floor: Severity, ending: Ending) -> Results:
    """Read all results.

    Raises:
        FileFault: a log cannot be read.
        GitFault: git fails.
    """
    commits = await git.history()
    history, gates, findings, specification = await in_thread(lambda: _logs(files))
    standing = _Ages(commits, history)
    names = await git.files()
    mentions = await in_thread(lambda: mentions_of(files, names))
    came = {file: await git.came_with(file, _lines(mentions, file)) for file in sorted({one.file for one in mentions})}
    results = tuple(_standing(gates, standing))
    current = tuple(sorted((one for one in findings if standing.counts(one.phase, one.commit)), key=_order))
    return Results(
        ending=ending,
        history=history,
        gates=results,
        criteria=matrix_of(specification, mentions, came, current, _greens(results), history.phases),
        findings=current,
        floor=floor,
        commit=commits[0] if commits else "",
        branch=await git.branch(),
    )


def _order(finding: NotedFinding) -> tuple[bool, int, int]:
    phase = PHASES.index(finding.phase) if finding.phase in PHASES else len(PHASES)
    return finding.standing != "open", SEVERITIES.index(finding.severity), phase


def _logs(files: ProjectFiles) -> tuple[History, Sequence[Gate], Sequence[NotedFinding], Sequence[Criterion]]:
    gates = [gate for gate in EvidenceLog(files).read() if _is_sound(gate)]
    return history_of(files), gates, FindingsLog(files).read(), criteria_of(files.text("spec.md"))


def _is_sound(gate: Gate) -> bool:
    """Whether a line of the log has a gate's format; others are ignored."""
    texts = (gate.phase, gate.reason, gate.commit, gate.accepted_by, gate.excused)
    is_known = gate.name in get_args(GateName) and gate.outcome in get_args(GateOutcome) and gate.phase in PHASES
    lists = (*gate.tests, *gate.places, *gate.faults)
    return is_known and all(isinstance(text, str) for text in (*texts, *lists))


def _lines(mentions: Sequence[Mention], file: str) -> Sequence[int]:
    return sorted({one.line for one in mentions if one.file == file})[:_BLAMED]


_BLAMED = 500
"""Lines of one file that are blamed at most."""


class _Ages:
    """Decides which commits evidence may be of."""

    def __init__(self, commits: Sequence[str], history: History) -> None:
        self._age: Mapping[str, int] = {commit: age for age, commit in enumerate(commits)}
        self._since: Mapping[str, str] = {phase.phase: phase.since for phase in history.phases}

    def counts(self, phase: str, commit: str) -> bool:
        """Whether a commit is in this history, and not older than the phase."""
        age, since = self._age.get(commit), self._age.get(self._since.get(phase, ""))
        return age is not None and (since is None or age <= since)


def _standing(gates: Sequence[Gate], ages: _Ages) -> Sequence[GateResult]:
    last = {(gate.phase, gate.name): gate for gate in gates}
    order = sorted(last.values(), key=lambda gate: PHASES.index(gate.phase))
    results = [GateResult(gate=gate, standing=_own(gate, ages)) for gate in order]
    passed_later: set[str] = set()
    for number in range(len(results) - 1, -1, -1):
        one = results[number]
        if one.standing == "failed" and one.gate.name in passed_later:
            results[number] = one.replace(standing="settled")
        elif one.standing in ("passed", "accepted") and one.gate.name in _SETTLED_LATER:
            passed_later.add(one.gate.name)
    return results


def _own(gate: Gate, ages: _Ages) -> GateStanding:
    return gate.outcome if ages.counts(gate.phase, gate.commit) else "of_elsewhere"


def _greens(results: Sequence[GateResult]) -> Sequence[Gate]:
    """The applicable gates on passing tests."""
    return [one.gate for one in results if one.gate.name == "green" and one.standing != "of_elsewhere"]
