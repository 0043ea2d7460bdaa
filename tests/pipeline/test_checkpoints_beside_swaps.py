"""Checkpoints, while another process swaps a folder of the project for a link that leads outside.

git goes by names, so that the link can lead it there. What lies there is not committed, not stored and not shown.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from marvin_core import Timeouts, open_without_links
from marvin_core.guard.processes.runner import ProcessRunner
from marvin_pipeline.run.checkpoints import Checkpoints
from marvin_pipeline.run.git.project_git import GitFault
from tests.support.folders import Folders
from tests.support.swapping import lasting, swapped

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="two names change places in one step on Linux only"),
    pytest.mark.slow,
]
SECONDS = 6
NAMES = ("data.txt", "more.txt", "new.txt")


def git(root: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, timeout=60).stdout


@pytest.fixture(params=["", "part"], ids=["whole", "part"])
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A repository, or a folder in one, with a link to a folder beside it, which has the same names and secrets."""
    part: str = request.param
    root, outside = tmp_path / "top" / part, tmp_path / "top" / "outside"
    (root / "area" / "inner").mkdir(parents=True)
    git(tmp_path, "init", "-q", "-b", "main", str(tmp_path / "top"))
    (tmp_path / "top" / ".git" / "info" / "exclude").write_text("/outside\nsecret-name.txt\n")
    (outside / "inner").mkdir(parents=True)
    for name in NAMES:
        (outside / "inner" / name).write_text("SECRET\n" * 50)
        (root / "area" / "inner" / name).write_text("inside\n")
    for name in ("secret-name.txt", "secret-name-too.txt"):
        (outside / "inner" / name).write_text("SECRET\n")
    (root / "area" / "inner" / "new.txt").unlink()
    git(root, "config", "user.name", "Ada")
    git(root, "config", "user.email", "ada@example.com")
    git(root, "add", "area")
    git(root, "commit", "-qm", "Begin")
    (root / "link").symlink_to(outside)
    return root


def change(root: Path, number: int) -> None:
    """Give files of the project other content, under the name that their folder has right now."""
    for folder in ("area", "link"):
        for name in NAMES:
            with suppress(OSError), open_without_links(root, f"{folder}/inner/{name}"):
                descriptor = os.open(root / folder / "inner" / name, os.O_RDWR)
                with open(descriptor, "r+") as file:
                    if "SECRET" not in file.read():
                        file.write(f"{number}\n")


def said_beside_swaps(
    root: Path, look: Callable[[Checkpoints, int], Awaitable[str]], is_sought: Callable[[str], bool]
) -> list[str]:
    """What numbered looks say, with their errors, while another process swaps the folder for the link.

    One of them at least is what is sought, or there was none in a minute.
    """
    said: list[str] = []

    async def work() -> None:
        environment = {"PATH": os.environ["PATH"], "HOME": str(root.parent)}
        runner = ProcessRunner(Folders(root=root, base=root), environment, Timeouts())
        try:
            with swapped(root / "area", root / "link"):
                for number in lasting(SECONDS, lambda: any(map(is_sought, said))):
                    try:
                        said.append(await look(Checkpoints(root, runner, 60), number))
                    except GitFault as error:
                        said.append(str(error))
        finally:
            await runner.close()

    asyncio.run(work())
    return said


def has_change(output: str) -> bool:
    """Whether a diff shows a line that the test has written."""
    return re.search(r"^\+(inside.*|\d+)$", output, re.IGNORECASE | re.MULTILINE) is not None


def is_told(output: str) -> bool:
    return "SECRET" in output or "secret-name" in output


def everything_stored(root: Path) -> str:
    """All objects of a repository, those that no commit has included, and what is staged."""
    objects = git(root, "cat-file", "--batch-all-objects", "--batch")
    return (objects + git(root, "ls-files", "-s")).decode("utf-8", "replace")


def test_what_is_outside_is_not_shown(project: Path) -> None:
    """I4."""
    begun = git(project, "rev-parse", "HEAD").decode().strip()
    (project / "area" / "inner" / "data.txt").write_text("inside changed\n")

    async def look(checkpoints: Checkpoints, number: int) -> str:
        if number % 2:
            await checkpoints.checkpoint(f"Number {number}")
        lines = await checkpoints.new_lines(begun, "area/inner/data.txt")
        assert len(lines) <= 1
        named = [*await checkpoints.changed_since(begun), *await checkpoints.commits.overlooked()]
        return "\n".join((await checkpoints.diff_since(begun), *named))

    said = said_beside_swaps(project, look, has_change)
    assert any(map(has_change, said))
    assert not any(map(is_told, said))


@pytest.mark.parametrize("clean", ["", "tr a-z A-Z"], ids=["plain", "filtered"])
def test_what_is_outside_is_not_committed(project: Path, clean: str) -> None:
    """I4. It is not even stored."""
    if clean:
        git(project, "config", "filter.up.clean", clean)
        (project / "area" / ".gitattributes").write_text("*.txt filter=up\n")

    async def work(checkpoints: Checkpoints, number: int) -> str:
        change(project, number)
        before = await checkpoints.newest()
        await checkpoints.checkpoint(f"Number {number}")
        return await checkpoints.diff_since(before)

    said = said_beside_swaps(project, work, has_change)
    assert any(map(has_change, said))
    assert not any(map(is_told, said))
    assert not is_told(everything_stored(project))
