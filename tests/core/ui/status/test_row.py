"""The status row: what it tells, in which colour, and what stays of it in a narrow window."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.config import StatusPart
from marvin_core.ui.rendering import Paint
from marvin_core.ui.status.facts import Facts, branch_of
from marvin_core.ui.status.row import StatusRow
from marvin_core.util.shown import columns_of
from tests.support.engine import Made, make, run, says, until
from tests.support.examples import examples

GREEN, YELLOW, RED = "\x1b[32m", "\x1b[33m", "\x1b[31m"


def row_of(made: Made, width: int = 200, parts: tuple[str, ...] = (), *, color: bool = False, **facts: object) -> str:
    known = Facts(made.session, lambda: None)
    for name, value in facts.items():
        setattr(known, name, value)
    names = parts or made.session.chat.preferences.status
    return StatusRow(made.session, known, names, Paint(color)).text(width, columns_of, shell=False)


def test_it_tells_what_is_going_on(tmp_path: Path) -> None:
    made = make(tmp_path, argv=("--thinking", "high", "--permission-mode", "ask"))
    shown = row_of(made, branch="main", cost=1.234, jobs=2)
    model = made.session.models.model
    assert shown == f"{model} · ask · thinks high · project · main · context 0% · $1.23 · 2 jobs"
    every = row_of(made, parts=get_args(StatusPart), tokens=1_500)
    assert every.endswith("profile main · 0 messages · 1,500 tokens")
    assert row_of(make(tmp_path, argv=(), yaml="ui: {status: []}"), parts=()) == ""


def test_without_a_model_it_says_so(tmp_path: Path) -> None:
    shown = row_of(make(tmp_path, argv=("--permission-mode", "ask"), configured=False))
    assert shown.startswith("no model · ask")
    assert "context" not in shown


@pytest.mark.parametrize(("share", "sign", "colour"), [(0.5, "", GREEN), (0.75, " !", YELLOW), (0.95, " !!", RED)])
def test_a_full_window_is_seen_with_and_without_colours(tmp_path: Path, share: float, sign: str, colour: str) -> None:
    made = make(tmp_path, argv=())
    standing = made.session.standing()
    assert standing.warn < 0.75 * standing.window < standing.compact < 0.95 * standing.window
    made.session.compactor.overhead = int(standing.window * share) * 4
    shown = row_of(made, parts=("context",), color=True)
    assert re.search(rf"{re.escape(colour)}context \d+%{re.escape(sign)}\x1b", shown)


@pytest.mark.parametrize(("left", "sign"), [(0.9, ""), (0.15, " !"), (0.01, " !!"), (0.0, " !!")])
def test_the_cost_is_seen_against_its_ceiling(tmp_path: Path, left: float, sign: str) -> None:
    shown = row_of(make(tmp_path, argv=()), parts=("cost",), ceiling=1.0, left=left)
    assert shown == f"${1 - left:.2f} of $1.00{sign}"
    assert row_of(make(tmp_path, argv=()), parts=("cost",), cost=None) == "cost unknown"


@examples(60)
@given(st.integers(10, 200))
def test_it_never_takes_more_than_a_row_and_drops_the_least_needed(width: int) -> None:
    made = MADE[0]
    shown = row_of(made, width, branch="a-branch-with-a-long-name" * 5, cost=0.5, jobs=1)
    assert columns_of(shown) <= width
    if width >= 40:
        assert "context" in shown
        assert "ask" in shown
    narrower = row_of(made, width - 1, branch="a-branch-with-a-long-name" * 5, cost=0.5, jobs=1)
    assert len(narrower.split(" · ")) <= len(shown.split(" · "))


MADE: list[Made] = []


@pytest.fixture(autouse=True, scope="module")
def _one_session(tmp_path_factory: pytest.TempPathFactory) -> None:
    MADE.append(make(tmp_path_factory.mktemp("row"), argv=("--permission-mode", "ask")))


def test_nothing_of_a_branch_or_folder_steers_the_terminal(tmp_path: Path) -> None:
    git = tmp_path / ".git"
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/\x1b]0;x\x07evil\u202e\n")
    assert "evil" in branch_of(tmp_path)
    shown = row_of(make(tmp_path, argv=()), branch=branch_of(tmp_path))
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "\u202e" not in shown


def test_the_branch(tmp_path: Path) -> None:
    assert branch_of(tmp_path) == ""
    subprocess.run(["git", "init", "-q", "-b", "feature/x"], cwd=tmp_path, check=True)
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert branch_of(inner) == "feature/x"
    (tmp_path / ".git" / "HEAD").write_text("0123456789abcdef\n")
    assert branch_of(inner) == "0123456"
    (inner / ".git").write_text(f"gitdir: {tmp_path / 'trees' / 'x'}\n")
    (tmp_path / "trees" / "x").mkdir(parents=True)
    (tmp_path / "trees" / "x" / "HEAD").write_text("ref: refs/heads/other\n")
    assert branch_of(inner) == "other"


def test_a_pipe_for_a_head_holds_up_nobody(tmp_path: Path) -> None:
    import os

    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git" / "HEAD")
    assert branch_of(tmp_path) == ""


def test_the_facts_follow_the_events(tmp_path: Path) -> None:
    made = make(tmp_path, says("Hello."), argv=())

    async def go() -> int:
        changed: list[int] = []
        facts = Facts(made.session, lambda: changed.append(1))
        made.session.subscribe(facts.listen)
        await made.session.submit("hi")
        await until(lambda: facts.tokens > 0)
        await facts.close()
        await made.session.close()
        return facts.tokens

    assert run(go()) == 110
