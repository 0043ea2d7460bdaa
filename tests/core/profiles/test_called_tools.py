"""How often a profile's models called each tool: counted for those who called, bounded, and never in the way."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from marvin_core.api.events import CallOrigin, ToolExecutionEnd
from marvin_core.api.timeouts import Timeouts
from marvin_core.profiles.called_tools import CalledTools
from tests.support.engine import run

TIMEOUTS = Timeouts(lock=30.0, lock_poll=0.002)


def called(name: str, *, origin: CallOrigin = "model", is_error: bool = False) -> ToolExecutionEnd:
    return ToolExecutionEnd(call_id="c", name=name, text="", is_error=is_error, elapsed=0.0, origin=origin)


def of(folder: Path) -> CalledTools:
    return CalledTools(lambda: folder, TIMEOUTS)


def kept(folder: Path) -> dict[str, int]:
    counts: dict[str, int] = json.loads((folder / "tool_calls.json").read_text())
    return counts


def test_calls_of_models_that_did_their_work_are_counted(tmp_path: Path) -> None:
    counter = of(tmp_path)
    for event in (called("a"), called("a"), called("b", origin="person"), called("c", is_error=True)):
        counter.listen(event)
    run(counter.flush())
    assert kept(tmp_path) == {"a": 2}
    assert of(tmp_path).counts() == {"a": 2}


def test_a_call_counts_for_the_profile_that_was_active_when_it_was_made(tmp_path: Path) -> None:
    folders = [tmp_path / "one"]
    counter = CalledTools(lambda: folders[-1], TIMEOUTS)
    counter.listen(called("a"))
    folders.append(tmp_path / "two")
    counter.listen(called("b"))
    run(counter.flush())
    assert (kept(tmp_path / "one"), kept(tmp_path / "two")) == ({"a": 1}, {"b": 1})


@pytest.mark.slow
def test_the_file_stays_small_and_what_is_new_outweighs_what_is_old(tmp_path: Path) -> None:
    for number in range(300):
        counter = of(tmp_path)
        for _ in range(30):
            counter.listen(called(f"tool_{number}"))
        run(counter.flush())
    counts = kept(tmp_path)
    assert len(counts) <= 200
    assert sum(counts.values()) <= 2_000
    assert counts["tool_299"] == 30
    assert "tool_0" not in counts
    assert (tmp_path / "tool_calls.json").stat().st_size < 20_000


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"a": -3, "b": true, "c": "2", "d": null, "e": 1.5}',
        json.dumps({"a b": 3, "x" * 65: 3, "": 3, "\x1b[2J": 3}),
        "x" * 300_000,
        json.dumps({f"tool_{number}": 1 for number in range(20_000)}),
        "[" * 100_000,
    ],
)
def test_what_is_no_count_is_none_and_does_not_stay(tmp_path: Path, text: str) -> None:
    (tmp_path / "tool_calls.json").write_text(text)
    counter = of(tmp_path)
    assert counter.counts() == {}
    counter.listen(called("good"))
    run(counter.flush())
    assert kept(tmp_path) == {"good": 1}


def test_counts_of_any_size_are_brought_down(tmp_path: Path) -> None:
    (tmp_path / "tool_calls.json").write_text(json.dumps({"a": 10**300, "b": 10**9}))
    counter = of(tmp_path)
    counter.listen(called("c"))
    run(counter.flush())
    assert sum(kept(tmp_path).values()) <= 2_000


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_no_file_holds_nobody_up(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "tool_calls.json"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    counter = of(tmp_path)
    assert counter.counts() == {}
    counter.listen(called("a"))
    run(counter.flush(), limit=20.0)


def test_what_cannot_be_kept_now_is_kept_later(tmp_path: Path) -> None:
    folder = tmp_path / "profile"
    folder.write_text("in the way")
    counter = of(folder)
    counter.listen(called("a"))
    run(counter.flush())
    folder.unlink()
    counter.listen(called("a"))
    run(counter.flush())
    assert kept(folder) == {"a": 2}


def test_no_count_of_several_at_once_is_lost(tmp_path: Path) -> None:
    def work() -> None:
        for _ in range(10):
            counter = of(tmp_path)
            counter.listen(called("a"))
            run(counter.flush())

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kept(tmp_path) == {"a": 60}
