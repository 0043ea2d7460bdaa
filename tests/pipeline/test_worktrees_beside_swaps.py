"""The worktree of a review is removed while another process swaps a folder in it for a link that leads outside."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from marvin_core import Timeouts
from marvin_core.guard.processes.runner import ProcessRunner
from marvin_core.testing.environment import start_repository
from marvin_pipeline.jobs.places import Place
from tests.support.folders import Folders
from tests.support.swapping import lasting, swapped

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="two names change places in one step on Linux only"),
    pytest.mark.slow,
]
SECONDS = 8
FILES = 300


def test_what_is_outside_is_not_deleted(tmp_path: Path) -> None:
    """I4."""
    project, outside = tmp_path / "project", tmp_path / "outside"
    for folder in (project, outside):
        folder.mkdir()
    start_repository(project)
    for number in range(FILES):
        (outside / f"{number}.txt").write_text("valuable")
    removed: list[bool] = []

    async def work() -> None:
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
        runner = ProcessRunner(Folders(root=project, base=project), environment, Timeouts())
        place = Place(project, runner, 60)
        try:
            for _ in lasting(SECONDS, lambda: any(removed)):
                order = await place.open(await place.base(), "", "", 1)
                tree = Path(order.tree)
                (tree / "build").mkdir()
                for number in range(FILES):
                    (tree / "build" / f"{number}.txt").touch()
                (tree / "link").symlink_to(outside)
                with swapped(tree / "build", tree / "link", may_be_missing=True):
                    await place.remove(order, with_branch=True)
                removed.append(order.id not in os.listdir(tree.parent))
        finally:
            await runner.close()

    asyncio.run(work())
    assert any(removed)
    assert len(os.listdir(outside)) == FILES
