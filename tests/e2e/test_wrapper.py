"""`./marvin`, the wrapper that runs the program from the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from marvin_core import __version__
from marvin_core.testing import ModelServer, text
from tests.e2e.support_e2e import Marvin

WRAPPER = Path(__file__).parents[2] / "marvin"


@pytest.fixture
def stamp() -> Path:
    """What set-up leaves when it has run."""
    root = WRAPPER.parent
    path = root / ".venv" / ".marvin-setup"
    inputs = [root / "requirements" / "dev.lock", root / "scripts" / "setup", *root.glob("marvin-*/pyproject.toml")]
    if not path.exists() or any(entry.stat().st_mtime_ns > path.stat().st_mtime_ns for entry in inputs):
        pytest.skip("the set-up of this checkout is not current, and a test must not change it: run scripts/setup")
    return path


@pytest.mark.parametrize("way", ["direct", "symlink", "symlink-to-symlink", "relative", "path"])
def test_it_runs_from_any_folder_without_setting_up_again(unconfigured: Marvin, stamp: Path, way: str) -> None:
    folder = unconfigured.home / "bin"
    folder.mkdir()
    (folder / "marvin").symlink_to(WRAPPER)
    (folder / "second").symlink_to("marvin")
    program = {
        "direct": [str(WRAPPER)],
        "symlink": [str(folder / "marvin")],
        "symlink-to-symlink": [str(folder / "second")],
        "relative": ["../home/bin/marvin"],
        "path": ["sh", "-c", 'exec marvin "$@"', "sh"],
    }[way]
    before = stamp.stat().st_mtime_ns
    path = f"{folder}:{unconfigured.env['PATH']}"
    result = unconfigured.run("--version", program=program, env={"PATH": path})
    assert (result.code, result.out, result.err) == (0, f"marvin {__version__}\n".encode(), b"")
    assert stamp.stat().st_mtime_ns == before


def test_it_passes_arguments_and_streams_on(marvin: Marvin, marvin_model_server: ModelServer, stamp: Path) -> None:
    """Nothing of the caller's Python environment reaches it."""
    (marvin.project / "httpx.py").write_text("raise SystemExit('imported from PYTHONPATH')\n")
    marvin_model_server.script(text("Done."))
    env = {"PYTHONPATH": str(marvin.project), "PYTHONHOME": str(marvin.home)}
    result = marvin.run("--non-interactive", program=[str(WRAPPER)], stdin=b"two  words", env=env)
    assert (result.code, result.text) == (0, "Done.\n")
    assert marvin_model_server.requests[0].body["messages"][-1]["content"] == "two  words"
