"""Loops of reviews: they always end, and never pass by accident."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping

import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from marvin_pipeline.review.convergence import Convergence, Decision, EmptyReviews, Rules
from marvin_pipeline.review.findings import SEVERITIES, Finding, Review, Severity, Verdict
from marvin_pipeline.review.recorded import as_noted, replay
from tests.support.examples import examples

NAMES = ("main", "aux-1", "aux-2", "quality")
TOPICS = (
    "Lockout behaviour after three failed logins is undefined.",
    "No maximum size is given for uploaded files.",
    "Password reset tokens never expire.",
    "Time zones are ignored when reminders are scheduled.",
    "The import does not define how duplicate rows are handled.",
    "Audit logs are kept for an unspecified period.",
)
PASS = Review(verdict="passed", text="SPEC_VERIFIED")
EMPTY = Review(verdict="empty")
UNCLEAR = Review(verdict="unclear", text="Fine.")

severities = st.sampled_from(SEVERITIES)


def found(*claims: str, severity: Severity = "high", id: str = "", verdict: Verdict = "failed") -> Review:
    """A review with these claims."""
    findings = tuple(Finding(severity=severity, claim=claim, file=".marvin/spec.md", id=id) for claim in claims)
    return Review(verdict=verdict, findings=findings, text="...")


@st.composite
def reviews(draw: st.DrawFn) -> Review:
    """Anything that a reviewer may say."""
    if draw(st.booleans()):
        return draw(st.sampled_from([PASS, EMPTY, UNCLEAR]))
    known = st.builds("R{}-{}".format, st.integers(1, 4), st.integers(1, 4))
    finding = st.builds(
        Finding,
        severity=severities,
        claim=st.sampled_from(TOPICS) | st.text(min_size=1, max_size=30),
        file=st.sampled_from(["", ".marvin/spec.md", "ux.md"]),
        id=st.just("") | known,
    )
    findings = draw(st.lists(finding, min_size=1, max_size=4))
    return Review(verdict=draw(st.sampled_from(["failed", "passed"])), findings=tuple(findings), text="...")


class Machine(RuleBasedStateMachine):
    """A loop with reviewers and fixers of any habits."""

    @initialize(
        rounds=st.integers(1, 6),
        adversarial=st.integers(0, 1),
        floor=severities,
        attempts=st.integers(1, 3),
        count=st.integers(1, 4),
    )
    def begin(self, rounds: int, adversarial: int, floor: Severity, attempts: int, count: int) -> None:
        self.bounds = Rules(rounds=rounds, adversarial=adversarial, floor=floor, attempts=attempts)
        self.names = NAMES[:count]
        self.loop = Convergence(self.bounds, self.names)
        self.decision: Decision | None = None
        self.notes: list[Mapping[str, object]] = []
        self.last: Mapping[str, Review] = {}
        self.passed_by: set[str] = set()
        self.rounds = self.fixes = 0
        self.is_aborted = False

    def step(self) -> str:
        return "over" if self.is_aborted else self.loop.decision.step

    @precondition(lambda self: self.step() in ("end", "over"))
    @rule(rules=st.builds(Rules, rounds=st.integers(1, 6), floor=severities), count=st.integers(1, 4))
    def begin_again(self, rules: Rules, count: int) -> None:
        self.begin(rules.rounds, rules.adversarial, rules.floor, rules.attempts, count)

    @precondition(lambda self: self.step() == "review")
    @rule(data=st.data())
    def review(self, data: st.DataObject) -> None:
        asked = self.loop.active
        assert not self.passed_by & set(asked), "who passed is not asked again"
        given = {name: data.draw(reviews()) for name in asked}
        number, adversarial = self.loop.round, self.loop.is_adversarial
        assert number == self.rounds + 1
        if all(review.verdict == "empty" for review in given.values()):
            with pytest.raises(EmptyReviews):
                self.loop.judge(given)
            self.is_aborted = True
            return
        self.decision = self.loop.judge(given)
        self.rounds, self.last = self.rounds + 1, given
        self.notes.append(json.loads(json.dumps({"reviews": as_noted(given)})))
        gone = set(asked) - set(self.loop.active)
        assert not (gone and adversarial), "nobody passes in the adversarial round"
        assert all(given[name].verdict == "passed" and not self.blocking(given[name]) for name in gone)
        self.passed_by |= gone

    @precondition(lambda self: self.step() == "fix")
    @rule(changed=st.booleans())
    def fix(self, changed: bool) -> None:
        assert self.decision is not None
        assert self.decision.findings, "a fixer gets something to do"
        assert len({one.id for one in self.decision.findings}) == len(self.decision.findings)
        for name, review in self.last.items():
            for finding in review.findings:
                assert any(name in one.reviewers for one in self.decision.findings), finding
        self.decision = self.loop.fixed(changed=changed)
        self.notes.append({"changed": changed})
        self.fixes += 1

    def blocking(self, review: Review) -> bool:
        return any(one.is_at_least(self.bounds.floor) for one in review.findings)

    @invariant()
    def it_is_bounded(self) -> None:
        assert self.rounds <= self.bounds.rounds
        assert self.fixes <= self.bounds.rounds * self.bounds.attempts

    @invariant()
    def it_passes_only_where_all_passed(self) -> None:
        if self.step() == "end":
            assert self.decision is not None
            assert (self.decision.ending == "passed") == (self.passed_by == set(self.names))
            assert self.decision.ending != "passed" or not any(
                one.is_at_least(self.bounds.floor) for one in self.decision.findings
            )

    @invariant()
    def nothing_of_weight_is_lost(self) -> None:
        """What the last round found, and nobody mended, is open at the end, and as bad as it was."""
        if self.step() != "end" or self.decision is None or self.decision.ending == "fix_without_effect":
            return
        for name, review in self.last.items():
            for finding in review.findings:
                assert any(
                    name in one.reviewers and one.is_at_least(finding.severity) for one in self.decision.findings
                )

    @invariant()
    def it_can_be_put_together_again(self) -> None:
        again = Convergence(self.bounds, self.names)
        assert replay(again, self.notes) == len(self.notes)
        assert (again.round, again.active, again.known) == (self.loop.round, self.loop.active, self.loop.known)
        assert again.decision == self.loop.decision


TestMachine = Machine.TestCase
# At each step one rule of three is possible, so most of what is drawn is left out.
TestMachine.settings = examples(100, stateful_step_count=16, suppress_health_check=[HealthCheck.filter_too_much])


def _run(loop: Convergence, *rounds: Mapping[str, Review] | Review, changed: bool = True) -> Decision:
    """Play rounds in which everybody says the same, or each what is given; the fixer changes something or nothing."""
    for given in rounds:
        said = dict.fromkeys(loop.active, given) if isinstance(given, Review) else given
        loop.judge(said)
        while loop.decision.step == "fix":
            loop.fixed(changed=changed)
    return loop.decision


@pytest.fixture
def loop() -> Convergence:
    return Convergence(Rules(), NAMES)


def test_a_pass_in_the_first_round_counts_for_nothing(loop: Convergence) -> None:
    """All are asked again; where they pass then, the loop passes."""
    assert _run(loop, PASS).step == "review"
    assert loop.active == NAMES
    assert _run(loop, PASS) == Decision(step="end", ending="passed")
    assert loop.round == 2


def test_code_can_pass_in_the_first_round() -> None:
    loop = Convergence(Rules(adversarial=0), ["main"])
    assert _run(loop, PASS).ending == "passed"


def test_who_passes_is_not_asked_again(loop: Convergence) -> None:
    _run(loop, found(TOPICS[0]), {**dict.fromkeys(NAMES, found(TOPICS[1])), "main": PASS})
    assert loop.active == NAMES[1:]


def test_who_passes_has_taken_back_what_another_says_in_that_round(loop: Convergence) -> None:
    others = dict.fromkeys(NAMES[2:], PASS)
    first = {"main": PASS, NAMES[1]: found(TOPICS[0]), **others}
    second = {"main": found(TOPICS[0]), NAMES[1]: PASS, **others}
    assert _run(loop, first, second, PASS) == Decision(step="end", ending="passed")


def test_always_something_new_of_low_severity_ends_after_the_second_round(loop: Convergence) -> None:
    first = _run(loop, found(TOPICS[0], severity="low"))
    assert first.step == "review", "in the first round everything is mended"
    end = _run(loop, found(TOPICS[1], severity="low"))
    assert (end.step, end.ending, loop.round) == ("end", "below_floor", 2)
    assert [one.claim for one in end.findings] == [TOPICS[1]]


def test_the_same_in_other_words_ends_when_it_was_tried_often_enough(loop: Convergence) -> None:
    end = _run(
        loop,
        found("The spec does not say what happens after three failed logins."),
        found("Lockout behaviour after three failed login attempts is undefined."),
        found("After three failed logins, what happens is unclear."),
    )
    assert (end.ending, loop.round) == ("no_progress", 3)
    (finding,) = end.findings
    assert (finding.id, finding.reviewers) == ("R1-1", NAMES)


def test_the_same_by_its_id_counts_as_the_same(loop: Convergence) -> None:
    """The reviewer saw the ids of earlier rounds. Those of its own round are numbers that it made up."""
    end = _run(loop, found(TOPICS[0]), found(TOPICS[1], id="R1-1"), found(TOPICS[2], id="R1-1"))
    assert (end.ending, [one.id for one in end.findings]) == ("no_progress", ["R1-1"])
    other = Convergence(Rules(), NAMES)
    other.judge({"main": found(TOPICS[0]), "aux-1": found(TOPICS[1], id="R1-1")})
    assert [one.id for one in other.decision.findings] == ["R1-1", "R1-2"]


def test_as_much_as_in_the_round_before_ends_the_loop() -> None:
    """A reviewer that finds something new of weight each time is not heard for ever."""
    loop = Convergence(Rules(rounds=10), NAMES)
    end = _run(loop, *(found(topic) for topic in TOPICS[:3]))
    assert (end.ending, loop.round) == ("diminishing_returns", 3)
    assert [one.claim for one in end.findings] == [TOPICS[2]]


def test_less_in_each_round_goes_on_to_the_limit(loop: Convergence) -> None:
    end = _run(loop, found(*TOPICS), found(*TOPICS[3:]), found("The queue is never drained.", "Typo."), found("Typo."))
    assert (end.ending, loop.round) == ("round_limit", 4)
    assert [one.claim for one in end.findings] == ["Typo."]


def test_a_fixer_that_changes_nothing_ends_the_loop(loop: Convergence) -> None:
    """It is asked twice; the reviewers are not asked to read the same again."""
    end = _run(loop, found(TOPICS[0]), changed=False)
    assert (end.ending, loop.round, len(end.findings)) == ("fix_without_effect", 1, 1)


def test_all_empty_is_an_abort(loop: Convergence) -> None:
    with pytest.raises(EmptyReviews):
        loop.judge({})


def test_one_that_says_nothing_has_not_passed(loop: Convergence) -> None:
    """It is asked again, and what it had found stays open until it has looked again."""
    _run(loop, found(TOPICS[0]))
    said: dict[str, Review] = {**dict.fromkeys(NAMES, PASS), "quality": EMPTY}
    assert _run(loop, said).step == "review"
    assert loop.active == ("quality",)
    assert [one.claim for one in loop.open_findings()] == [TOPICS[0]]
    with pytest.raises(EmptyReviews):
        _run(loop, EMPTY)


def test_who_passes_while_another_one_repeats_it_need_not_look_again(loop: Convergence) -> None:
    """It was open for ever: the one that had found it first had passed, and nobody asked it again."""
    _run(loop, {**dict.fromkeys(NAMES, PASS), "main": found(TOPICS[0])})
    _run(loop, {**dict.fromkeys(NAMES, PASS), "aux-1": found(TOPICS[0])})
    assert loop.active == ("aux-1",)
    assert [one.reviewers for one in loop.open_findings()] == [("main", "aux-1")]
    assert _run(loop, PASS) == Decision(step="end", ending="passed")


def test_nothing_found_and_no_verdict_is_an_end_and_no_pass(loop: Convergence) -> None:
    end = _run(loop, UNCLEAR, UNCLEAR)
    assert (end.step, end.ending, end.findings) == ("end", "no_findings", ())


def test_a_pass_with_something_of_weight_is_none(loop: Convergence) -> None:
    said = found(TOPICS[0], verdict="passed")
    assert _run(loop, PASS, said).step == "review"
    assert loop.active == NAMES


def test_a_pass_with_something_small_is_a_pass_and_it_is_told(loop: Convergence) -> None:
    end = _run(loop, PASS, found(TOPICS[0], severity="low", verdict="passed"))
    assert end.ending == "passed"
    assert [one.claim for one in end.findings] == [TOPICS[0]]


def test_what_several_found_is_one_finding_as_bad_as_the_worst_says(loop: Convergence) -> None:
    loop.judge({"main": found(TOPICS[0], severity="medium"), "aux-1": found(TOPICS[0], severity="critical")})
    (finding,) = loop.decision.findings
    assert (finding.severity, finding.reviewers) == ("critical", ("main", "aux-1"))


def test_what_one_reviewer_tells_apart_is_not_the_same(loop: Convergence) -> None:
    """And what others say in other words is kept beside it: the fixer gets all of it."""
    words = ("The lockout after three failed logins is undefined.", "Three failed logins: no lockout for them.")
    loop.judge({"main": found(TOPICS[0], words[0]), "aux-1": found(words[1]), "aux-2": found(TOPICS[0])})
    first, second = loop.decision.findings
    assert first.claim.split("\n") == [TOPICS[0], words[1]]
    assert first.reviewers == ("main", "aux-1", "aux-2")
    assert second.claim == words[0]


@pytest.mark.slow
def test_findings_without_end_are_bounded_and_none_of_weight_is_lost() -> None:
    loop = Convergence(Rules(rounds=9), NAMES)
    numbers = itertools.count()

    def many(severity: Severity) -> Review:
        return found(*(f"Demand {next(numbers)} is wrong." for _ in range(100)), severity=severity)

    for _ in range(2):
        loop.judge({name: many("low") for name in NAMES})
        loop.fixed(changed=True)
    assert len(loop.known) == 500
    loop.round = 2
    loop.judge({**{name: many("low") for name in NAMES}, "quality": found(TOPICS[0], severity="critical")})
    assert loop.decision.step == "fix"
    assert loop.decision.findings[0].claim == TOPICS[0], "the worst come first"


@pytest.mark.parametrize("written", ["r1-1", "#R1-1", "R1-1 (still open)", "[R1-1]"])
def test_an_id_is_known_however_it_is_written(loop: Convergence, written: str) -> None:
    _run(loop, found(TOPICS[0]))
    loop.judge(dict.fromkeys(loop.active, found("Nothing of that is better.", id=written)))
    assert [one.id for one in loop.decision.findings] == ["R1-1"]


@pytest.mark.parametrize(
    "notes",
    [
        [{"reviews": 1}],
        [{"reviews": {"main": {}}}],
        [{"reviews": {"main": {"verdict": "great", "findings": []}}}],
        [{"reviews": {"main": {"verdict": "failed", "findings": [{"severity": "bad"}]}}}],
        [{"changed": True}],
        [{}],
    ],
)
def test_damaged_notes_are_not_understood(notes: list[Mapping[str, object]]) -> None:
    loop = Convergence(Rules(), NAMES)
    assert replay(loop, notes) == 0
    assert (loop.round, loop.known, loop.decision.step) == (1, {}, "review")
