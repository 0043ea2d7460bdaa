"""The environment of the benchmarks: a home, a working folder and a server of their own, and timed processes."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import NamedTuple, Self, TypeVar

from benchmarks.answers import Description
from benchmarks.service import Exchange, Service
from benchmarks.terminal import Terminal

T = TypeVar("T")

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable
BARE = str(Path(__file__).with_name("bare.py"))
PROMPT = "Do what the script says."
NOTE = "note.txt"
_LIMIT = 60.0
"""Seconds after which a run counts as hanging."""
_READ = 64 * 1024


_SAMPLED = 0.02
"""Seconds between two samples of a chat's memory."""
_LAST = 5
"""The number of last samples that count."""


class BenchmarkError(Exception):
    """The measured program did not do what it should; its numbers would be meaningless."""


class Program(NamedTuple):
    """A measured program: the Marvin of a checkout, in the checkout's own environment."""

    root: Path
    python: str

    @property
    def marvin(self) -> str:
        """The command that users run."""
        return str(Path(self.python).with_name("marvin"))


HERE = Program(ROOT, PYTHON)


def checkout(root: Path) -> Program:
    """The program of a checkout that is set up.

    Raises:
        BenchmarkError: it is not.
    """
    program = Program(root, str(root / ".venv" / "bin" / "python"))
    if not Path(program.marvin).exists():
        raise BenchmarkError(f"{root} is no checkout with an environment; `make setup` there makes one")
    return program


class Run(NamedTuple):
    """A process from its exec to its exit.

    `begun`, `first_output` and `ended` are nanoseconds of the monotonic clock, `cpu` is seconds in
    user and system mode, `peak` is resident memory in bytes.
    """

    begun: int
    first_output: int | None
    ended: int
    cpu: float
    peak: int
    output: bytes
    exchanges: list[Exchange]

    @property
    def to_first_request(self) -> float:
        """Milliseconds from exec to the arrival of the whole first request."""
        return (self.exchanges[0].received - self.begun) / 1e6

    def gap(self, number: int) -> float:
        """Milliseconds from the last byte of this answer, the first being 1, to the next request."""
        return (self.exchanges[number].received - self.exchanges[number - 1].marks["last"]) / 1e6


