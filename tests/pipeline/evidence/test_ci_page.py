"""The page on CI: its workflows are what the services take, and their commands are those that Marvin has."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from ruamel.yaml import YAML

from marvin_core.config.flags import parse
from marvin_pipeline.settings import PipelineSettings

ROOT = Path(__file__).resolve().parents[3]
CONFIG, WITHOUT, GITHUB, GITLAB = re.findall(
    r"```yaml\n(.*?)```", (ROOT / "docs/how-to/evidence-in-ci.md").read_text(encoding="utf-8"), re.DOTALL
)


def loaded(text: str) -> Any:
    return YAML(typ="safe").load(text)


def commands() -> list[str]:
    """All commands of both services."""
    steps: list[dict[str, str]] = loaded(GITHUB)["jobs"]["build"]["steps"]
    script: list[str] = loaded(GITLAB)["marvin"]["script"]
    return [step["run"] for step in steps if "run" in step] + script


@pytest.mark.slow
@pytest.mark.parametrize(("text", "schema"), [(GITHUB, "vendor.github-workflows"), (GITLAB, "vendor.gitlab-ci")])
def test_the_services_take_them(tmp_path: Path, text: str, schema: str) -> None:
    """By the schemas that the services publish, which check-jsonschema brings."""
    path = tmp_path / "workflow.yml"
    path.write_text(text)
    program = [sys.executable, "-P", "-m", "check_jsonschema", "--builtin-schema", schema, str(path)]
    done = subprocess.run(program, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_flags_are_those_of_marvin() -> None:
    runs = [command for command in commands() if command.startswith("marvin")]
    assert len(runs) == 2
    for run in runs:
        words = shlex.split(run)
        assert words[:3] == ["marvin", "pipeline", "run"]
        assert parse(["--design-first", *words[3:]]).strict is True
    assert parse(["--design-first", *shlex.split(runs[0])[3:]]).github is True


def test_what_is_installed_can_be_installed() -> None:
    extras = {}
    for name in ("marvin-core", "marvin-pipeline"):
        manifest = tomllib.loads((ROOT / name / "pyproject.toml").read_text(encoding="utf-8"))
        extras[name] = set(manifest["project"]["optional-dependencies"])
    named = [re.findall(r"(marvin-\w+)\[([\w,]+)\]", command) for command in commands() if "pip install" in command]
    assert len(named) == 2
    for name, chosen in (one for found in named for one in found):
        assert set(chosen.split(",")) <= extras[name]


def test_the_files_are_those_of_the_report() -> None:
    paths = re.findall(r"\.marvin/report/([\w.]*)", GITHUB + GITLAB)
    assert set(paths) == {"", "findings.sarif", "junit.xml"}


def test_a_prompt_is_no_part_of_a_command() -> None:
    """What somebody types in a form must not be run."""
    for step in loaded(GITHUB)["jobs"]["build"]["steps"]:
        assert "${{" not in step.get("run", "")


def test_the_settings_are_there() -> None:
    for text in (CONFIG, WITHOUT):
        PipelineSettings.model_validate(loaded(text)["packs"]["pipeline"])
    with pytest.raises(ValidationError):
        PipelineSettings.model_validate({"unmeasured": ["everything"]})
