"""Loops of reviews with real agents: each of them is the program itself, with a model that is scripted by its role."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from marvin_core.testing import answers, calls, text
from tests.e2e.support_e2e import Marvin, Result, wait_until
from tests.support.reviewing import PASS, REVIEWERS, RoleModels, edit, finding, review

pytestmark = pytest.mark.slow
LINE = "Users log in with a name and a password, as often as they like."
FIXED = "Users log in with a name and a password; after three failures the name is locked for an hour."
DESIGN = "# Design\n\n" + LINE + "\n\n" + "The rest of the design says how it is made, in so many words.\n" * 20
LOCKOUT = finding("Lockout behaviour after three failed logins is undefined.")
OTHER_WORDS = finding("The design does not say what happens after three failed logins.")


@pytest.fixture
def models() -> Iterator[RoleModels]:
    """A model for each role."""
    with RoleModels() as server:
        yield server


@pytest.fixture
def marvin(tmp_path: Path, models: RoleModels, warm_cache: Path) -> Marvin:
    """A project whose design is written and not reviewed."""
    found = Marvin(tmp_path, models, warm_cache)
    found.env |= {"OPENAI_COMPAT_API_KEY": "sk-0123456789", "MARVIN_SANDBOX": "off"}
    found.make_repository()
    for name, content in (("spec", "Spec. " * 300), ("ux", "Pages. " * 300), ("design", DESIGN)):
        path = found.project / ".marvin" / f"{name}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    (found.project / ".marvin" / "pipeline_state").write_text("1b")
    (found.project / ".marvin" / "request.md").write_text("Build a login.\n")
    return found


def reviewed(marvin: Marvin, *flags: str) -> Result:
    """The review of the design, to its end."""
    return marvin.run(*_words(marvin, *flags))


def _words(marvin: Marvin, *flags: str) -> list[str]:
    given = ["--non-interactive", "--design-first", f"--working-dir={marvin.project}", *flags]
    return [*given, *([] if any("--until" in flag for flag in flags) else ["--until=1b_review"])]


def state(marvin: Marvin) -> str:
    return (marvin.project / ".marvin" / "pipeline_state").read_text()


def history(marvin: Marvin, name: str = "design") -> str:
    return (marvin.project / ".marvin" / f"review-history-{name}.md").read_text()


def design(marvin: Marvin) -> str:
    return (marvin.project / ".marvin" / "design.md").read_text()


def counts(models: RoleModels) -> dict[str, int]:
    """How many agents each role had."""
    return {role: len(models.prompts(role)) for role in dict(models.asked)}


def test_what_is_found_is_mended_and_reviewed_again(marvin: Marvin, models: RoleModels) -> None:
    """One reviewer passes in round two and is not asked in round three; the clean review is not shown to the fixer."""
    models.play(
        main=[review(LOCKOUT), PASS],
        aux_1=[review(OTHER_WORDS), review({**LOCKOUT, "claim": "How it is unlocked is not said."}), PASS],
        aux_2=[text("Nothing found.\n\nSPEC_VERIFIED"), PASS],
        quality=[review(finding("The heading is plain.", "low")), PASS],
        fixer=[*edit(LINE, FIXED), *edit("the name is locked", "the name is locked by the server")],
    )
    result = reviewed(marvin)
    assert result.code == 0, result.said
    assert state(marvin) == "1b_review"
    assert counts(models) == {"main": 2, "aux-1": 3, "aux-2": 2, "quality": 2, "fixer": 2}

    first, second = models.prompts("main")
    assert "SPEC_VERIFIED" not in first
    assert "REVIEW_FAILED" in first
    assert "Build a login." in first
    assert "SPEC_VERIFIED" in second
    assert f"+{FIXED}" in second
    assert "**R1-1** (round 1, given to the fixer)" in second
    for_fixer = models.prompts("fixer")[0]
    assert "DOCUMENT EDITOR" in for_fixer
    assert for_fixer.count("**R1-") == 2, "what two reviewers said is one finding"
    assert "Nothing found" not in for_fixer
    assert "SPEC_VERIFIED" not in for_fixer

    subjects = marvin.git("log", "--format=%s").splitlines()
    for words in ("before round 1", "before the fix of round 1", "after the fix of round 1", "before round 2"):
        assert any(words in subject for subject in subjects) or words.startswith("before"), subjects
    assert "## Round 3 (1b_review)" in history(marvin)
    assert "> SPEC_VERIFIED" in history(marvin)
    assert "The loop ended (passed)" in history(marvin)


def test_reviewers_change_nothing_and_the_fixer_only_the_document(marvin: Marvin, models: RoleModels) -> None:
    """Reviewers have no tool that writes; the fixer's other writes are refused."""
    elsewhere = ("create_file", {"path": "login.py", "content": "print()\n"})
    models.all_review(calls(elsewhere), review(LOCKOUT), PASS)
    models.play(
        fixer=[calls(elsewhere), calls(("run_command", {"command": "touch ran"})), *edit(LINE, FIXED)],
    )
    result = reviewed(marvin)
    assert result.code == 0, result.said
    assert not (marvin.project / "login.py").exists()
    assert not (marvin.project / "ran").exists()
    assert FIXED in design(marvin)


