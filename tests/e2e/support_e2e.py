"""The installed program as a child process: started, watched, signalled, and what it left behind."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from marvin_core.testing import ModelServer

PROGRAM = (sys.executable, "-P", "-m", "marvin_core")
LIMIT = 150.0
"""Seconds that anything may take before the test fails; a run takes 0.3, and much more on a busy machine."""
COST_FIELDS = {"session_cost", "llm_turns", "model_turns", "model_cost"}
QUICK_RETRIES = "timeouts: {retry_backoff: [0.05, 0.05, 0.05]}\n"


def wait_until(reached: Callable[[], object], what: str, limit: float = LIMIT) -> None:
    """Look every few milliseconds until it is so; fails with `what` when it takes too long."""
    deadline = time.monotonic() + limit
    while not reached():
        assert time.monotonic() < deadline, f"waited {limit:g} s for: {what}"
        time.sleep(0.005)


def unread(pipe: int) -> int:
    """How many bytes wait in a pipe."""
    (count,) = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0\0\0\0"))
    return int(count)


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not yet collected does not count."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # no /proc on this system, or the process has gone by now
        found = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False)
        return found.stdout.strip()[:1] not in (b"", b"Z")


def end_of(terminal: Any) -> int:
    """The exit code of a child of pexpect whose output has come to its end.

    `close` alone gives it a tenth of a second to go, then sends signals.
    """
    terminal.wait()
    terminal.close()
    return int(terminal.exitstatus)


def put_away(terminal: Any) -> None:
    """End a child of pexpect, if it has not ended; `close` alone fails where that takes a tenth of a second."""
    if not terminal.closed and terminal.isalive():
        terminal.kill(signal.SIGKILL)
        terminal.wait()
    terminal.close()


def assert_gone(pids: Sequence[int]) -> None:
    """I25: none of these processes is alive any more."""
    assert pids, "no process was started, so nothing was tested"
    assert [pid for pid in pids if alive(pid)] == []


def assert_cost_last(stderr: bytes) -> dict[str, Any]:
    """I22: MARVIN_COST stands on the last line of standard error, once; returns its fields."""
    lines = stderr.decode().splitlines()
    assert lines, "standard error is empty"
    assert stderr.endswith(b"\n")
    assert lines[-1].startswith("MARVIN_COST:{"), stderr.decode()
    assert sum(line.startswith("MARVIN_COST:") for line in lines) == 1
    fields: dict[str, Any] = json.loads(lines[-1].removeprefix("MARVIN_COST:"))
    assert set(fields) == COST_FIELDS
    return fields


@dataclass(frozen=True)
class Result:
    """How a run ended."""

    code: int
    out: bytes
    err: bytes
    seconds: float

    @property
    def text(self) -> str:
        """Standard output."""
        return self.out.decode()

    @property
    def said(self) -> str:
        """Standard error without MARVIN_COST."""
        return "".join(line for line in self.err.decode().splitlines(True) if not line.startswith("MARVIN_COST:"))

    def cost(self) -> dict[str, Any]:
        """The fields of MARVIN_COST, which must be the last line of standard error."""
        return assert_cost_last(self.err)

    def events(self) -> list[dict[str, Any]]:
        """Standard output of `--output-format stream-json`: every line must be a JSON object."""
        lines = self.out.decode().split("\n")
        assert lines.pop() == "", "the last line is not ended"
        return [json.loads(line) for line in lines]


class Running:
    """A run that is under way. Its output is gathered as it comes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._begin = time.monotonic()
        self._seen = {"out": bytearray(), "err": bytearray()}
        streams = (("out", process.stdout), ("err", process.stderr))
        self._readers = [
            threading.Thread(target=self._gather, args=(name, stream), daemon=True)
            for name, stream in streams
            if stream is not None
        ]
        for reader in self._readers:
            reader.start()

    def _gather(self, name: str, stream: IO[bytes]) -> None:
        while data := os.read(stream.fileno(), 65_536):
            self._seen[name] += data

    @property
    def out(self) -> bytes:
        """What came on standard output so far."""
        return bytes(self._seen["out"])

    @property
    def err(self) -> bytes:
        """What came on standard error so far."""
        return bytes(self._seen["err"])

    def until(self, reached: Callable[[], object], what: str) -> None:
        """Wait for a moment of the run; the run must not end before it."""
        is_reached = False

        def look() -> bool:
            nonlocal is_reached
            is_reached = bool(reached())  # a moment, which may be over when somebody looks again
            return is_reached or self.process.poll() is not None

        wait_until(look, what)
        if not is_reached:
            for reader in self._readers:  # what it wrote may not have been read yet
                reader.join(LIMIT)
            assert reached(), f"the run ended before {what}: {self.err.decode()}"

    def until_out(self, expected: bytes) -> None:
        """Wait until this stands on standard output."""
        self.until(lambda: expected in self.out, f"{expected!r} on standard output")

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the program alone."""
        self.process.send_signal(number)

    def finish(self, limit: float = LIMIT) -> Result:
        """Wait for the end."""
        try:
            code = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"the run did not end in {limit:g} s; it said: {self.err.decode()}") from None
        for reader in self._readers:
            reader.join(limit)
            assert not reader.is_alive(), "something still holds the run's output open"
        for stream in filter(None, (self.process.stdin, self.process.stdout, self.process.stderr)):
            stream.close()
        return Result(code=code, out=self.out, err=self.err, seconds=time.monotonic() - self._begin)


class Marvin:
    """Runs Marvin with a home, a working directory and an environment of its own.

    Nothing is inherited but PATH, where the command `marvin` comes first. `env` may be changed before a run. Without a
    server no provider is configured.
    """

    def __init__(self, root: Path, server: ModelServer | None, cache: Path | None = None) -> None:
        self.home = root / "home"
        self.project = root / "project"
        self.config_folder = self.home / ".config" / "marvin"
        for folder in (self.config_folder, self.project):
            folder.mkdir(parents=True, mode=0o700)
        if cache is not None:
            shutil.copytree(cache, self.home / ".cache" / "marvin")
        # As where Marvin is installed: the command `marvin` is found, and hints name it.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        # How much is asked must not depend on which sandbox this machine allows.
        self.env = {"PATH": path, "HOME": str(self.home), "MARVIN_PERMISSION_MODE": "ask"}
        if server is not None:
            self.env |= {"OPENAI_COMPAT_URL": server.url, "OPENAI_COMPAT_MODEL": "qwen/qwen3-32b"}

    def config(self, text: str) -> Path:
        """Write config.yaml."""
        path = self.config_folder / "config.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    def start(
        self, *args: str | bytes, program: Sequence[str] = PROGRAM, env: Mapping[str, str] | None = None, **popen: Any
    ) -> Running:
        """Start it; standard input is empty unless given."""
        options: dict[str, Any] = {"cwd": self.project, "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
        options |= {"stderr": subprocess.PIPE, "start_new_session": True, "env": {**self.env, **(env or {})}, **popen}
        process: subprocess.Popen[bytes] = subprocess.Popen([*program, *args], **options)
        return Running(process)

    def run(self, *args: str | bytes, stdin: bytes | None = None, limit: float = LIMIT, **options: Any) -> Result:
        """Run it to its end."""
        if stdin is None:
            return self.start(*args, **options).finish(limit)
        running = self.start(*args, stdin=subprocess.PIPE, **options)
        assert running.process.stdin is not None
        try:
            running.process.stdin.write(stdin)
            running.process.stdin.close()
        except BrokenPipeError:
            pass  # it did not read all of it; the test looks at what it did instead
        return running.finish(limit)

    def ask(self, *args: str | bytes, prompt: str = "Do it.", **options: Any) -> Result:
        """One non-interactive run."""
        return self.run("--non-interactive", "--prompt", prompt, *args, **options)

    def ask_in_background(self, *args: str | bytes, prompt: str = "Do it.", **options: Any) -> Running:
        """Start a non-interactive run."""
        return self.start("--non-interactive", "--prompt", prompt, *args, **options)

    def session_files(self) -> list[Path]:
        """The session files, oldest first."""
        return sorted((self.home / ".local" / "share" / "marvin" / "sessions").glob("*.jsonl"))

    def session(self) -> list[dict[str, Any]]:
        """The records of the newest session; every line must be JSON."""
        return [json.loads(line) for line in self.session_files()[-1].read_text("utf-8").splitlines()]

    def messages(self) -> list[dict[str, Any]]:
        """The messages of the newest session."""
        return [record["message"] for record in self.session() if record["type"] == "message"]

    def kept(self) -> str:
        """Everything that Marvin left below its home, as one text."""
        files = (path for path in self.home.rglob("*") if path.is_file())
        return "\n".join(path.read_text("utf-8", "replace") for path in files)

    def git(self, *args: str, cwd: Path | None = None) -> str:
        """What git prints, run in the project."""
        done = subprocess.run(
            ["git", *args], cwd=cwd or self.project, env=self.env, capture_output=True, text=True, check=True
        )
        return done.stdout

    def make_repository(self) -> None:
        """Make the project a git repository with one commit of `total.py`."""
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Ada")
        self.git("config", "user.email", "ada@example.com")
        (self.project / "total.py").write_text("def total(items):\n    return sum(items) / len(items)\n")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "Begin")

    def pids(self) -> list[int]:
        """What commands wrote into the file `pids` of the project."""
        path = self.project / "pids"
        return [int(word) for word in path.read_text().split()] if path.exists() else []

    def at_work(self) -> list[int]:
        """The shells and sleeps that are alive in the project, by the numbers that this machine has for them.

        What a command knows as its number is another one where it runs in a sandbox.
        """
        if sys.platform != "linux":
            return [pid for pid in self.pids() if alive(pid)]
        found = []
        for folder in Path("/proc").iterdir():
            with suppress(OSError):
                name, place = (folder / "comm").read_text().strip(), os.readlink(folder / "cwd")
                ours = name in ("sleep", "sh", "bash") and place == str(self.project.resolve())
                if ours and alive(int(folder.name)):
                    found.append(int(folder.name))
        return found

    def assert_nothing_left(self) -> None:
        """I25: nothing that commands started is alive any more."""
        assert self.pids(), "no process was started, so nothing was tested"
        assert self.at_work() == []


def conversation(server: ModelServer, number: int = -1) -> list[dict[str, Any]]:
    """The messages of a model request, without the system prompt."""
    asked = [request for request in server.requests if request.method == "POST"]
    return [message for message in asked[number].body["messages"] if message["role"] != "system"]


def told(server: ModelServer, number: int = -1) -> list[str]:
    """The outputs of tools in the last messages of a request."""
    messages = conversation(server, number)
    outputs: list[str] = []
    for message in reversed(messages):
        if message["role"] != "tool":
            break
        outputs.insert(0, message["content"])
    return outputs


def posts(server: ModelServer) -> int:
    """How many model requests were made."""
    return sum(request.method == "POST" for request in server.requests)


def block_texts(message: Mapping[str, Any]) -> str:
    """The text blocks of a saved message, joined."""
    return "".join(block["text"] for block in message["content"] if block["type"] == "text")


def assert_loadable(messages: Sequence[Mapping[str, Any]]) -> None:
    """I15: in what was saved, every call has exactly one output, right after it."""
    for index, message in enumerate(messages):
        calls = [block["id"] for block in message["content"] if block["type"] == "tool_call"]
        if calls:
            assert index + 1 < len(messages), "the calls of the last message have no output"
            outputs = [block["call_id"] for block in messages[index + 1]["content"]]
            assert outputs == calls
