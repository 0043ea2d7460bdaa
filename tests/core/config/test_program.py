"""The command that hints name: one that works where it is typed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from marvin_core.config.program import command_of

PYTHON = "env/bin/python"
MODULE = [PYTHON, "-P", "-m", "marvin_core", "doctor"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkout with a wrapper, and an environment with the program and an interpreter."""
    (tmp_path / "env").mkdir()
    for name in ("marvin", "env/marvin", "env/python"):
        path = tmp_path / name
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "marvin").symlink_to(tmp_path / "marvin")
    return tmp_path


def test_the_program_that_a_shell_finds(folder: Path) -> None:
    program = str(folder / "env" / "marvin")
    assert command_of([str(folder / "env" / "python"), program], program, program) == "marvin"


def test_a_program_that_no_shell_finds_is_named_with_its_path(folder: Path) -> None:
    program = str(folder / "env" / "marvin")
    for found in (None, str(folder / "marvin")):
        assert command_of([str(folder / "env" / "python"), program], program, found) == program


@pytest.mark.parametrize("found", [True, False])
def test_the_wrapper_of_a_checkout(folder: Path, monkeypatch: pytest.MonkeyPatch, found: bool) -> None:
    monkeypatch.chdir(folder)
    started = [str(folder / "env" / "python"), "-P", "-X", "marvin=./marvin", "-m", "marvin_core"]
    named = command_of(started, "x/__main__.py", str(folder / "linked" / "marvin") if found else None)
    assert named == ("marvin" if found else "./marvin")


def test_a_wrapper_in_a_folder_with_spaces_is_quoted(folder: Path) -> None:
    assert command_of([PYTHON, "-X", "marvin=/my code/marvin", "-m", "marvin_core"], "x", None) == "'/my code/marvin'"


def test_the_module(folder: Path) -> None:
    assert command_of(MODULE, "x/__main__.py", None) == f"{PYTHON} -m marvin_core"
    python = str(folder / "env" / "python")
    for program, name in (("env/marvin", "marvin"), ("marvin", f"{python} -m marvin_core")):
        assert command_of([python, "-m", "marvin_core"], "x/__main__.py", str(folder / program)) == name


def test_another_program_that_uses_the_library() -> None:
    assert command_of([sys.executable, "-m", "pytest"], "pytest/__main__.py", None) == "marvin"
