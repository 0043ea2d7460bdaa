"""What the programs of an agent inherit of its bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from marvin_core.api.config import Config
from marvin_core.api.errors import ConfigError
from marvin_core.config.load import load
from marvin_core.guard.gates.agents import child_variables


def config(tmp_path: Path, env: dict[str, str], *flags: str) -> Config:
    return load(flags, {"HOME": str(tmp_path), **env}, cwd=tmp_path)[0]


def handed_on(config: Config, *, attended: bool = False) -> dict[str, str]:
    return child_variables(config, attended=attended)


@pytest.mark.parametrize("files", ["spec.md", "a.md, docs/b.md", ","])
def test_a_child_that_works_elsewhere_may_write_the_same_files(tmp_path: Path, files: str) -> None:
    first = config(tmp_path, {"MARVIN_WRITABLE_FILES": files, "MARVIN_READONLY": "1"})
    handed = handed_on(first)
    (tmp_path / "sub").mkdir()
    child = load((), {"HOME": str(tmp_path), **handed}, cwd=tmp_path / "sub")[0]
    assert child.read_only
    assert child.writable_files is not None
    named = {str(first.working_dir / file) for file in first.writable_files or ()}
    assert set(child.writable_files) == named
    assert handed_on(child)["MARVIN_WRITABLE_FILES"] == handed["MARVIN_WRITABLE_FILES"]


def test_a_child_that_works_elsewhere_has_the_same_home(tmp_path: Path) -> None:
    first = config(tmp_path, {"MARVIN_HOME": "of/mine"})
    (tmp_path / "sub").mkdir()
    child = load((), {"HOME": str(tmp_path), **handed_on(first)}, cwd=tmp_path / "sub")[0]
    assert child.config_folder == first.config_folder == tmp_path / "of/mine"


def test_who_is_not_bound_hands_on_the_depth_and_how_it_runs(tmp_path: Path) -> None:
    usual = {"MARVIN_DEPTH": "1", "MARVIN_SANDBOX": "auto", "MARVIN_ON_ASK": "allow", "MARVIN_TOOL_SEARCH": "auto"}
    assert handed_on(config(tmp_path, {})) == usual
    assert handed_on(config(tmp_path, {}), attended=True) == {**usual, "MARVIN_NETWORK": "loopback"}


FLAGS = {
    "MARVIN_SANDBOX": ("off", "--sandbox", "required"),
    "MARVIN_NETWORK": ("all", "--network", "none"),
    "MARVIN_PERMISSION_MODE": ("auto", "--permission-mode", "readonly"),
    "MARVIN_ON_ASK": ("allow-all", "--on-ask", "deny,run_command=allow"),
    "MARVIN_TOOL_SEARCH": ("on", "--tool-search", "off"),
}


@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_holds_a_child_as_well_whatever_the_variable_says(tmp_path: Path, name: str) -> None:
    """A Marvin that a command starts sees the variables alone."""
    variable, flag, value = FLAGS[name]
    env = {name: variable}
    handed = handed_on(config(tmp_path, env, flag, value), attended=True)
    assert handed[name] == value
    child = config(tmp_path, {**env, **handed})
    assert handed_on(child)[name] == value


@pytest.mark.parametrize("text", ["maybe", "deny,=allow", "x=", ","])
def test_answers_of_a_variable_that_are_none_are_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="MARVIN_ON_ASK"):
        config(tmp_path, {"MARVIN_ON_ASK": text})
