"""What is known of the worktrees of agents, while several Marvins look at it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from marvin_core.engine.agents.worktree_records import RecordedWorktree, forget, kept_record, left_records


def test_a_record_is_whole_and_locked_as_soon_as_anybody_sees_it(tmp_path: Path) -> None:
    """Else its worktree would be taken for one that a killed run left, or could not be noted at all."""
    common = tmp_path / ".git"
    place = common / "worktrees" / "t-1"
    place.mkdir(parents=True)
    known = RecordedWorktree(root=str(tmp_path), path="p", branch="marvin/t-1", base="b", into="i", ticket="t-1")
    over = threading.Event()
    seen: list[object] = []

    def look() -> None:
        while not over.is_set():
            seen.extend(left_records(common, tmp_path))

    others = [threading.Thread(target=look) for _ in range(2)]
    for other in others:
        other.start()
    try:
        for _ in range(300):
            lock = kept_record(place, known)
            forget(place)
            os.close(lock)
    finally:
        over.set()
        for other in others:
            other.join()
    assert seen == []
    assert os.listdir(place) == []


def test_what_a_killed_run_left_is_found(tmp_path: Path) -> None:
    place = tmp_path / ".git" / "worktrees" / "t-1"
    place.mkdir(parents=True)
    known = RecordedWorktree(root=str(tmp_path), path="p", branch="marvin/t-1", base="b", into="i", ticket="t-1")
    os.close(kept_record(place, known))
    assert left_records(tmp_path / ".git", tmp_path) == [(known, place)]
