"""What packs get for keeping data: one change at a time, whole or not at all."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from marvin_core import MarvinError, in_thread, is_locked, update_file
from marvin_core.api.timeouts import Timeouts
from marvin_core.util.state_files import locked

COUNT = """
import sys
from pathlib import Path
from marvin_core import update_file

for _ in range(50):
    update_file(Path(sys.argv[1]), lambda content: str(int(content or 0) + 1).encode())
"""


def test_no_change_of_another_process_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "count"
    children = [subprocess.Popen([sys.executable, "-P", "-c", COUNT, path]) for _ in range(3)]
    assert [child.wait(50) for child in children] == [0, 0, 0]
    assert path.read_text() == "150"


def test_a_change_that_fails_or_gives_nothing_leaves_the_file(tmp_path: Path) -> None:
    path = tmp_path / "data"
    update_file(path, lambda content: None)
    assert not path.exists()
    path.write_text("old")
    before = path.stat().st_mtime_ns
    update_file(path, lambda content: None)
    with pytest.raises(ZeroDivisionError):
        update_file(path, lambda content: bytes(1 // 0))
    assert path.read_text() == "old"
    assert path.stat().st_mtime_ns == before


def test_a_lock_that_is_held_ends_the_wait_with_an_explanation(tmp_path: Path) -> None:
    path = tmp_path / "data"
    timeouts = Timeouts(lock=0.05)
    with (
        locked(path, timeouts.lock, timeouts.lock_poll),
        pytest.raises(MarvinError, match="is locked by another process"),
    ):
        update_file(path, lambda content: b"new", timeouts)
    assert not path.exists()


def test_work_in_a_thread_gives_its_result_or_its_error() -> None:
    async def go() -> None:
        assert await in_thread(threading.current_thread) is not threading.current_thread()
        with pytest.raises(ValueError, match="no number"):
            await in_thread(lambda: int("no number"))

    asyncio.run(go())


def test_whether_another_process_holds_a_lock_is_told_without_taking_it(tmp_path: Path) -> None:
    led = tmp_path / "led"
    assert not is_locked(led)
    led.symlink_to(tmp_path)
    assert not is_locked(led)
    led.unlink()
    led.touch()
    assert not is_locked(led)
    hold = (
        "import fcntl, sys; file = open(sys.argv[1]); fcntl.flock(file, fcntl.LOCK_EX); print(1, flush=True); input()"
    )
    leader = subprocess.Popen([sys.executable, "-c", hold, str(led)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert leader.stdout is not None
    leader.stdout.readline()
    assert is_locked(led)
    leader.kill()
    leader.communicate()
    assert not is_locked(led)
