"""Language servers of several Marvins: what they may do, what `marvin lsp status` tells of them, and their end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest

from marvin_core.testing import Answer, LoopbackServer, PackRunner, RecordedRequest, ToolRunner, raw
from marvin_tools_coding import plugin
from marvin_tools_coding.lsp.documents import Diagnostic
from marvin_tools_coding.lsp.lookup import WHOLE
from marvin_tools_coding.lsp.report import overview
from marvin_tools_coding.lsp.status import ServerStatus, noted
from tests.tools_coding.test_lsp import NOT_PYTHON, PATH, SERVER, VENV, desk, is_alive, misbehaving, until

_MARVIN = """
import asyncio, json, sys
from pathlib import Path
from marvin_core.testing import PackRunner

home, work, path, sandbox = sys.argv[1:]
settings = {"coding": {"lsp": {"wait": 20, "install": "never"}}}
with PackRunner(Path(home), Path(work), env={"PATH": path}, settings=settings, sandbox=sandbox) as runner:
    for line in sys.stdin:
        name, content = json.loads(line)
        said = runner.call("write_file", path=name, content=content).text
        runner.run(asyncio.sleep(1))  # the loop of a Marvin goes on between two calls
        print(json.dumps(said), flush=True)
"""


class Marvin:
    """A Marvin in a process of its own, which writes files as it is told."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def write(self, path: str, content: str) -> str:
        """The result of writing a file."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([path, content]) + "\n")
        self.process.stdin.flush()
        return str(json.loads(self.process.stdout.readline()))


@contextmanager
def marvin(home: Path, work: Path, path: str, sandbox: Literal["off", "auto"] = "off") -> Iterator[Marvin]:
    """A Marvin that runs, and is closed at the end where it was not killed."""
    words = [sys.executable, "-c", _MARVIN, str(home), str(work), path, sandbox]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Marvin(process)


def installed(home: Path, way: str) -> Path:
    """Have a server in place of ruff as Marvin installs it: there the sandbox shows it. Returns what it runs."""
    folder = home / ".config" / "marvin" / "lsp" / "ruff"
    (folder / "bin").mkdir(parents=True)
    (folder / WHOLE).touch()
    script = Path(shutil.copy(SERVER, folder / "server.py"))
    program = folder / "bin" / "ruff"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {script} {way}\n")
    program.chmod(0o755)
    return script


def running(script: Path) -> list[int]:
    """The processes that run a script."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if str(script).encode() in words and is_alive(int(folder.name)):
            found.append(int(folder.name))
    return found


class Secret(LoopbackServer):
    """A service of this machine."""

    def answer_to(self, request: RecordedRequest) -> Answer:
        return raw(b"", {})


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the servers of the machine are reached on macOS")
def test_a_server_in_the_sandbox_reaches_nothing_else(marvin_home: Path, marvin_workdir: Path) -> None:
    """Neither files outside of the project, nor keys, nor services of this machine, as without a sandbox it does."""
    installed(marvin_home, "curious")
    key, outside, within = marvin_home / ".ssh" / "id_rsa", marvin_home / "owned", marvin_workdir / "made"
    key.parent.mkdir()
    key.write_text("key")
    service = Secret()
    try:
        attempts = f"# write={outside} write={within} read={key} reach={service.port}\n"
        settings = {"coding": {"lsp": {"wait": 20, "install": "never"}}}
        with ToolRunner(marvin_home, marvin_workdir, env={"PATH": PATH}, settings=settings, sandbox="required") as held:
            said = held.call("write_file", path="a.py", content=attempts).text.splitlines()[-1]
            assert "write OSError, write done, read " in said
            assert "read key" not in said
            assert "reach ConnectionRefusedError" in said
        assert not outside.exists()
        assert within.read_text() == "owned"
        with ToolRunner(marvin_home, marvin_workdir, env={"PATH": PATH}, settings=settings) as free:
            said = free.call("write_file", path="a.py", content=attempts).text.splitlines()[-1]
            assert "write done, write done, read key, reach done" in said, "the test tells the two apart"
    finally:
        service.close()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox of Linux")
