"""Fixtures of the coding pack's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools_coding.support import Project


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
