"""Fixtures of the tests of the pipeline."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.support_e2e import PROGRAM, Marvin
from tests.support.pipeline import ADDER, PipelineModels
from tests.support.reviews import make_project


@pytest.fixture(scope="session")
def warm_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with the index of what is installed, so that runs need not build it."""
    first = Marvin(tmp_path_factory.mktemp("warm"), None)
    result = first.run("packs", "list", program=PROGRAM)
    assert result.code == 0, result.err.decode()
    return first.home / ".cache" / "marvin"


@pytest.fixture
def models() -> Iterator[PipelineModels]:
    """Agents that build a small program."""
    with PipelineModels(ADDER) as server:
        yield server


@pytest.fixture
def marvin(tmp_path: Path, models: PipelineModels, warm_cache: Path) -> Marvin:
    """Marvin with a model for each role, in an empty project."""
    found = Marvin(tmp_path, models, warm_cache)
    found.env |= {
        "OPENAI_COMPAT_API_KEY": "sk-the-key-itself-0123456789",
        "MARVIN_SANDBOX": "off",
        "MARVIN_MUTATIONS": "0",
    }
    found.env |= {"PATH": f"{Path(sys.executable).parent}:{found.env['PATH']}"}
    found.config("prices: {qwen/qwen3-32b: {input: 1.0, output: 1.0}, qwen/qwen3-14b: {input: 1.0, output: 1.0}}\n")
    return found


@pytest.fixture
def project(marvin: Marvin, models: PipelineModels) -> Path:
    """A repository with a mistake, and agents that find and fix it."""
    return make_project(marvin, models)
