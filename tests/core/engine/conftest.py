"""Fixtures of the engine's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.undoing import Commands


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Commands]:
    """Commands in a project, which are undone."""
    made = Commands(tmp_path)
    yield made
    made.runner.close()
