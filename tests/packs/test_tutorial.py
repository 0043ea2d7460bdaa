"""The path of a new user: the tutorial's commands, typed as written, in a fresh environment from built wheels."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packs.support_packs import ROOT, collect_wheels, constraints, uv_environment
from tests.support.folders import own_temproot

PAGE = ROOT / "docs" / "tutorial" / "your-first-pack.md"
EXAMPLE = ROOT / "docs" / "examples" / "marvin_dice"

pytestmark = pytest.mark.xdist_group("packs")  # on one worker, so that the wheels are built once


def test_the_files_of_the_tutorial_are_the_tested_ones() -> None:
    shown = dict(re.findall(r'```\w+ title="(.+?)"\n(.*?)```', PAGE.read_text(), re.DOTALL))
    assert shown == {path.name: path.read_text() for path in EXAMPLE.iterdir() if path.is_file()}


@pytest.mark.slow
@pytest.mark.timeout(600)  # it makes an environment and installs into it with pip
def test_the_tutorial_works_as_it_is_written(tmp_path: Path, wheels: Path) -> None:
    page = PAGE.read_text()
    commands = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    listed = re.search(r"```text\n(.*?)```", page, re.DOTALL)
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "python3").symlink_to(Path(sys.executable).resolve())
    # Hatchling asks for editables when it builds for `--editable`.
    collect_wheels(tmp_path, wheels, "marvin-core", "pytest", "hatchling", "editables")
    environment = {
        **uv_environment(),
        "HOME": str(tmp_path),
        "PATH": f"{bin_folder}:/usr/bin:/bin",
        "PIP_FIND_LINKS": str(tmp_path),
        "PIP_NO_INDEX": "1",
        "PIP_CONSTRAINT": str(constraints(tmp_path)),
        "PIP_COMPILE": "0",
        **own_temproot(tmp_path),
    }
    # One shell for all of it, as at a terminal; the files are written where the page shows them.
    copying = f"cp {EXAMPLE}/*.* .\n"
    script = commands[0] + copying + "".join(f"echo '### {number}'\n{text}" for number, text in enumerate(commands[1:]))
    done = subprocess.run(
        ["bash", "-euc", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=550
    )
    assert done.returncode == 0, done.stdout + done.stderr
    tried, tested, _ = done.stdout.split("### ")[1:]
    assert listed is not None
    assert listed[1] in tried
    assert re.search(r"^\d+, \d+$", tried, re.MULTILINE)
    assert "3 passed" in tested
    assert list((tmp_path / "marvin-dice" / "dist").glob("marvin_dice-1.0-*.whl"))
    shutil.rmtree(tmp_path / "marvin-dice" / ".venv")
