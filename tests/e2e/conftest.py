"""Fixtures of the end-to-end tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from marvin_core.testing import ModelServer
from tests.e2e.support_e2e import PROGRAM, Marvin
from tests.e2e.support_terminal import Open, opening
from tests.support.agents import AgentModels


@pytest.fixture(scope="session")
def warm_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with the index of what is installed, so that runs need not build it."""
    return cache_of_first_start(tmp_path_factory.mktemp("warm"), PROGRAM)


@pytest.fixture(scope="session")
def warm_cache_of_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for the program that installing makes: Python looks for its modules in one folder more."""
    return cache_of_first_start(tmp_path_factory.mktemp("script"), [str(Path(sys.executable).with_name("marvin"))])


def cache_of_first_start(folder: Path, program: Sequence[str]) -> Path:
    first = Marvin(folder, None)
    result = first.run("packs", "list", program=program)
    assert result.code == 0, result.err.decode()
    return first.home / ".cache" / "marvin"


@pytest.fixture
def marvin(tmp_path: Path, marvin_model_server: ModelServer, warm_cache: Path) -> Marvin:
    """Marvin with a model behind it, in an empty project."""
    return Marvin(tmp_path, marvin_model_server, warm_cache)


@pytest.fixture
def chat(marvin: Marvin) -> Iterator[Open]:
    """Opens chats on terminals of their own."""
    yield from opening(marvin)


@pytest.fixture
def unconfigured(tmp_path: Path, warm_cache: Path) -> Marvin:
    """Marvin without any provider, in an empty project."""
    return Marvin(tmp_path / "unconfigured", None, warm_cache)


@pytest.fixture
def models() -> Iterator[AgentModels]:
    """A model for each agent."""
    with AgentModels() as server:
        yield server
