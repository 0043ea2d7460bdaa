"""What language servers say of an edited file stands in the result, and no server makes an edit fail."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from marvin_core.testing import ToolRunner

SERVER = Path(__file__).parents[1] / "support" / "lsp_server.py"
VENV = Path(sys.executable).parent
PATH = "/usr/bin:/bin"
NOT_PYTHON = "x = 1  # wrong\n"


class Desk:
    """A session in an empty folder whose only language servers are those that a test puts there."""

    def __init__(self, runner: ToolRunner, folder: Path) -> None:
        self.runner = runner
        self.folder = folder

    def write(self, path: str, content: str) -> str:
        """The result of writing a file."""
        outcome = self.runner.call("write_file", path=path, content=content)
        assert not outcome.is_error, outcome.text
        assert (self.folder / path).read_text() == content
        return outcome.text


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder of PATH."""
    folder = tmp_path / "programs"
    folder.mkdir()
    return folder


def misbehaving(programs: Path, way: str) -> None:
    """Put a server in place of ruff."""
    program = programs / "ruff"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {SERVER} {way}\n")
    program.chmod(0o755)


@contextmanager
def desk(home: Path, workdir: Path, programs: Path, wait: float = 20.0, **more: object) -> Iterator[Desk]:
    """A session whose edits wait so many seconds."""
    env = {"PATH": f"{programs}:{PATH}"}
    settings = {"coding": {"lsp": {"wait": wait, "install": "never", **more}}}
    with ToolRunner(home, workdir, env=env, settings=settings, origin="model") as runner:
        yield Desk(runner, workdir)


