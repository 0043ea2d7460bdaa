"""What counts as a document, and what only stands in its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_pipeline.documents.checks import LEAST, why_no_document
from marvin_pipeline.progress import Progress, forget
from marvin_pipeline.run.files import ProjectFiles
from marvin_pipeline.state import PHASES, PipelineState
from tests.support.examples import examples

ENOUGH = b"word " * 200


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (ENOUGH + b".", ""),
        (b"x" * LEAST, ""),
        (None, "no file"),
        (b"", "0 bytes"),
        (b"My plan.", "8 bytes"),
        (b"x" * (LEAST - 1), "999 bytes"),
        (b" \n" * LEAST, "0 bytes"),
        (ENOUGH + b"\0.", "not text"),
        (ENOUGH + b"\xff" + ENOUGH, "not UTF-8"),
        (ENOUGH + "…".encode()[:2], ""),
    ],
)
def test_what_a_document_is(data: bytes | None, why: str) -> None:
    """I12"""
    assert why in why_no_document(data)
    assert bool(why) == bool(why_no_document(data))


@given(data=st.binary(max_size=3_000))
@examples(60)
def test_any_bytes_are_judged(data: bytes) -> None:
    assert why_no_document(data) or len(data) >= LEAST


def test_notes_that_were_cut_off_are_not_there(tmp_path: Path) -> None:
    """A kill in the middle of a line takes that line, and no other one."""
    files = ProjectFiles(tmp_path)
    progress = Progress(files, "1b_review", "design")
    assert progress.read() == []
    progress.note(one=1)
    path = tmp_path / ".marvin" / "logs" / "progress" / "1b_review-design.jsonl"
    path.write_bytes(path.read_bytes() + b'{"two": {"x": ')
    progress.note(three=3)
    path.write_bytes(path.read_bytes() + b"[]\n\xff\xfe\n" + b"[" * 100_000 + b"\n" + b"9" * 10_000 + b"\n")
    progress.note(four="é\n")
    assert progress.read() == [{"one": 1}, {"three": 3}, {"four": "é\n"}]


def test_going_back_forgets_what_is_done_of_that_phase_and_of_later_ones(tmp_path: Path) -> None:
    files = ProjectFiles(tmp_path)
    for phase in PHASES:
        progress = Progress(files, phase, "design")
        progress.note(phase=phase)
        progress.keep(b"before")
    PipelineState(tmp_path).restart_from("1b_review")
    kept = [phase for phase in PHASES if Progress(files, phase, "design").read()]
    assert kept == ["1a", "1a_review", "1b"]
    assert [phase for phase in PHASES if Progress(files, phase, "design").kept()] == kept
    forget(files, PHASES)
    assert not any((tmp_path / ".marvin" / "logs" / "progress").iterdir())


def test_links_in_the_way_of_notes_are_not_followed(tmp_path: Path) -> None:
    """A repository may bring them."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "project" / ".marvin" / "logs").mkdir(parents=True)
    (tmp_path / "project" / ".marvin" / "logs" / "progress").symlink_to(elsewhere)
    progress = Progress(ProjectFiles(tmp_path / "project"), "1a", "spec")
    with pytest.raises(Exception, match="cannot be written"):
        progress.note(one=1)
    assert not list(elsewhere.iterdir())