class Lab:
    """The folder of all files of a run, and the server; both are removed at the end.

    Args:
        program: what is measured.
        service: a server that is shared with another lab; else there is one of its own.
    """

    def __init__(self, program: Program = HERE, service: Service | None = None) -> None:
        self.program = program
        self._shared = service

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="marvin-bench-"))).resolve()
            self.folder, self.work = folder, folder / "project"
            self._errors = folder / "stderr"
            self._env = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "LANG": "C.UTF-8"}
            for each in (folder / "home", self.work):
                each.mkdir()
            (self.work / NOTE).write_text("".join(f"This is line {number}.\n" for number in range(1, 21)))
            self.check("git", "init", "--quiet", ".")
            # Compiled, as installed files are, whatever the environment says.
            self.check(self.program.python, "-m", "compileall", "-q", *map(str, self.program.root.glob("*/src")))
            self.service = self._shared or stack.enter_context(Service())
            self._env["OPENAI_COMPAT_URL"] = self.url = self.service.url
            self._env["OPENAI_COMPAT_MODEL"] = "qwen/qwen3-32b"
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stack.close()

    def configure(self, settings: Mapping[str, object] | None) -> None:
        """Write config.yaml; remove it for None."""
        config = self.folder / "home" / ".config" / "marvin" / "config.yaml"
        if settings is None:
            config.unlink(missing_ok=True)
            return
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(json.dumps(settings))

    def marvin(self) -> list[str]:
        """The command that users run, for one prompt."""
        return [self.program.marvin, *self._flags()]

    def with_all_tools(self) -> list[str]:
        """The same with all installed tools, as usual."""
        return [self.program.marvin, "--non-interactive", "--prompt", PROMPT, "--working-dir", str(self.work)]

    def module(self) -> list[str]:
        """The same as Marvin starts its own children."""
        return [self.program.python, "-P", "-m", "marvin_core", *self._flags()]

    def bare(self, kind: str = "async") -> list[str]:
        """The bare script, `async` or `sync`."""
        return [PYTHON, BARE, kind, self.url, PROMPT]

    def _flags(self) -> list[str]:
        return ["--non-interactive", "--prompt", PROMPT, "--tools", "coding", "--working-dir", str(self.work)]

    def chat(self, lines: Sequence[str], script: Sequence[Description]) -> float:
        """Run a chat that reads these lines; returns its resident memory near its end, in bytes."""
        typed = self.folder / "lines"
        typed.write_text("".join(f"{line}\n" for line in lines))
        return self.waiting([self.program.marvin, "--plain", "--working-dir", str(self.work)], script, typed)

    def waiting(self, command: Sequence[str], script: Sequence[Description], typed: Path = Path(os.devnull)) -> float:
        """Run a command that reads a file; returns its resident memory near its end, in bytes.

        Where the last answer of the script comes after a pause, that is its memory while it waits.
        """
        self.service.play(script)
        samples: list[float] = []
        with open(typed, "rb") as stdin, open(self._errors, "wb") as errors:
            process = subprocess.Popen(
                command, cwd=self.work, env=self._env, stdin=stdin, stdout=subprocess.DEVNULL, stderr=errors
            )
            while process.poll() is None:
                shown = subprocess.run(
                    ["ps", "-o", "rss=", "-p", str(process.pid)], capture_output=True, text=True, check=False
                ).stdout.strip()
                samples += [float(shown) * 1024] if shown not in ("", "0") else []
                time.sleep(_SAMPLED)
        exchanges = self.service.report()
        self._judge(command, process.returncode, exchanges, len(script))
        return median(samples[-_LAST:])

    def run(
        self,
        command: Sequence[str],
        script: Sequence[Description] = (),
        *,
        piped: bool = False,
        packages: Path | None = None,
        only: str = "",
        limit: float = _LIMIT,
    ) -> Run:
        """Run a command in the working folder while the server plays the script.

        Args:
            piped: read its standard output as it comes; else that goes to the null device.
            packages: a folder of further distributions.
            only: the one distribution whose packs there are beside the core's; else all are there.
            limit: seconds after which it hangs.

        Raises:
            BenchmarkError: it failed, made other requests than the script has, or a tool call failed.
        """
        self.service.play(script)
        with open(self._errors, "wb") as errors:
            begun = time.monotonic_ns()
            process = subprocess.Popen(
                command,
                cwd=self.work,
                env={
                    **self._env,
                    **({"PYTHONPATH": str(packages)} if packages else {}),
                    **({"MARVIN_PACKS": only} if only else {}),
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if piped else subprocess.DEVNULL,
                stderr=errors,
            )
            timer = Timer(limit, process.kill)
            timer.start()
            first_output, output = _read(process)
            _, status, used = os.wait4(process.pid, 0)
            timer.cancel()
        ended = time.monotonic_ns()
        process.returncode = os.waitstatus_to_exitcode(status)
        exchanges = self.service.report()
        self._judge(command, process.returncode, exchanges, len(script))
        cpu = used.ru_utime + used.ru_stime
        return Run(begun, first_output, ended, cpu, used.ru_maxrss * _RSS_UNIT, output, exchanges)

    def on_terminal(
        self,
        command: Sequence[str],
        script: Sequence[Description] = (),
        *,
        folder: Path | None = None,
        delay: float = 0.0,
        env: Mapping[str, str] | None = None,
    ) -> Terminal:
        """Start a command on a terminal of its own while the server plays the script; to be used with `with`.

        Args:
            folder: where it works; the working folder without it.
            delay: as that of `Terminal`.
            env: more variables.
        """
        self.service.play(script)
        # A terminal that answers questions about the cursor is not at hand; neither program needs the answer.
        own = {**self._env, "TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", **(env or {})}
        return Terminal(command, folder or self.work, own, delay)

    def _judge(self, command: Sequence[str], code: int, exchanges: Sequence[Exchange], expected: int) -> None:
        failed = [each.text for each in exchanges if each.role == "tool" and each.text.startswith("Error")]
        if code or failed or len(exchanges) != expected:
            errors = self._errors.read_text(errors="replace")[-2000:]
            raise BenchmarkError(
                f"{' '.join(command)}\nended with {code} after {len(exchanges)} of {expected} requests.\n"
                + "\n".join([*failed, errors])
            )

    def check(self, *command: str) -> None:
        """Run a command in the working folder that has to succeed, without measuring it."""
        subprocess.run(command, cwd=self.work, env=self._env, check=True, timeout=_LIMIT)


# Linux counts in kilobytes, macOS in bytes.
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


def _read(process: subprocess.Popen[bytes]) -> tuple[int | None, bytes]:
    """The process's output, and the time of its first bytes."""
    if process.stdout is None:
        return None, b""
    first, parts = None, []
    with process.stdout as pipe:
        while data := os.read(pipe.fileno(), _READ):
            first = first or time.monotonic_ns()
            parts.append(data)
    return first, b"".join(parts)


def interleaved(subjects: Mapping[str, Callable[[], T]], rounds: int, *, warm: bool = False) -> dict[str, list[T]]:
    """Measure the subjects in turn, so that what else the machine does hits them alike.

    Every other round goes through them backwards: what a place in the order costs cancels out. One round more
    is run before, for the caches, and thrown away; not where they are `warm`.
    """
    results: dict[str, list[T]] = {name: [] for name in subjects}
    for number in range(1 if warm else 0, rounds + 1):
        for name in list(subjects) if number % 2 else reversed(list(subjects)):
            result = subjects[name]()
            if number:
                results[name].append(result)
    return results


def median(values: Sequence[float]) -> float:
    """The median."""
    return statistics.median(values)


def per_thousand(more: int, short: float, long: float) -> float:
    """Milliseconds of processor time for 1,000 tokens, from the seconds of a short and a long answer.

    `more` is the number of tokens that the long one has beyond the short one: what starting costs is in both.
    """
    return (long - short) * 1e6 / more
