"""The wheels of this repository, built once a worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packs.support_packs import ROOT, build_wheels


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheels of the five distributions."""
    folder = tmp_path_factory.mktemp("wheels")
    build_wheels(ROOT, folder, "--all-packages")
    return folder
