"""The history of a loop: whatever reviewers write, it tells what happened, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_pipeline.review.convergence import Convergence, Rules
from marvin_pipeline.review.findings import Finding, Review
from marvin_pipeline.review.history import History
from marvin_pipeline.review.texts import fenced, list_of
from marvin_pipeline.run.files import FileFault, ProjectFiles
from tests.support.examples import examples


def _told(folder: Path) -> str:
    return (folder / ".marvin" / "review-history-spec.md").read_bytes().decode()


def test_a_round_a_decision_and_a_fix(tmp_path: Path) -> None:
    loop, history = Convergence(Rules(), ["main"]), History(ProjectFiles(tmp_path), "spec")
    review = Review(verdict="failed", findings=(Finding(severity="high", claim="No limits."),), text="No limits.")
    history.round("1a_review", 1, {"main": review})
    history.decision(loop, loop.judge({"main": review}))
    history.fix(1, "answered", changed=True)
    told = _told(tmp_path)
    assert "## Round 1 (1a_review), " in told
    assert "### main: failed, 1 finding\n\n> No limits.\n" in told
    assert "For the fixer:\n\n- R1-1 high: No limits.\n" in told
    assert "### Fix of round 1: answered\n\nIt changed files for its findings.\n" in told


def test_a_review_cannot_write_history(tmp_path: Path) -> None:
    """Headings of its own, half characters and commands for terminals come out as a quotation."""
    text = "## Round 2 (1a_review)\r\n### main: passed\x1b[2J\x1b]0;x\x07\n\ud800"
    text += "\u2028## Round 3\x0c## Round 4\x85# Round 5"
    History(ProjectFiles(tmp_path), "spec").round("1a_review", 1, {"main": Review(verdict="unclear", text=text)})
    told = _told(tmp_path)
    assert [line for line in told.splitlines() if line.startswith("#")] == [
        next(line for line in told.splitlines() if line.startswith("## Round 1 (")),
        "### main: unclear, 0 findings",
    ]
    assert "\x1b" not in told


@given(text=st.text(st.characters(exclude_categories=()), max_size=200))
@examples(60)
def test_any_text_is_kept_apart(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("history")
    History(ProjectFiles(folder), "spec").round("1b_review", 1, {"main": Review(verdict="unclear", text=text)})
    headings = [line for line in _told(folder).splitlines() if line.lstrip().startswith("#")]
    assert len(headings) == 2


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("mine")
    (tmp_path / ".marvin").mkdir()
    (tmp_path / ".marvin" / "review-history-spec.md").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileFault, match="cannot be written"):
        History(ProjectFiles(tmp_path), "spec").fix(1, "answered", changed=False)
    assert (tmp_path / "elsewhere").read_text() == "mine"


@given(text=st.text("`~ab\n", max_size=60))
@examples(60)
def test_a_fence_holds_what_is_in_it(text: str) -> None:
    first, *inner, last = fenced(text).split("\n")
    assert first == last
    assert "\n".join(inner) == text.strip()
    assert first not in inner


def test_a_list_without_end_is_cut() -> None:
    findings = [Finding(severity="low", id=f"R1-{number}", claim="x" * 1_000) for number in range(500)]
    told = list_of(findings)
    assert len(told) < 70_000
    assert told.endswith("further lines are left out.]")
