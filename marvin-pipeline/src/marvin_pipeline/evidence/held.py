"""Compares the tests with a baseline: a run must not weaken them, and they must not rely on mocks.

Phase 2b compares the tests with those of 2a, and adds to them. They are the baseline then: each later phase that
works on them compares them with the newest commit at which another phase approved them. Weakened tests go to a
reviewer, and unless the reviewer accepts the change, back to the working agent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

from marvin_core import MarvinError, Record, in_thread, one_line

from ..checks.repair import Check, Finding
from ..progress import Progress
from ..review.findings import Finding as ReviewFinding
from ..review.texts import fenced, line_of
from ..run.ends import PhaseEnd
from .accepting import Judgement, judge
from .comparison import Looked, Place, look
from .records import EvidenceLog, Gate, GateName, GateOutcome

if TYPE_CHECKING:
    from ..run.context import Run

TRIES = 3
"""How often an agent has to restore weakened tests."""
_MOCK_TRIES = 2
"""How often an agent has to replace a mock; then it becomes a finding."""
_NAMED, _LINE = 20, 300
_TOLD = 100
"""Places in one message to an agent."""


class TestsWeakened(MarvinError):
    """Tests were weakened, no review accepted that, and the agents did not restore them."""

    exit_code = 5


class Found(Record):
    """The result of a comparison."""

    commit: str
    weakened: tuple[Place, ...] = ()
    """Weakened places that were not accepted."""
    accepted: tuple[tuple[Place, Judgement], ...] = ()
    replaced: tuple[Place, ...] = ()
    """Mocks that an agent has to replace."""
    left: tuple[Place, ...] = ()
    """Mocks after the last attempt."""
    unread: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    """The reviewer's reasons for rejecting places, one a line."""
    is_known: bool = False
    """Whether this commit was approved before."""

    @property
    def open_places(self) -> tuple[Place, ...]:
        """The places that an agent has to fix."""
        return (*self.weakened, *self.replaced)


