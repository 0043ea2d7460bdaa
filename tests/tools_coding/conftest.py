"""Fixtures of the coding pack's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from marvin_core.testing import ToolRunner
from tests.support.github import GitHub, github
from tests.tools_coding.support import Project
from tests.tools_coding.support_github import Desk
from tests.tools_coding.support_hooks import AUTHOR
from tests.tools_coding.support_shell import Folder


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An empty folder that is no git repository."""
    return Project(tmp_path / "project")


@pytest.fixture
def repository(tmp_path: Path) -> Project:
    """An empty git repository."""
    made = Project(tmp_path / "repository")
    made.git("init", "--quiet")
    return made


@pytest.fixture
def repo(tmp_path: Path) -> Folder:
    """A repository with one commit of two files."""
    root = tmp_path / "project"
    root.mkdir()
    folder = Folder(root, **AUTHOR)
    folder.sh("git init -qb main; echo one > a.txt; echo b > b.txt; git add .; git commit -qm first")
    return folder


@pytest.fixture
def hub() -> Iterator[GitHub]:
    """GitHub on this machine, with nothing in it."""
    with github() as served:
        yield served


@pytest.fixture
def desk(hub: GitHub, marvin_home: Path, marvin_workdir: Path) -> Iterator[Desk]:
    """A session that is logged in to it."""
    hub.furnish(marvin_home)
    with ToolRunner(marvin_home, marvin_workdir) as runner:
        yield Desk(hub, runner)
