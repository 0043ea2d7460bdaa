"""The ways to install packs that docs/how-to/install-packs.md shows, as far as the tools for them are here."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.packs.support_packs import ROOT, UV, build_wheels, constraints, uv_environment

PAGE = ROOT / "docs" / "how-to" / "install-packs.md"
DICE = ROOT / "docs" / "examples" / "marvin_dice"

pytestmark = [
    pytest.mark.xdist_group("packs"),  # on one worker, so that the wheels are built once
    pytest.mark.slow,
    pytest.mark.timeout(400),  # it makes an environment and installs into it
]


def test_uv_keeps_marvin_with_a_pack(tmp_path: Path, wheels: Path) -> None:
    (install, *_) = re.findall(r"^uv tool install .*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    build_wheels(DICE, tmp_path / "dice")
    # Where the wheels are, until there is a release; and the versions of the lock, as everywhere.
    where: list[str | Path] = ["--find-links", wheels, "--find-links", tmp_path / "dice"]
    where += ["--constraints", constraints(tmp_path)]
    tools = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    environment = {**uv_environment(), **tools, "HOME": str(tmp_path)}
    done = subprocess.run(
        [UV, *shlex.split(install)[1:], *where],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    listed = subprocess.run(
        [tmp_path / "bin" / "marvin", "packs", "list"],
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert listed.returncode == 0, listed.stderr
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["core", "dice", "coding"]
