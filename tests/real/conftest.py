"""Fixtures of the tests against real programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.support_e2e import Marvin
from tests.real.aimock import Aimock
from tests.real.components import LLMOCK, PYTHON, free_port, required, serving


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with the index of what is installed, so that runs need not build it."""
    first = Marvin(tmp_path_factory.mktemp("index"), None)
    result = first.run("providers", "list", "--no-check")
    assert result.code == 0, result.err.decode()
    return first.home / ".cache" / "marvin"


@pytest.fixture
def marvin(tmp_path: Path, index: Path) -> Marvin:
    """Marvin in a project with one file, with no model service yet."""
    marvin = Marvin(tmp_path / "run", None, index)
    (marvin.project / "notes.txt").write_text("The code word is heron.\n")
    return marvin


@pytest.fixture(scope="session")
def aimock_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aimock]:
    """The emulator of model services."""
    required(LLMOCK)
    folder, port = tmp_path_factory.mktemp("aimock"), free_port()
    (folder / "none.json").write_text('{"fixtures": []}')
    command = (LLMOCK, "-h", "127.0.0.1", "-p", str(port), "-f", folder / "none.json", "--log-level", "warn")
    url = f"http://127.0.0.1:{port}"
    with serving(command, folder / "log", f"{url}/health"):
        yield Aimock(url)


@pytest.fixture
def aimock(aimock_server: Aimock) -> Aimock:
    """The emulator as it was at its start: no answers, no faults, nothing in its journal."""
    aimock_server.reset()
    return aimock_server


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a llama.cpp server with a small model."""
    script = Path(__file__).with_name("llama_server.py")
    required(PYTHON)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with serving((PYTHON, script, str(port)), tmp_path_factory.mktemp("llama") / "log", f"{url}/health"):
        yield url
