"""Language servers are installed whole or not at all, by one Marvin at a time, and used by the next edit."""

from __future__ import annotations

import os
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import pytest

from marvin_core import MarvinError, ToolError
from marvin_core.testing import PackRunner, ToolRunner
from marvin_tools_coding import plugin
from marvin_tools_coding.lsp.catalog import ServerKind, by_name
from marvin_tools_coding.lsp.installing import Installation, steps
from marvin_tools_coding.lsp.lookup import WHOLE, installed
from tests.tools_coding.test_lsp import NOT_PYTHON, PATH, SERVER

_WAITED = 60.0


def kind_of(name: str) -> ServerKind:
    found = by_name(name)
    assert found is not None
    return found


RUFF = kind_of("ruff")


def whole(folder: Path, said: str) -> Path:
    """Have ruff installed; its program says something."""
    with Installation(RUFF, folder) as installation:
        program = folder / "lsp" / "ruff" / "bin" / "ruff"
        program.parent.mkdir(parents=True)
        program.write_text(said)
        program.chmod(0o755)
        installation.finish()
    return program


def test_what_was_there_comes_back_where_an_installation_fails(tmp_path: Path) -> None:
    program = whole(tmp_path, "old")
    with Installation(RUFF, tmp_path):
        assert installed(RUFF, tmp_path) is None
        program.parent.mkdir(parents=True)
    assert installed(RUFF, tmp_path) == str(program)
    assert program.read_text() == "old"
    assert whole(tmp_path, "new").read_text() == "new"
    assert sorted(path.name for path in (tmp_path / "lsp").iterdir()) == [".ruff.lock", "ruff"]


def test_one_installs_at_a_time(tmp_path: Path) -> None:
    with Installation(RUFF, tmp_path):
        with pytest.raises(ToolError, match="Another Marvin is installing ruff"):
            Installation(RUFF, tmp_path).begin()
        with Installation(kind_of("clangd"), tmp_path):
            pass
    whole(tmp_path, "later")


def test_what_a_killed_installation_left_is_no_obstacle(tmp_path: Path) -> None:
    program = whole(tmp_path, "old")
    killed = Installation(RUFF, tmp_path)
    killed.begin()
    program.parent.mkdir(parents=True)
    os.close(killed._lock)
    killed._lock = -1  # as the kernel closes it
    with Installation(RUFF, tmp_path):
        pass
    assert program.read_text() == "old"


@pytest.mark.parametrize("what", ["link", "file", "full"])
def test_whatever_lies_in_the_place_goes_away_or_is_told(tmp_path: Path, what: str) -> None:
    place, other = tmp_path / "lsp" / "ruff", tmp_path / "other"
    other.mkdir()
    (other / WHOLE).touch()
    place.parent.mkdir()
    if what == "link":
        place.symlink_to(other)
    elif what == "file":
        place.write_text("x")
    else:
        place.parent.rmdir()
        place.parent.write_text("no folder")
        with pytest.raises(ToolError, match="cannot be made"):
            Installation(RUFF, tmp_path).begin()
        return
    assert whole(tmp_path, "new").read_text() == "new"
    assert (other / WHOLE).is_file(), "what a link leads to is left alone"


def test_without_npm_it_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(MarvinError, match="needs npm"):
        steps(kind_of("typescript-language-server"), tmp_path, lambda _: None)


@pytest.fixture
def shelf(tmp_path: Path) -> Mapping[str, str]:
    """What has pip find one package only: basedpyright, whose server is the one of these tests."""
    folder, name = tmp_path / "shelf", "basedpyright-9.9.9"
    folder.mkdir()
    about = f"{name}.dist-info"
    # It lies in the package, which the sandbox shows; it is told by its own place.
    start = '#!/bin/sh\nexec "$(dirname "$0")/python" "$(dirname "$0")/lsp_server.py" good\n'
    files = {
        f"{name}.data/scripts/basedpyright-langserver": start,
        f"{name}.data/scripts/lsp_server.py": SERVER.read_text(),
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: basedpyright\nVersion: 9.9.9\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(folder / f"{name}-py3-none-any.whl", "w") as wheel:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = 0o100755 << 16
            wheel.writestr(entry, content)
        wheel.writestr(f"{about}/RECORD", "".join(f"{path},,\n" for path in [*files, f"{about}/RECORD"]))
    found = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder), "UV_NO_INDEX": "1", "UV_FIND_LINKS": str(folder)}
    return {**found, "UV_CACHE_DIR": str(tmp_path / "uv")}


