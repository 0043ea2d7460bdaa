"""Fixtures of the end-to-end tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from marvin_core.testing import ModelServer
from tests.e2e.support_e2e import Marvin


@pytest.fixture(scope="session")
def warm_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with the index of what is installed, so that runs need not build it."""
    first = Marvin(tmp_path_factory.mktemp("warm"), None)
    result = first.run("packs", "list")
    assert result.code == 0, result.err.decode()
    return first.home / ".cache" / "marvin"


@pytest.fixture
def marvin(tmp_path: Path, marvin_model_server: ModelServer, warm_cache: Path) -> Marvin:
    """Marvin with a model behind it, in an empty project."""
    return Marvin(tmp_path, marvin_model_server, warm_cache)


@pytest.fixture
def unconfigured(tmp_path: Path, warm_cache: Path) -> Marvin:
    """Marvin without any provider, in an empty project."""
    return Marvin(tmp_path / "unconfigured", None, warm_cache)