def test_real_servers_work_in_the_sandbox(marvin_home: Path, marvin_workdir: Path) -> None:
    for kind, program in (("basedpyright", "basedpyright-langserver"), ("ruff", "ruff")):
        folder = marvin_home / ".config" / "marvin" / "lsp" / kind
        (folder / "bin").mkdir(parents=True)
        (folder / WHOLE).touch()
        (folder / "bin" / program).symlink_to(VENV / program)
    settings = {"coding": {"lsp": {"wait": 30, "install": "never"}}}
    env = {"PATH": PATH}
    with ToolRunner(marvin_home, marvin_workdir, env=env, settings=settings, sandbox="required") as runner:
        said = runner.call("write_file", path="a.py", content="import os\nx: int = 'a'\n").text
        assert "Diagnostics (basedpyright, ruff):" in said
        assert "\na.py:2: error: " in said
        assert "[F401]" in said


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a server ends when its input does")
@pytest.mark.parametrize("sandbox", ["off", "auto"])
def test_no_server_is_left_where_marvin_is_killed(
    marvin_home: Path, marvin_workdir: Path, sandbox: Literal["off", "auto"]
) -> None:
    """Not even one that heeds neither signals nor the end of its input."""
    script = installed(marvin_home, "hang_shutdown")
    with marvin(marvin_home, marvin_workdir, PATH, sandbox) as one:
        assert "error: wrong here" in one.write("a.py", NOT_PYTHON)
        assert running(script)
        os.kill(one.process.pid, signal.SIGKILL)
        assert until(lambda: not running(script))


@pytest.mark.slow
def test_two_marvins_in_one_folder(marvin_home: Path, marvin_workdir: Path, marvin_pack: PackRunner) -> None:
    """Each has a server of its own, the end of one is nothing to the other, and the status tells of those that run."""
    installed(marvin_home, "good")

    def status() -> str:
        return marvin_pack.cli(plugin, "lsp", "status").out.partition("\n\n")[2]

    assert status() == "No language server runs.\n"
    with marvin(marvin_home, marvin_workdir, PATH) as one, marvin(marvin_home, marvin_workdir, PATH) as other:
        assert "a.py:1: error: wrong here" in one.write("a.py", NOT_PYTHON)
        assert "b.py:1: error: wrong here" in other.write("b.py", NOT_PYTHON)
        assert until(lambda: status().count(": error: ") == 2), status()
        said = status().splitlines()
        assert [line.startswith("ruff: running, process ") for line in said] == [True, True, False, False, False]
        assert said[0].endswith(str(marvin_workdir))
        assert [line.partition(":")[0] for line in said[3:]] == ["a.py", "b.py"]
        os.kill(one.process.pid, signal.SIGKILL)
        one.process.wait()
        assert status().count("ruff: running") == 1
        assert "a.py" not in status()
        assert "No problems in b.py" in other.write("b.py", "x = 1\n")
        assert until(lambda: "No problems are known." in status()), status()
    assert status() == "No language server runs.\n"
    notes = list(marvin_home.rglob("session-*"))
    assert not notes, "what the killed one left is gone as well"


def test_what_is_not_looked_at_yet_is_told(marvin_pack: PackRunner, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    misbehaving(programs, "hang_request")
    settings = {"coding": {"lsp": {"wait": 0.3, "install": "never"}}}
    session = marvin_pack.session(env={"PATH": f"{programs}:{PATH}"}, settings=settings)
    session.call("create_file", path="a.py", content=NOT_PYTHON)
    (command,) = plugin.marvin_register_commands()
    said = session.command(command)
    assert said is not None
    assert "it has not looked at a.py yet" in said


def test_where_nothing_can_be_noted_edits_go_on(marvin_home: Path, marvin_workdir: Path, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    misbehaving(programs, "good")
    state = marvin_home / ".local" / "state"
    state.parent.mkdir(parents=True, exist_ok=True)
    state.write_text("no folder")
    with desk(marvin_home, marvin_workdir, programs) as at:
        assert "a.py:1: error: wrong here" in at.write("a.py", NOT_PYTHON)


@pytest.mark.parametrize("content", [b"", b"[", b"[7]", b"{}", b'[{"name": 1}]', b"\xff", b'[{"said": 3}]', b"null"])
def test_a_damaged_note_is_nothing(tmp_path: Path, content: bytes) -> None:
    import fcntl

    folder = tmp_path / "session-x"
    folder.mkdir()
    (folder / "servers.json").write_bytes(content)
    with (folder / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert noted(tmp_path) == []
        assert folder.is_dir()
    assert noted(tmp_path) == []
    assert not folder.exists(), "nobody holds it any more"


def test_each_folder_has_its_servers_and_what_they_said_once() -> None:
    wrong = Diagnostic(line=3, severity="error", message="no", server="ruff")

    def status(root: str, **said: list[Diagnostic]) -> ServerStatus:
        return ServerStatus(name="ruff", state="running", pid=7, root=root, waiting=[], said=said)

    assert overview([status("/b", x=[wrong]), status("/a"), status("/b", x=[wrong], a=[wrong])]) == (
        "ruff: running, process 7, /b\nruff: running, process 7, /b\n\na:3: error: no\nx:3: error: no\n\n"
        "ruff: running, process 7, /a\n\nNo problems are known."
    )
    assert overview([]) == ""