def until(reached: Callable[[], bool], limit: float = 15.0) -> bool:
    """Whether something comes to be in time."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if reached():
            return True
        time.sleep(0.05)
    return False


def is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.mark.slow
def test_real_servers_of_python_say_what_is_wrong(marvin_home: Path, marvin_workdir: Path, programs: Path) -> None:
    """Of the version just written only, by both servers, and nothing of them is left."""
    for name in ("basedpyright-langserver", "ruff"):
        (programs / name).symlink_to(VENV / name)
    with desk(marvin_home, marvin_workdir, programs, wait=30.0) as at:
        said = at.write("a.py", "import os\nx: int = 'a'\n")
        assert "Diagnostics (basedpyright, ruff):" in said
        assert "\na.py:2: error: " in said
        assert "[F401]" in said
        assert "No problems in a.py (basedpyright, ruff)." in at.write("a.py", "x: int = 1\n")
        said = at.write("b.py", "from a import missing\n\nprint(missing)\n")
        assert 'b.py:1: error: "missing" is unknown import symbol' in said


@pytest.mark.slow
def test_no_interpreter_of_the_project_is_run(marvin_home: Path, marvin_workdir: Path, programs: Path) -> None:
    """Without a sandbox: a repository could bring any program as its Python. Its packages are found all the same."""
    (programs / "basedpyright-langserver").symlink_to(VENV / "basedpyright-langserver")
    environment, ran = marvin_workdir / ".venv", marvin_workdir / "ran"
    packages = environment / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "acme.py").write_text("thing = 1\n")
    (environment / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (environment / "bin").mkdir()
    for name in ("python", "python3"):
        program = environment / "bin" / name
        program.write_text(f'#!/bin/sh\ntouch {ran}\nexec {sys.executable} "$@"\n')
        program.chmod(0o755)
    with desk(marvin_home, marvin_workdir, programs, wait=30.0) as at:
        said = at.write("a.py", "import acme\n\nprint(acme.thing, acme.other)\n")
        assert 'a.py:3: error: "other" is not a known attribute of module "acme"' in said
    assert not ran.exists()


def test_what_is_wrong_is_told_by_lines_and_without_controls(
    marvin_home: Path, marvin_workdir: Path, programs: Path
) -> None:
    misbehaving(programs, "good")
    with desk(marvin_home, marvin_workdir, programs) as at:
        said = at.write("a.py", "\n" + NOT_PYTHON)
        assert said.endswith("\nDiagnostics (ruff):\na.py:2: error: wrong here ü [31m good")
        assert at.write("a.py", "x = 1\n").endswith("\nNo problems in a.py (ruff).")
        assert "No problems" not in at.write("notes.txt", "wrong\n")
        pid = int((marvin_workdir / "lsp.pid").read_text())
        assert is_alive(pid)
    assert not is_alive(pid)
    assert (marvin_workdir / "lsp.left").read_text() == "cleanly"


@pytest.mark.parametrize("path", ["./x/../a.py", "ä b#%20.py", "x/a?.py"])
def test_files_are_found_again_however_they_are_named(
    marvin_home: Path, marvin_workdir: Path, programs: Path, path: str
) -> None:
    misbehaving(programs, "good")
    (marvin_workdir / "x").mkdir()
    with desk(marvin_home, marvin_workdir, programs) as at:
        assert f"\n{path}:1: error: wrong here" in at.write(path, NOT_PYTHON)


def test_a_file_that_was_removed_or_moved_is_of_no_more_interest(
    marvin_home: Path, marvin_workdir: Path, programs: Path
) -> None:
    misbehaving(programs, "good")
    with desk(marvin_home, marvin_workdir, programs) as at:
        at.write("a.py", NOT_PYTHON)
        change = "*** Update File: a.py\n*** Move to: b.py\n@@\n-x = 1  # wrong\n+y = 1  # wrong"
        moved = at.runner.call("apply_patch", patch=f"*** Begin Patch\n{change}\n*** End Patch")
        assert "\nb.py:1: error: wrong here" in moved.text
        assert "a.py:" not in moved.text
        gone = at.runner.call("apply_patch", patch="*** Begin Patch\n*** Delete File: b.py\n*** End Patch")
        assert not gone.is_error
        assert "ruff" not in gone.text


@pytest.mark.parametrize("way", ["no_version", "utf_16", "wrong_types", "asks"])
def test_servers_with_habits_of_their_own_are_understood(
    marvin_home: Path, marvin_workdir: Path, programs: Path, way: str
) -> None:
    misbehaving(programs, way)
    with desk(marvin_home, marvin_workdir, programs) as at:
        assert "\na.py:1: error: wrong here" in at.write("a.py", NOT_PYTHON)
        assert at.write("a.py", "x = 1\n").endswith("\nNo problems in a.py (ruff).")


@pytest.mark.parametrize("way", ["hang_start", "hang_request", "old_version", "flood"])
def test_an_edit_waits_for_a_while_only(marvin_home: Path, marvin_workdir: Path, programs: Path, way: str) -> None:
    misbehaving(programs, way)
    with desk(marvin_home, marvin_workdir, programs, wait=0.5) as at:
        said = at.write("a.py", NOT_PYTHON)
        assert "error: " not in said
        assert "ruff has not checked a.py yet" in said or "ruff does not work" in said
        assert until((marvin_workdir / "lsp.pid").exists)
        pid = int((marvin_workdir / "lsp.pid").read_text())
    assert until(lambda: not is_alive(pid))


@pytest.mark.parametrize("way", ["crash_start", "crash_request", "garbage", "huge", "nested"])
def test_a_server_that_fails_is_told_of_once(marvin_home: Path, marvin_workdir: Path, programs: Path, way: str) -> None:
    misbehaving(programs, way)
    with desk(marvin_home, marvin_workdir, programs) as at:
        assert "\n[The language server ruff does not work: " in at.write("a.py", NOT_PYTHON)
        for number in range(4):
            assert "ruff" not in at.write("a.py", f"x = {number}\n")


def test_one_that_does_not_start_comes_with_how_to_install_it(
    marvin_home: Path, marvin_workdir: Path, programs: Path
) -> None:
    """As rust-analyzer of rustup, where that has no such component."""
    program = programs / "rust-analyzer"
    program.write_text("#!/bin/sh\necho \"error: 'rust-analyzer' is not installed for the toolchain\" >&2\nexit 1\n")
    program.chmod(0o755)
    with desk(marvin_home, marvin_workdir, programs) as at:
        said = at.write("a.rs", "fn main() {}\n")
        assert (
            "[The language server rust-analyzer does not work: it ended during its start. The user can install" in said
        )
        assert "rustup component add rust-analyzer]" in said


def test_a_server_that_crashed_is_started_again(marvin_home: Path, marvin_workdir: Path, programs: Path) -> None:
    misbehaving(programs, "crash_once")
    with desk(marvin_home, marvin_workdir, programs) as at:
        assert "ruff does not work" in at.write("a.py", "x = 1\n")
        assert "\na.py:1: error: wrong here" in at.write("a.py", NOT_PYTHON)


@pytest.mark.slow
def test_what_comes_late_is_told_with_the_next_edit(marvin_home: Path, marvin_workdir: Path, programs: Path) -> None:
    misbehaving(programs, "late")
    with desk(marvin_home, marvin_workdir, programs, wait=0.3) as at:
        assert "ruff has not checked a.py yet" in at.write("a.py", NOT_PYTHON)
        time.sleep(2.5)
        assert "\na.py:1: error: wrong here" in at.write("b.py", "x = 1\n")


def test_a_server_that_does_not_shut_down_is_killed(marvin_home: Path, marvin_workdir: Path, programs: Path) -> None:
    misbehaving(programs, "hang_shutdown")
    with desk(marvin_home, marvin_workdir, programs) as at:
        at.write("a.py", NOT_PYTHON)
        pid = int((marvin_workdir / "lsp.pid").read_text())
    assert until(lambda: not is_alive(pid))


def test_servers_of_the_project_are_not_run(marvin_home: Path, marvin_workdir: Path, programs: Path) -> None:
    """A repository could bring whatever it wants run."""
    own = marvin_workdir / "bin"
    own.mkdir()
    misbehaving(own, "good")
    with desk(marvin_home, marvin_workdir, own) as at:
        at.write("a.py", NOT_PYTHON)
        assert not (marvin_workdir / "lsp.pid").exists()


def test_two_sessions_of_a_folder_have_servers_of_their_own(
    marvin_home: Path, marvin_workdir: Path, programs: Path
) -> None:
    misbehaving(programs, "good")
    with desk(marvin_home, marvin_workdir, programs) as one, desk(marvin_home, marvin_workdir, programs) as other:
        assert "error: wrong here" in one.write("a.py", NOT_PYTHON)
        assert "error: wrong here" in other.write("b.py", NOT_PYTHON)
        assert "No problems in a.py" in one.write("a.py", "x = 1\n")


def test_they_can_be_switched_off(marvin_home: Path, marvin_workdir: Path, programs: Path) -> None:
    misbehaving(programs, "good")
    with desk(marvin_home, marvin_workdir, programs, use=False) as at:
        assert "ruff" not in at.write("a.py", NOT_PYTHON)


class TestMissing:
    def test_a_line_names_what_to_do_once(self, marvin_home: Path, marvin_workdir: Path) -> None:
        with ToolRunner(marvin_home, marvin_workdir, env={"PATH": PATH}, interactive=False) as runner:
            first = runner.call("create_file", path="a.py", content="")
            second = runner.call("create_file", path="b.py", content="")
        assert "marvin lsp install basedpyright" in first.text
        assert "marvin lsp" not in second.text

    def test_a_chat_asks_and_never_is_remembered(self, marvin_home: Path, marvin_workdir: Path) -> None:
        env = {"PATH": PATH}
        with ToolRunner(marvin_home, marvin_workdir, env=env, answers=["never"]) as runner:
            assert "marvin lsp install basedpyright" in runner.call("create_file", path="a.py", content="").text
            assert len(runner.questions) == 1
        with ToolRunner(marvin_home, marvin_workdir, env=env) as runner:
            assert "marvin lsp install basedpyright" in runner.call("create_file", path="b.py", content="").text
            assert not runner.questions