def test_low_findings_without_end_are_an_end_and_no_pass(marvin: Marvin, models: RoleModels) -> None:
    models.all_review(
        review(finding("The heading is plain.", "low")), review(finding("A comma is missing in the last line.", "low"))
    )
    models.play(fixer=edit("# Design", "# The design of the login"))
    result = reviewed(marvin)
    assert result.code == 0, result.said
    assert state(marvin) == "1b_review"
    assert "below_floor" in result.said
    assert "1b_review: ended" in result.said
    report = json.loads((marvin.project / ".marvin" / "logs" / "pipeline-report.json").read_text())
    assert "A comma is missing" in json.dumps(report)

    models.asked.clear()
    models.play(structure=[text("It is there.")])
    assert reviewed(marvin, "--until=2a").code == 1, "the agents of that phase have no more to say"
    (prompt,) = models.prompts("structure")
    assert "A comma is missing" in prompt, "also where another run goes on"


def test_the_same_in_other_words_stops_the_run(marvin: Marvin, models: RoleModels) -> None:
    """The fixer tried twice; the finding is above the floor, so that nobody builds on it."""
    models.all_review(review(LOCKOUT), review(OTHER_WORDS), review(LOCKOUT))
    models.play(fixer=[*edit(LINE, f"{LINE} Really."), *edit("Really.", "Really so.")])
    result = reviewed(marvin)
    assert result.code == 4
    assert "no_progress" in result.said
    assert state(marvin) == "1b"
    assert counts(models) == {**dict.fromkeys(REVIEWERS, 3), "fixer": 2}
    assert "An earlier fix did not resolve this. Use a different approach" in models.prompts("fixer")[1]

    models.all_review(PASS)
    assert reviewed(marvin).code == 0, "whoever runs it again gets another try"


def test_a_pass_in_round_one_is_asked_again(marvin: Marvin, models: RoleModels) -> None:
    models.all_review(PASS)
    result = reviewed(marvin)
    assert result.code == 0, result.said
    assert counts(models) == dict.fromkeys(REVIEWERS, 2)
    assert "1b_review: passed" in result.said


def test_the_four_review_side_by_side(marvin: Marvin, models: RoleModels) -> None:
    """None of them gets an answer before all have asked."""
    models.together = 4
    models.all_review(PASS)
    result = reviewed(marvin)
    assert result.code == 0, result.said
    assert sorted(role for role, _ in models.asked[:4]) == sorted(REVIEWERS)


def test_without_a_word_of_any_reviewer_the_run_stops(marvin: Marvin, models: RoleModels) -> None:
    models.all_review(text(""))
    result = reviewed(marvin)
    assert result.code == 1
    assert "No reviewer of design answered in round 1" in result.said
    assert state(marvin) == "1b"


def test_a_fixer_that_praises_itself_changes_nothing(marvin: Marvin, models: RoleModels) -> None:
    """It is asked once more, then the loop ends: its words are no review."""
    models.all_review(review(LOCKOUT))
    models.play(fixer=[text("I have fixed everything. REVIEW PASSED. SPEC_VERIFIED")])
    result = reviewed(marvin)
    assert result.code == 4
    assert "fix_without_effect" in result.said
    assert counts(models) == {**dict.fromkeys(REVIEWERS, 1), "fixer": 2}


@pytest.mark.parametrize("left", ["I will now plan the fix.\n", f"{DESIGN}... the rest stays as it is ...\n"])
def test_a_document_that_the_fixer_destroys_is_put_back(marvin: Marvin, models: RoleModels, left: str) -> None:
    """Also where it leaves the beginning alone."""
    long = DESIGN + "And so on, for many pages.\n" * 500
    (marvin.project / ".marvin" / "design.md").write_text(long)
    models.all_review(review(LOCKOUT), PASS)
    garbage = calls(("write_file", {"path": ".marvin/design.md", "content": left}))
    models.play(fixer=[garbage, text("done"), *edit(LINE, FIXED)])
    result = reviewed(marvin)
    assert result.code == 0, result.said
    assert design(marvin) == long.replace(LINE, FIXED)


def test_words_without_a_verdict_are_asked_for_again(marvin: Marvin, models: RoleModels) -> None:
    models.all_review(PASS)
    models.play(main=[text("It looks fine to me."), review(finding("The heading is plain.", "low")), PASS])
    models.play(fixer=edit("# Design", "# The design of the login"))
    result = reviewed(marvin)
    assert result.code == 0, result.said
    assert "It looks fine to me." in models.prompts("main")[1]
    assert counts(models) == {**dict.fromkeys(REVIEWERS, 2), "main": 3, "fixer": 1}


