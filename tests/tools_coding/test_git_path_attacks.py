"""git tools in the sandbox, while another process swaps a folder of the project for a link that leads outside.

git goes by names, so that the link can lead it there; the sandbox keeps what is there as it is.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from marvin_core import Tool, ToolError
from marvin_core.engine.calls.processes import CallProcesses
from marvin_core.engine.calls.timer import CallTimer
from marvin_core.guard.processes.runner import ProcessRunner
from marvin_tools_coding.git.committing import git_commit
from marvin_tools_coding.git.switching import git_checkout
from tests.support.sandboxes import Place, in_sandbox
from tests.support.swapping import swapped

from .support_shell import Folder

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="two names change places in one step on Linux only"),
    pytest.mark.slow,
]
CALLS: dict[str, tuple[Tool, dict[str, object]]] = {
    "restored": (git_checkout, {"target": "HEAD", "path": "area"}),
    "file": (git_checkout, {"target": "other", "path": "area/inner/data.txt"}),
    "switched": (git_checkout, {"target": "-"}),
    "committed": (git_commit, {"message": "All of it"}),
}


def content(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in sorted(folder.rglob("*")) if file.is_file()}


def prepared(root: Path) -> Path:
    """A repository with two branches, and a folder beside it that looks like one of its own."""
    outside = root.parent / "outside"
    (root / "area" / "inner").mkdir(parents=True)
    script = "git init -qb main . && git config user.name T && git config user.email t@example.org && git add area "
    script += "&& git commit -qm first && git switch -qc other && echo other > area/inner/data.txt "
    script += "&& git commit -qam second && git switch -q main && git config advice.detachedHead false"
    (root / "area" / "inner" / "data.txt").write_text("inside\n")
    subprocess.run(["sh", "-ec", script], cwd=root, check=True, timeout=60)
    shutil.copytree(root / "area", outside)
    (outside / "inner" / "data.txt").write_text("outside\n")
    (root / "link").symlink_to("../outside")
    return outside


@pytest.mark.parametrize("name", CALLS)
def test_what_is_outside_stays_as_it_is(tmp_path: Path, name: str) -> None:
    """I4."""
    called, arguments = CALLS[name]
    root = tmp_path / "home" / "project"
    outside = prepared(root)
    before = content(outside)

    async def work(place: Place) -> None:
        folder = Folder(place.root)
        folder.processes = cast("ProcessRunner", CallProcesses(place.runner, CallTimer(500), outside=False))
        await folder.called(called, **arguments)
        with swapped(place.root / "area", place.root / "link", may_be_missing=True):
            for number in range(20):
                changed = {"message": f"Number {number}"} if name == "committed" else {}
                try:
                    await folder.called(called, **{**arguments, **changed})
                except ToolError:
                    continue

    in_sandbox(tmp_path, work, root=root)
    assert content(outside) == before
