"""The repair loop always ends, sooner where nothing gets better, and goes about it differently in between."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from marvin_pipeline.checks.persistence import Attempt, Persistence, Step
from marvin_pipeline.checks.rounds import Rounds
from marvin_pipeline.progress import Progress
from marvin_pipeline.run.files import ProjectFiles
from tests.support.examples import examples

ROUNDS = 50


def run(attempts: list[Attempt], rounds: int = ROUNDS) -> list[Step]:
    """The steps that attempts lead to, until the end; the last attempt is repeated for ever."""
    machine, steps = Persistence(rounds), []
    for number in range(rounds + 2):
        step = machine.next(attempts[min(number, len(attempts) - 1)])
        steps.append(step)
        if step.end:
            return steps
    raise AssertionError("it did not end")


def strategies(steps: list[Step]) -> list[str]:
    return [step.strategy for step in steps if not step.end]


def test_what_passes_at_once_ends_at_once() -> None:
    assert run([Attempt(failure="", tree="a")]) == [Step(end="passed")]


def test_the_same_failure_again_and_again_changes_the_strategy_and_then_ends() -> None:
    steps = run([Attempt(failure="x", tree="a", failed=1)])
    assert steps[-1].end == "repeated"
    assert list(dict.fromkeys(strategies(steps))) == ["fix", "diagnose", "rethink"]
    assert len(strategies(steps)) <= 6
    assert all(step.is_repeated and step.is_unchanged for step in steps[1:])


def test_the_same_failure_in_a_project_that_changes_is_given_more_rounds_than_in_one_that_does_not() -> None:
    changing = run([Attempt(failure="x", tree=str(number), failed=1) for number in range(ROUNDS)])
    assert changing[-1].end == "repeated"
    assert len(changing) > len(run([Attempt(failure="x", tree="a", failed=1)]))


def test_two_failures_that_take_turns_are_noticed() -> None:
    steps = run([Attempt(failure="xy"[number % 2], tree="ab"[number % 2], failed=1) for number in range(ROUNDS)])
    assert steps[-1].end == "repeated"
    assert len(steps) < 12


def test_always_another_failure_without_progress_ends_as_well() -> None:
    steps = run([Attempt(failure=str(number), tree=str(number), failed=3) for number in range(ROUNDS)])
    assert steps[-1].end == "no progress"
    assert list(dict.fromkeys(strategies(steps))) == ["fix", "diagnose", "rethink"]
    assert len(steps) < ROUNDS


def test_progress_goes_on_to_the_limit_with_the_plain_strategy() -> None:
    steps = run([Attempt(failure=str(number), tree=str(number), passed=number, failed=90) for number in range(90)])
    assert steps[-1].end == "rounds"
    assert strategies(steps) == ["fix"] * ROUNDS


def test_a_module_that_can_be_imported_at_last_is_progress_although_more_tests_fail() -> None:
    machine = Persistence(ROUNDS)
    machine.next(Attempt(failure="import", tree="a", failed=1))
    machine.next(Attempt(failure="import", tree="b", failed=1))
    assert machine.next(Attempt(failure="import", tree="c", failed=1)).strategy == "diagnose"
    assert machine.next(Attempt(failure="ten", tree="d", passed=2, failed=10)).strategy == "fix"


attempts = st.builds(
    Attempt,
    failure=st.sampled_from(["x", "y", "z", "w"]),
    tree=st.sampled_from("abcd"),
    passed=st.integers(0, 6),
    failed=st.integers(0, 6),
)


@examples(200)
@given(st.lists(attempts, min_size=1, max_size=80), st.integers(0, 60))
def test_it_ends_within_its_rounds_whatever_happens(found: list[Attempt], rounds: int) -> None:
    steps = run(found, rounds)
    assert len(strategies(steps)) <= rounds
    assert steps[-1].end in ("rounds", "repeated", "no progress")
    # The strategy changes step by step, and only goes back to the plain one.
    order = ["fix", "diagnose", "rethink"]
    names = strategies(steps)
    for before, after in pairwise(names):
        assert after == "fix" or order.index(after) - order.index(before) in (0, 1)


@examples(100)
@given(st.lists(attempts, min_size=1, max_size=60))
def test_progress_is_finite_so_that_even_a_huge_limit_is_not_used_up(found: list[Attempt]) -> None:
    """With at most 49 degrees of progress between two of which there are at most 15 rounds."""
    steps = run(found, 100_000) if len(found) < 60 else run(found)
    assert len(steps) <= 49 * 16


@examples(60)
@given(st.lists(attempts, min_size=1, max_size=20), st.integers(1, 12), st.lists(st.integers(0, 2), max_size=20))
def test_kills_change_nothing_of_what_rounds_come_to(found: list[Attempt], limit: int, kills: list[int]) -> None:
    """Killed at any moment: before a check is noted, in the middle of a round, or behind it."""
    with TemporaryDirectory() as folder:
        progress = Progress(ProjectFiles(Path(folder)), "4a", "mending")
        plain, rounds = Persistence(limit), Rounds(progress, limit)
        for number, attempt in enumerate(found):
            kill = kills[number] if number < len(kills) else -1
            if kill == 0:
                rounds = Rounds(progress, limit)
            expected, step = plain.next(attempt), rounds.next(attempt, "x")
            assert step == expected
            if step.end:
                assert progress.read() == []
                return
            if kill == 1:  # the round is done again, from the same check
                rounds = Rounds(progress, limit)
                assert rounds.next(attempt, "x") == expected
            assert len(rounds.history) == rounds.done == plain.done
            rounds.ended()
            if kill == 2:
                rounds = Rounds(progress, limit)
                assert rounds.done == plain.done


values = st.integers() | st.text() | st.lists(st.integers()) | st.dictionaries(st.sampled_from(["failure"]), st.text())


@examples(60)
@given(st.lists(st.dictionaries(st.sampled_from(["round", "done", "attempt", "begun", "line"]), values), max_size=8))
def test_notes_that_are_damaged_stop_nothing(notes: list[dict[str, object]]) -> None:
    with TemporaryDirectory() as folder:
        progress = Progress(ProjectFiles(Path(folder)), "4a", "mending")
        for note in notes:
            progress.note(**note)
        assert Rounds(progress, 3).next(Attempt(failure="x", tree="a"), "x") == Step()
