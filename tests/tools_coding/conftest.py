"""Fixtures of the coding pack's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from marvin_core.testing import ToolRunner
from tests.support.github import GitHub, github
from tests.tools_coding.support import Project
from tests.tools_coding.support_github import Desk


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
