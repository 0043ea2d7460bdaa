"""The tests are what a run is held to: none may ask for less than it did, and none may stand on mocks.

2b compares the tests with those that 2a left, and adds to them. Then they are those that the run is held to: each phase
that works with them compares them with the newest commit at which another phase found them to be right. What asks for
less goes to a reviewer, and where that does not let it stand, back to the agent at work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

from marvin_core import MarvinError, Record, in_thread, one_line

from ..checks.mending import Check, Finding
from ..progress import Progress
from ..review.findings import Finding as ReviewFinding
from ..review.texts import fenced, line_of
from ..run.ends import PhaseEnd
from .accepting import Judgement, judge
from .looking import Looked, Place, look
from .records import EvidenceLog, Gate, GateName, GateOutcome

if TYPE_CHECKING:
    from ..run.context import Run

TRIES = 3
"""How often an agent is sent back for tests that ask for less."""
_MOCK_TRIES = 2
"""How often a place that stands in for real behaviour is sent back; then it is a finding."""
_NAMED, _LINE = 20, 300
_TOLD = 100
"""Places that an agent is told of at once."""


class TestsWeakened(MarvinError):
    """Tests ask for less than they did, no review let that stand, and the agents did not bring them back."""

    exit_code = 5


class Found(Record):
    """What a look found, and what became of it."""

    commit: str
    weakened: tuple[Place, ...] = ()
    """What nobody let stand."""
    accepted: tuple[tuple[Place, Judgement], ...] = ()
    replaced: tuple[Place, ...] = ()
    """What stands in for real behaviour and is to be sent back."""
    left: tuple[Place, ...] = ()
    """The same, where it was sent back often enough."""
    unread: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    """What the reviewer said of what it did not let stand, a line each."""
    is_known: bool = False
    """Whether this commit was found to be right before."""

    @property
    def open_places(self) -> tuple[Place, ...]:
        """What is to be sent back."""
        return (*self.weakened, *self.replaced)


class HeldTests:
    """The tests of one phase.

    Args:
        run: what gives agents, files and git.
        phase: the phase, which has begun.
        since: the commit that it is compared with, where not the one at which the tests were found to be right.
        compares: whether the tests that are there may not ask for less.
    """

    def __init__(self, run: Run, phase: str, since: str = "", *, compares: bool = True) -> None:
        self._run = run
        self._phase = phase
        self._log = EvidenceLog(run.files)
        self._progress = Progress(run.files, phase, "held")
        self._since = since
        self._compares = compares
        self._left: tuple[Place, ...] = ()
        """The mocks that the last check found."""

    async def begin(self) -> None:
        """Have a commit to compare with. Without one on record it is the newest one, and the log says so.

        Raises:
            TestsWeakened: the commit that is on record is gone.
        """
        if await self._base("unweakened"):
            return
        reason = "No tests of 2a and 2b are on record. The tests as they are here are what it is held to."
        commit = await self._run.git.checkpoint(f"{self._phase}: the tests that the run is held to")
        await in_thread(partial(self._note, self._gate("unweakened", "not_measured", reason, commit)))

    async def hold(self, role: str) -> PhaseEnd:
        """Look, and send an agent of a role back until nothing is left to be brought back.

        Raises:
            TestsWeakened: something is left after three times.
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
        """A check that fails as well where the tests ask for less; the agents of its loop bring them back."""

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
        """What is to be sent back now. Asks a reviewer of what it was not asked of before.

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
        """Note what was found, and say what it means for the phase.

        Raises:
            TestsWeakened: tests ask for less.
        """
        await self._ended(found)
        if found.weakened:
            await in_thread(self._progress.forget)  # whoever runs it again wants another try
            places = "; ".join(place.told for place in found.weakened[:_NAMED])
            raise TestsWeakened(
                f"{len(found.weakened)} places in the tests were weakened, and no review accepted that: {places}. "
                "Restore them and run the pipeline again. If the changes are intended, start with --from 2b."
            )
        return self.left_over()

    def left_over(self) -> PhaseEnd:
        """What the mocks that are left mean for the phase: they are findings."""
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
        """The newest commit at which another phase passed a gate; empty where there is none on record.

        Without another phase it is the one that this phase began with.
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
    """The tests of a phase that works with those that are there. Raises as `HeldTests.begin`."""
    held = HeldTests(run, phase)
    await held.begin()
    return held


_HEAD = (
    "The tests pass, but not as they were written: some were weakened, or contain mocks. Restore them and fix the "
    "program."
)


def _list(found: Found) -> str:
    """The places for an agent, with what the reviewer said."""
    lines = [f"- {place.told}" for place in found.open_places[:_TOLD]]
    more = len(found.open_places) - len(lines)
    lines += [f"- and {more} more"] if more > 0 else []
    lines += ["", "The reviewer's comments:", *found.reasons[:_TOLD]] if found.reasons else []
    return fenced("\n".join(lines))