class HeldTests:
    """The tests of one phase.

    Args:
        run: gives access to agents, files and git.
        phase: the phase, which has started.
        since: the commit to compare with, if not the one at which the tests were approved.
        compares: whether existing tests must not be weakened.
    """

    def __init__(self, run: Run, phase: str, since: str = "", *, compares: bool = True) -> None:
        self._run = run
        self._phase = phase
        self._log = EvidenceLog(run.files)
        self._progress = Progress(run.files, phase, "held")
        self._since = since
        self._compares = compares
        self._left: tuple[Place, ...] = ()
        """The mocks in the last check."""

    async def begin(self) -> None:
        """Find the commit to compare with. Without a recorded one it is the newest one, which the log mentions.

        Raises:
            TestsWeakened: the recorded commit is gone.
        """
        if await self._base("unweakened"):
            return
        reason = "No tests of 2a and 2b are on record. The current tests are the reference for later phases."
        commit = await self._run.git.checkpoint(f"{self._phase}: the tests that the run is held to")
        await in_thread(partial(self._note, self._gate("unweakened", "not_measured", reason, commit)))

    async def hold(self, role: str) -> PhaseEnd:
        """Compare, and have an agent of a role fix the tests until nothing is open.

        Raises:
            TestsWeakened: something is still open after three attempts.
            BudgetExceeded, MarvinError: as of `Run.ask`.
        """
        found = await self.look()
        for number in range(1, TRIES + 1):
            if not found.open_places:
                break
            self._tell(found, f"{role} must try again, {number} of {TRIES}")
            await self._send_back(role, found, number)
            found = await self.look()
        return await self.end(found)

    def watched(self, check: Check) -> Check:
        """A check that also fails for weakened tests; the agents of its loop restore them."""

        async def both() -> Finding:
            seen = await check()
            return seen if seen.failure else await self._finding(seen)

        return both

    async def _finding(self, seen: Finding) -> Finding:
        found = await self.look()
        await self._ended(found)
        if not found.open_places:
            return seen
        self._tell(found, "they must try again")
        await self._sent(found)
        lines = tuple(place.told for place in found.open_places)
        keys = " ".join(place.key for place in found.open_places)
        return Finding(
            failure=sha256(keys.encode()).hexdigest()[:16],
            text=f"{_HEAD}\n\n{_list(found)}",
            lines=lines[:_NAMED],
            passed=seen.passed,
            failed=len(lines),
        )

    async def look(self) -> Found:
        """What has to be fixed now. Asks a reviewer about places that were not reviewed before.

        Raises:
            TestsWeakened: the commit to compare with is gone.
            BudgetExceeded, MarvinError: as of `Run.ask`, and where git fails.
        """
        commit = await self._run.git.checkpoint(f"{self._phase}: before the tests are compared")
        if await in_thread(lambda: self._is_known(commit)):
            return Found(commit=commit, is_known=True)
        base = self._since or await self._base("unweakened")
        looked = await look(self._run, base, commit)
        if not self._since and (other := await self._base("no_mocks")) not in ("", base):
            looked = looked.replace(replaced=(await look(self._run, other, commit)).replaced)
        sent = await in_thread(self._sent_so_far)
        left = [place for place in looked.replaced if sent.get(place.key, 0) >= _MOCK_TRIES]
        found = Found(
            commit=commit,
            replaced=tuple(place for place in looked.replaced if place not in left),
            left=tuple(left),
            unread=looked.unread,
        )
        return await self._judged(found, looked, base) if self._compares else found

    async def _judged(self, found: Found, looked: Looked, base: str) -> Found:
        said = await in_thread(self._judgements)
        new = [place for place in looked.weakened if place.key not in said]
        if new:
            given = await judge(self._run, self._phase, new, base)
            await in_thread(lambda: self._keep(given))
            said = {**said, **given}
        open_ones = [place for place in looked.weakened if place.key not in said or not said[place.key].accepted]
        accepted = [(place, said[place.key]) for place in looked.weakened if place not in open_ones]
        reasons = [f"{place.told}: {said[place.key].reason}" for place in open_ones if place.key in said]
        return found.replace(weakened=tuple(open_ones), accepted=tuple(accepted), reasons=tuple(reasons))

    async def end(self, found: Found) -> PhaseEnd:
        """Record the result, and return what it means for the phase.

        Raises:
            TestsWeakened: tests were weakened.
        """
        await self._ended(found)
        if found.weakened:
            await in_thread(self._progress.forget)  # running it again means another try
            places = "; ".join(place.told for place in found.weakened[:_NAMED])
            raise TestsWeakened(
                f"{len(found.weakened)} places in the tests were weakened, and no review accepted that: {places}. "
                "Restore them and run the pipeline again. If the changes are intended, start with --from 2b."
            )
        return self.left_over()

    def left_over(self) -> PhaseEnd:
        """The findings about the remaining mocks."""
        places = self._left
        findings = [
            ReviewFinding(severity="high", file=f"{each.file}:{each.line}", claim=one_line(each.told, _LINE))
            for each in places
        ]
        floor = self._run.settings.review_floor
        blocking = tuple(line_of(one) for one in findings if one.is_at_least(floor))
        carried = tuple(line_of(one) for one in findings if not one.is_at_least(floor))
        if not findings:
            return PhaseEnd(outcome="passed", reason="")
        reason = f"{len(findings)} places in the tests still replace real behaviour with mocks."
        return PhaseEnd(
            outcome="failed" if blocking else "ended",
            reason=reason,
            blocking=blocking,
            carried=carried,
            cause="findings" if blocking else "",
        )

    async def _ended(self, found: Found) -> None:
        self._left = (*found.replaced, *found.left)
        if not found.is_known:
            await in_thread(lambda: self._record(found))

    def _record(self, found: Found) -> None:
        unread = f" Not looked at: {'; '.join(found.unread[:_NAMED])}." if found.unread else ""
        faults = tuple(found.unread)
        mocks = (*found.replaced, *found.left)
        outcome: GateOutcome = "failed" if mocks else "not_measured" if found.unread else "passed"
        reason = (
            f"{len(mocks)} places stand in for real behaviour." if mocks else "Nothing new stands in for behaviour."
        )
        self._note(self._gate("no_mocks", outcome, reason + unread, found.commit, mocks).replace(faults=faults))
        if not self._compares:
            return
        if found.weakened:
            reason = f"{len(found.weakened)} places ask for less than they did, and no review let that stand."
            self._note(self._gate("unweakened", "failed", reason + unread, found.commit, found.weakened))
            return
        places = tuple(place for place, _ in found.accepted)
        by = " ".join(dict.fromkeys(judgement.by for _, judgement in found.accepted))
        said = " ".join(f"{place.told}: {judgement.reason}" for place, judgement in found.accepted[:_NAMED])
        outcome = "accepted" if places else "not_measured" if found.unread else "passed"
        reason = f"A review let stand what asks for less. {said}" if places else "No test asks for less than it did."
        gate = self._gate("unweakened", outcome, reason + unread, found.commit, places)
        self._note(gate.replace(accepted_by=by, faults=faults))

    def _gate(
        self, name: GateName, outcome: GateOutcome, reason: str, commit: str, places: Sequence[Place] = ()
    ) -> Gate:
        told = tuple(place.told for place in places)
        tests = tuple(dict.fromkeys(f"{place.file}::{place.test}" for place in places if place.test))
        return Gate(
            name=name, phase=self._phase, outcome=outcome, reason=reason, commit=commit, tests=tests, places=told
        )

    def _note(self, gate: Gate) -> None:
        self._log.add(gate)
        places = list(gate.places[:_NAMED])
        self._run.journal.note("gate", name=gate.name, phase=self._phase, outcome=gate.outcome, places=places)

    def _is_known(self, commit: str) -> bool:
        names: tuple[GateName, ...] = ("no_mocks", "unweakened") if self._compares else ("no_mocks",)
        return all(self._log.passed(name, self._phase, commit) for name in names)

    async def _base(self, name: GateName) -> str:
        """The newest commit at which another phase passed a gate; empty without a recorded one.

        Without another phase it is the commit at the start of this phase.
        """
        gates = await in_thread(self._log.read)
        held = [gate for gate in gates if gate.name == name and gate.outcome != "failed"]
        others = [gate.commit for gate in held if gate.phase != self._phase]
        base = (others[-1:] or [gate.commit for gate in held[:1]] or [""])[0]
        if base and not await self._run.git.knows(base):
            raise TestsWeakened(
                f"The commit {base[:12]}, with the tests that the run must pass, no longer exists, so it is not "
                "known whether they were weakened. Restore it, or start with --from 2b."
            )
        return base

    async def _send_back(self, role: str, found: Found, number: int) -> None:
        await self._sent(found)
        values = {"places": _list(found), "round": f"{number} of {TRIES}"}
        result = await self._run.ask(role, values, phase=self._phase, prompt="sent_back")
        if not result.answered:
            self._run.tell(
                f"{self._phase}: the agent did not finish ({result.ended}): {one_line(result.reason, _LINE)}"
            )

    async def _sent(self, found: Found) -> None:
        keys = [place.key for place in found.replaced]
        if keys:
            await in_thread(partial(self._progress.note, sent=keys))

    def _sent_so_far(self) -> Mapping[str, int]:
        counts: dict[str, int] = {}
        for note in self._progress.read():
            keys = note.get("sent")
            for key in keys if isinstance(keys, list) else ():
                counts[str(key)] = counts.get(str(key), 0) + 1
        return counts

    def _keep(self, given: Mapping[str, Judgement]) -> None:
        for key, judgement in given.items():
            self._progress.note(judged=key, **judgement.as_dict())

    def _judgements(self) -> dict[str, Judgement]:
        found = {}
        for note in self._progress.read():
            if isinstance(note.get("judged"), str) and isinstance(note.get("accepted"), bool):
                reason, by = str(note.get("reason", "")), str(note.get("by", ""))
                found[note["judged"]] = Judgement(accepted=note["accepted"], reason=reason, by=by)
        return found

    def _tell(self, found: Found, what: str) -> None:
        counted = (
            f"{len(found.weakened)} places in the tests were weakened, {len(found.replaced)} replace behaviour with "
            "mocks"
        )
        self._run.tell(f"{self._phase}: {counted}; {what}.")


async def held_tests(run: Run, phase: str) -> HeldTests:
    """The tests of a phase that works with existing ones. Raises as `HeldTests.begin`."""
    held = HeldTests(run, phase)
    await held.begin()
    return held


_HEAD = (
    "The tests pass, but not as they were written: some were weakened, or contain mocks. Restore them and fix the "
    "program."
)


def _list(found: Found) -> str:
    """The places for an agent, with the reviewer's reasons."""
    lines = [f"- {place.told}" for place in found.open_places[:_TOLD]]
    more = len(found.open_places) - len(lines)
    lines += [f"- and {more} more"] if more > 0 else []
    lines += ["", "The reviewer's comments:", *found.reasons[:_TOLD]] if found.reasons else []
    return fenced("\n".join(lines))
