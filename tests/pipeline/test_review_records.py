"""What is kept of reviews: whole whatever is in the files, and true of processes that were killed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from marvin_core import Timeouts
from marvin_pipeline.jobs.records import ReviewJob, ReviewJobs, ReviewOrder
from marvin_pipeline.jobs.texts import job_text, jobs_text, last_line


def job(number: int, folder: Path, **fields: object) -> ReviewJob:
    """A job of a folder."""
    order = ReviewOrder(
        id=f"review-{number}", folder=str(folder), tree=str(folder / "t"), branch=f"review/{number}", base="0" * 40
    )
    return ReviewJob(order=order, begun=float(number)).replace(**fields)


def jobs_in(folder: Path, *living: str) -> ReviewJobs:
    """Those kept in a folder, of which some live."""
    return ReviewJobs(folder, lambda name: name in living, Timeouts())


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    async def work() -> None:
        jobs, root = jobs_in(tmp_path / "state", "review-2"), tmp_path / "project"
        done = job(1, root, state="passed", carried=("low: a word",), cost=0.5, commits=2)
        await jobs.add(done)
        await jobs.add(job(2, root / "below"))
        await jobs.add(job(3, tmp_path / "projects"))
        assert await jobs.get("review-1") == done
        assert [one.order.id for one in await jobs.of_folder(root)] == ["review-1", "review-2"]
        assert await jobs.get("review-4") is None

    asyncio.run(work())


def test_one_whose_process_is_gone_has_died_unless_it_said_how_it_ended(tmp_path: Path) -> None:
    async def work() -> None:
        jobs = jobs_in(tmp_path, "review-1")
        for one in (job(1, tmp_path), job(2, tmp_path), job(3, tmp_path, state="stopped")):
            await jobs.add(one)
        assert [one.state for one in await jobs.of_folder(tmp_path)] == ["running", "died", "stopped"]

    asyncio.run(work())


def test_one_that_ends_while_it_is_looked_at_has_not_died(tmp_path: Path) -> None:
    """Its last words are written before its process is gone."""
    path = tmp_path / "reviews" / "review-1" / "job.json"

    def ends(job_id: str) -> bool:
        path.write_text(path.read_text().replace('"running"', '"passed"'))
        return False

    async def work() -> None:
        await jobs_in(tmp_path).add(job(1, tmp_path))
        found = await ReviewJobs(tmp_path, ends, Timeouts()).get("review-1")
        assert found is not None
        assert found.state == "passed"

    asyncio.run(work())


@pytest.mark.slow
def test_a_thousand_of_them_are_listed_at_once(tmp_path: Path) -> None:
    """Those that have ended are not asked whether they live."""
    asked: list[str] = []

    def lives(name: str) -> bool:
        asked.append(name)
        return False

    async def work() -> None:
        jobs = ReviewJobs(tmp_path, lives, Timeouts())
        await jobs.add(job(0, tmp_path, state="passed"))
        text = (tmp_path / "reviews" / "review-0" / "job.json").read_text()
        for number in range(1, 1000):
            path = tmp_path / "reviews" / f"review-{number}" / "job.json"
            path.parent.mkdir()
            path.write_text(text.replace("review-0", f"review-{number}"))
        assert len(await jobs.of_folder(tmp_path)) == 1000

    asyncio.run(work())
    assert asked == []


@pytest.mark.parametrize("name", ["../review-1", "", ".", "review-9", "other-1", "review-1/../review-1", "review-1\n"])
def test_other_names_lead_nowhere(tmp_path: Path, name: str) -> None:
    async def work() -> None:
        jobs = jobs_in(tmp_path)
        await jobs.add(job(1, tmp_path))
        assert await jobs.get(name) is None

    asyncio.run(work())


_ODD: tuple[object, ...] = (None, [1], {}, "x", 2.5)
_KEPT = job(1, Path("/p"), blocking=("high: it is wrong",)).as_dict()
_KEPT["order"] = _KEPT["order"].as_dict()
_DAMAGED = [
    json.dumps({**_KEPT, name: value})
    for name in (*_KEPT, "more")
    for value in _ODD
    if not (name in ("begun", "seconds", "cost") and value in (None, 2.5))
    and not (name == "reason" and value == "x")
    and not (name in ("blocking", "carried") and value in ({}, "x"))
] + [json.dumps({**_KEPT, "begun": None}), json.dumps({**_KEPT, "order": {**_KEPT["order"], "folder": 1}})]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"order": 1}', '{"order": {"id": 1}, "state": "x"}', *dict.fromkeys(_DAMAGED)]
)
def test_a_damaged_record_is_passed_over(tmp_path: Path, text: str) -> None:
    async def work() -> None:
        jobs = jobs_in(tmp_path)
        await jobs.add(job(1, tmp_path))
        (tmp_path / "reviews" / "review-1" / "job.json").write_text(text)
        assert await jobs.of_folder(tmp_path) == []
        assert await jobs.get("review-1") is None

    asyncio.run(work())


def test_many_changes_at_once_are_all_kept_whole(tmp_path: Path) -> None:
    async def work() -> None:
        jobs = jobs_in(tmp_path, "review-1")
        await jobs.add(job(1, tmp_path))

        def more(before: ReviewJob | None) -> ReviewJob:
            assert before is not None
            return before.replace(round=before.round + 1)

        await asyncio.gather(*(jobs.change("review-1", more) for _ in range(20)))
        after = await jobs.get("review-1")
        assert after is not None
        assert after.round == 20

    asyncio.run(work())


def test_what_is_told_is_bounded_and_says_what_to_do(tmp_path: Path) -> None:
    many = tuple(f"high: finding {number}" for number in range(100))
    told = job_text(job(1, tmp_path, state="failed", blocking=many, commits=3), report="/r")
    assert "and 70 more" in told
    assert "git merge review/1" in told
    assert "/jobs stop review-1" in job_text(job(1, tmp_path), news="round 2")
    for state in ("died", "stopped", "budget", "failed"):
        ended = job(1, tmp_path, state=state)
        assert "--resume" not in job_text(ended), "there is nothing to go on with"
    (tmp_path / "t").mkdir()
    for state in ("died", "stopped", "budget", "failed"):
        ended = job(1, tmp_path, state=state)
        assert f"Its work so far is in {tmp_path}/t" in job_text(ended)
        assert "marvin pipeline review --resume review-1" in job_text(ended)
    assert "--resume" not in job_text(job(1, tmp_path, state="passed"))
    assert jobs_text([]).startswith("There are no review jobs")
    assert "[10 older ones were left out.]" in jobs_text([job(number, tmp_path) for number in range(40)])


def test_the_news_of_a_job_are_one_line_without_what_a_terminal_obeys() -> None:
    assert last_line(b"marvin: one\nmarvin: review: \x1b[31mround 2\x1b[0m\x07\n") == "review: round 2"
    assert last_line(b"") == ""
    assert len(last_line(b"x" * 10_000)) <= 301
