"""`marvin packs new`, from beginning to end: made, built, installed, tested and graded in a fresh environment."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.packs.support_packs import Installed, build_wheels, uv
from tests.support.folders import own_temproot

pytestmark = [
    pytest.mark.xdist_group("packs"),  # on one worker, so that the wheels are built once
    pytest.mark.slow,
    pytest.mark.timeout(600),  # it makes an environment and installs into it
]
CHECKS = (["pytest", "-q", "-p", "no:cacheprovider"], ["mypy"], ["ruff", "check"], ["ruff", "format", "--check"])


def test_a_new_pack_passes_all_of_its_own_checks(tmp_path: Path, wheels: Path) -> None:
    tools = ("mypy", "pytest", "ruff", "hatchling", "editables")
    installed = Installed(tmp_path / "place", [wheels], "marvin-core", *tools)
    made = installed.run("packs", "new", "word-games", PATH="/usr/bin:/bin")
    assert made.returncode == 0, made.stderr
    assert "\n  python -m marvin_core packs check word-games\n" in made.stdout
    project = installed.home / "marvin-word-games"
    build_wheels(project, tmp_path / "dist")
    assert [path.name for path in (tmp_path / "dist").glob("*.whl")] == ["marvin_word_games-0.1.0-py3-none-any.whl"]

    uv("pip", "install", "--quiet", "--python", installed.python, "--no-deps", "--no-build-isolation",
       "--editable", project)  # fmt: skip
    path = f"{installed.python.parent}:/usr/bin:/bin"
    environment = {"HOME": str(installed.home), "PATH": path, **own_temproot(tmp_path)}
    for words in CHECKS:
        done = subprocess.run(
            [installed.python, "-P", "-m", *words],
            cwd=project, env=environment, capture_output=True, text=True, timeout=250, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr

    counted = installed.run("tools", "call", "word_games_count_words", "path=marvin-word-games/README.md")
    assert counted.stdout.strip().endswith("words"), counted.stderr
    said = installed.run(
        "--provider", "offline", "--non-interactive", "--prompt", "count the words of marvin-word-games/README.md"
    )
    assert said.stdout.strip().endswith(counted.stdout.strip()), said.stdout + said.stderr

    graded = installed.run("packs", "check", "word-games", "--json", "--grade", "silver")
    (report,) = json.loads(graded.stdout)
    assert graded.returncode == 0, graded.stdout
    assert report["grade"] == "silver"
    problems = [problem for finding in report["findings"] for problem in finding["problems"]]
    assert problems == ["pyproject.toml has no licence"]  # the choice that is left to its author
    assert installed.run("packs", "new", "word-games").returncode == 2