def settings(install: str) -> Mapping[str, Mapping[str, Any]]:
    return {"coding": {"lsp": {"wait": 20, "install": install}}}


def said_until(runner: ToolRunner, expected: str) -> str:
    """Edit one file after another until a result has a text; returns all that the results said.

    Between two calls the loop of a runner stands still: the installation goes on with the calls.
    """
    said, end = "", time.monotonic() + _WAITED
    while True:
        said += runner.call("create_file", path=f"{uuid4().hex}.py", content=NOT_PYTHON).text
        if expected in said or time.monotonic() > end:
            return said
        time.sleep(0.3)


@pytest.mark.slow
@pytest.mark.parametrize("sandbox", ["off", "auto"])
def test_a_chat_that_is_told_yes_installs_it(
    marvin_home: Path, marvin_workdir: Path, shelf: Mapping[str, str], sandbox: Literal["off", "auto"]
) -> None:
    env = {"PATH": PATH, **shelf}
    with ToolRunner(
        marvin_home, marvin_workdir, env=env, settings=settings("ask"), answers=["yes"], sandbox=sandbox
    ) as runner:
        said = runner.call("create_file", path="a.py", content=NOT_PYTHON).text
        assert "[basedpyright is being installed; after that, edits show its diagnostics.]" in said
        (question, choices), *_ = runner.questions
        assert "Install the language server basedpyright from PyPI" in question
        assert choices == ("yes", "not now", "never")
        said = said_until(runner, ".py:1: error: wrong here")
        assert ".py:1: error: wrong here" in said, said
        # The server is there a moment before the installation is done and says so.
        assert "[basedpyright is installed.]" in said or "is installed.]" in said_until(runner, "is installed.]")
        assert len(runner.questions) == 1


@pytest.mark.slow
def test_auto_installs_it_where_nobody_is_asked(
    marvin_home: Path, marvin_workdir: Path, shelf: Mapping[str, str]
) -> None:
    env = {"PATH": PATH, **shelf}
    with ToolRunner(marvin_home, marvin_workdir, env=env, settings=settings("auto"), interactive=False) as runner:
        assert "is being installed" in runner.call("create_file", path="a.py", content=NOT_PYTHON).text
        assert "error: wrong here" in said_until(runner, "error: wrong here")


@pytest.mark.slow
def test_a_session_that_ends_first_leaves_nothing_half_done(
    marvin_home: Path, marvin_workdir: Path, shelf: Mapping[str, str]
) -> None:
    env = {"PATH": PATH, **shelf}
    with ToolRunner(marvin_home, marvin_workdir, env=env, settings=settings("auto")) as runner:
        assert "is being installed" in runner.call("create_file", path="a.py", content=NOT_PYTHON).text
    folder = marvin_home / ".config" / "marvin"
    assert installed(kind_of("basedpyright"), folder) is None
    assert not (folder / "lsp" / "basedpyright").exists()
    with Installation(kind_of("basedpyright"), folder):
        pass


@pytest.mark.slow
def test_what_the_registry_does_not_have_is_told_and_the_old_one_stays(
    marvin_home: Path, marvin_pack: PackRunner, shelf: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = whole(marvin_home / ".config" / "marvin", "#!/bin/sh\n")
    for name, value in shelf.items():  # what a person's own shell has set
        monkeypatch.setenv(name, value)
    outcome = marvin_pack.cli(plugin, "lsp", "install", "ruff")
    assert outcome.code == 1
    assert "ruff was not installed: " in outcome.err
    assert program.is_file()
    outcome = marvin_pack.cli(plugin, "lsp", "install", "basedpyright")
    assert outcome.code == 0, outcome.err
    assert outcome.out.strip().endswith("/lsp/basedpyright/bin/basedpyright-langserver")


@pytest.mark.slow
def test_two_that_install_at_once_do_each_other_no_harm(
    marvin_home: Path, marvin_workdir: Path, shelf: Mapping[str, str]
) -> None:
    env = {"PATH": PATH, **shelf}
    with (
        ToolRunner(marvin_home, marvin_workdir, env=env, settings=settings("auto")) as one,
        ToolRunner(marvin_home, marvin_workdir, env=env, settings=settings("auto")) as other,
    ):
        told = "[basedpyright was not installed: Another Marvin is installing basedpyright."
        with Installation(kind_of("basedpyright"), marvin_home / ".config" / "marvin"):  # a third one, which gives up
            assert told in said_until(other, told)
        assert "error: wrong here" in said_until(one, "error: wrong here")
        assert "error: wrong here" in other.call("create_file", path="e.py", content=NOT_PYTHON).text