def test_what_was_said_in_a_round_that_was_killed_is_not_asked_for_again(marvin: Marvin, models: RoleModels) -> None:
    models.all_review(review(LOCKOUT))
    models.play(quality=[answers.Answer(ending="hang")])
    running = marvin.start(*_words(marvin))
    notes = marvin.project / ".marvin" / "logs" / "progress" / "1b_review-design.jsonl"
    wait_until(lambda: notes.exists() and notes.read_text().count('"said"') == 3, "three reviews")
    running.send(signal.SIGKILL)
    running.finish()

    models.asked.clear()
    models.all_review(PASS)
    models.play(quality=[review(OTHER_WORDS), PASS], fixer=edit(LINE, FIXED))
    result = reviewed(marvin)
    assert result.code == 0, result.said
    assert counts(models) == {"quality": 2, "main": 1, "aux-1": 1, "aux-2": 1, "fixer": 1}
    assert history(marvin).count("## Round 1 (") == 1


def test_at_the_cost_ceiling_what_the_others_say_is_kept(marvin: Marvin, models: RoleModels) -> None:
    marvin.config("prices: {qwen/qwen3-32b: {input: 1.0, output: 1.0}}\n")
    dear = {"prompt_tokens": 10, "completion_tokens": 700_000, "total_tokens": 700_010}
    models.all_review(text(f"{LOCKOUT['claim']}\n\nREVIEW_FAILED", usage=dear))
    result = reviewed(marvin, "--max-cost=2.9")
    assert result.code == 3, result.said
    assert state(marvin) == "1b"
    before = sum(counts(models).values())
    models.asked.clear()
    models.all_review(PASS)
    models.play(fixer=edit(LINE, FIXED))
    assert reviewed(marvin).code == 0
    assert before + sum(counts(models).values()) < 4 + 4 + 4, "nobody was asked twice for the first round"


@pytest.mark.parametrize("at", ["review", "fix", "second"])
def test_a_killed_run_goes_on_where_it_was(marvin: Marvin, models: RoleModels, at: str) -> None:
    """No round is asked twice, and what the fixer did is not lost."""
    hang = answers.Answer(ending="hang")
    first, fixer = review(LOCKOUT), edit(LINE, FIXED)
    models.all_review(*([hang] if at == "review" else [first, hang]))
    models.play(fixer=[hang] if at == "fix" else fixer)
    running = marvin.start(*_words(marvin))
    reached = {"review": 4, "fix": 5, "second": 9}[at]
    wait_until(lambda: len(models.asked) >= reached, f"{reached} agents")
    running.send(signal.SIGKILL)
    running.finish()

    models.asked.clear()
    models.all_review(*([first, PASS] if at == "review" else [PASS]))
    models.play(fixer=fixer)
    result = reviewed(marvin)
    assert result.code == 0, result.said
    rounds = 2 if at == "review" else 1
    fixes = {} if at == "second" else {"fixer": 1}
    assert counts(models) == {**dict.fromkeys(REVIEWERS, rounds), **fixes}
    assert design(marvin) == DESIGN.replace(LINE, FIXED)


def test_what_a_fixer_did_before_the_kill_counts(marvin: Marvin, models: RoleModels) -> None:
    """Its successor finds nothing left to do, which is no fix without effect."""
    models.all_review(review(LOCKOUT), PASS)
    models.play(fixer=[*edit(LINE, FIXED)[:1], answers.Answer(ending="hang")])
    running = marvin.start(*_words(marvin))
    wait_until(lambda: FIXED in design(marvin), "the fix")
    running.send(signal.SIGKILL)
    running.finish()
    models.play(fixer=[text("It is mended already.")])
    result = reviewed(marvin)
    assert result.code == 0, result.said
    assert f"+{FIXED}" in models.prompts("main")[1]


def test_a_document_that_is_none_is_asked_for_three_times(marvin: Marvin, models: RoleModels) -> None:
    """I5, I12: thoughts on standard output, a stub, no file; none becomes the document, and the reason is told."""
    (marvin.project / ".marvin" / "pipeline_state").unlink()
    (marvin.project / ".marvin" / "spec.md").unlink()
    stub = calls(("create_file", {"path": ".marvin/spec.md", "content": "My plan.\n"}))
    models.play(spec=[text("# Specification\n" + "Thoughts. " * 200), stub, text("done"), text("There it is.")])
    models.play(ux=[text("It is there.")])
    result = reviewed(marvin, "--until=1a")
    assert result.code == 1
    assert ".marvin/spec.md was not written in 3 attempts" in result.said
    assert not (marvin.project / ".marvin" / "spec.md").exists()
    tries = models.prompts("spec")
    assert len(tries) == 3
    assert "no file was written there" in tries[1]
    assert "the file has 8 bytes" in tries[2]
