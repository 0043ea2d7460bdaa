"""What tools do on the event loop does not grow with the files that they look at: nothing else runs meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from marvin_core.testing import ToolRunner
from marvin_core.testing.environment import start_repository
from tests.support.counting import calls_in_this_thread

_FEW, _MANY = 50, 450
_CALLS_OF_ONE = 30
"""So many calls of functions a file are nothing that is noticed; to look into one takes about two hundred.

A busy machine needs longer, and what waits for a program looks now and then."""
_CASES: list[tuple[str, Mapping[str, Any]]] = [
    ("tree", {}),
    ("run_command", {"command": "for file in new/*; do echo more >> $file; done"}),
    ("git_status", {}),
    ("git_diff", {}),
    ("git_commit", {"message": "New files"}),
    ("git_show", {}),
    ("run_command", {"command": "rm -r new"}),
    ("git_checkout", {"target": "HEAD", "path": "new"}),
    ("apply_patch", {"path": "long.txt", "old_str": "line 7\n", "new_str": "line seven\n"}),
    ("append_file", {"path": "long.txt", "content": "x\n"}),
    ("git_blame", {"path": "long.txt"}),
]


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Mapping[int, list[int]]:
    """How many functions each of the calls had the event loop's thread run, in a small folder and in a large one."""
    _counted(tmp_path_factory.mktemp("folder"), 2)  # from now on all is imported
    return {files: _counted(tmp_path_factory.mktemp("folder"), files) for files in (_FEW, _MANY)}


def _counted(folder: Path, files: int) -> list[int]:
    home, work = folder / "home", folder / "work"
    (work / "new").mkdir(parents=True)
    home.mkdir()
    start_repository(work)
    for number in range(files):
        (work / "new" / f"{number}.txt").write_text(f"line {number}\n")
    (work / "long.txt").write_text("".join(f"line {number}\n" for number in range(10 * files)))
    with ToolRunner(home, work, mode="coding", answers=["yes"] * 10, timeouts={"tool": 60.0}) as runner:
        return [_calls(runner, tool, arguments) for tool, arguments in _CASES]


def _calls(runner: ToolRunner, tool: str, arguments: Mapping[str, Any]) -> int:
    return calls_in_this_thread(lambda: runner.call(tool, **arguments), "marvin_")


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(_CASES)), ids=[tool for tool, _ in _CASES])
def test_the_event_loop_does_nothing_for_each_file(counted: Mapping[int, list[int]], number: int) -> None:
    """What is done for each file is done in a thread, or by another program."""
    few, many = (counted[files][number] for files in (_FEW, _MANY))
    assert many - few < _CALLS_OF_ONE * (_MANY - _FEW)
