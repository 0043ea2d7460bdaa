"""What people ask of language servers: /diagnostics, and marvin lsp."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from marvin_core.testing import PackRunner
from marvin_tools_coding import plugin
from marvin_tools_coding.lsp.catalog import KINDS, by_name
from marvin_tools_coding.lsp.lookup import WHOLE, installed
from marvin_tools_coding.settings import CodingSettings
from tests.e2e.test_docs import DOCS
from tests.tools_coding.test_lsp import NOT_PYTHON, misbehaving


def test_status_names_each_server_and_how_to_get_it(marvin_pack: PackRunner) -> None:
    said = marvin_pack.cli(plugin, "lsp", "status").out
    known, _, running = said.partition("\n\n")
    assert [line.partition(":")[0] for line in known.splitlines()] == [kind.name for kind in KINDS]
    assert running == "No language server runs.\n"
    assert "missing; marvin lsp install typescript-language-server" in said


def test_status_says_why_a_server_of_a_project_is_missing(
    marvin_pack: PackRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "project" / "bin"
    programs.mkdir(parents=True)
    (programs.parent / "pyvenv.cfg").touch()
    misbehaving(programs, "good")
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    said = marvin_pack.cli(plugin, "lsp", "status").out
    assert f"ruff: missing; marvin lsp install ruff; {programs}/ruff belongs to a project, and is not used" in said


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("gopls", "is not in a package registry. Install it yourself"),
        ("nonsense", "Those that Marvin knows: basedpyright"),
    ],
)
def test_what_cannot_be_installed_is_explained(marvin_pack: PackRunner, name: str, why: str) -> None:
    outcome = marvin_pack.cli(plugin, "lsp", "install", name)
    assert outcome.code == 1
    assert why in outcome.err


def test_half_an_installation_is_not_used(tmp_path: Path) -> None:
    kind = by_name(" Ruff")
    assert kind is not None
    program = tmp_path / "lsp" / "ruff" / "bin" / "ruff"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert installed(kind, tmp_path) is None
    (tmp_path / "lsp" / "ruff" / WHOLE).touch()
    assert installed(kind, tmp_path) == str(program)


def test_the_command_lists_servers_and_all_that_they_found(marvin_pack: PackRunner, tmp_path: Path) -> None:
    (command,) = plugin.marvin_register_commands()
    folder = tmp_path / "programs"
    folder.mkdir()
    misbehaving(folder, "good")
    session = marvin_pack.session(
        env={"PATH": f"{folder}:/usr/bin:/bin"}, settings={"coding": {"lsp": {"wait": 20, "install": "never"}}}
    )
    assert session.command(command) == (
        "No language server is running yet: the first edit of a file starts the servers of its language."
    )
    session.call("create_file", path="a.py", content=NOT_PYTHON)
    session.call("create_file", path="b/c.py", content="\n" + NOT_PYTHON)
    said = session.command(command)
    assert said is not None
    assert said.startswith("ruff: running, process ")
    assert "\na.py:1: error: wrong here" in said
    assert "\nb/c.py:2: error: wrong here" in said
    (session.working_dir / "a.py").unlink()
    said = session.command(command)
    assert said is not None
    assert "a.py" not in said, "it is gone, whoever removed it"
    assert "\nb/c.py:2: error: wrong here" in said


def test_the_settings_of_the_page_are_the_ones_there_are(tmp_path: Path) -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", (DOCS / "how-to" / "language-servers.md").read_text(), re.DOTALL)
    given = YAML(typ="safe", pure=True).load(block)["packs"]["coding"]
    assert CodingSettings(**given) == CodingSettings()
