"""The process that loads packs for the index, so that their code cannot affect this one.

It starts clean and without threads, so that it can fork. One fork loads all packs, one after the other, and reports
the results. If it dies, the pack that it was loading is tried once more in a fork of its own, and another fork
continues with the rest. A supervisor process above them kills all remaining processes.
"""

from __future__ import annotations

import faulthandler
import json
import os
import re
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from tempfile import TemporaryFile
from typing import Any, NoReturn

from ..api.config import Config
from ..api.errors import MarvinError
from ..config.load import load
from ..guard.processes.table import adopts_orphans, children_of
from .discovery import Loader
from .isolation import Died, Hung
from .model import Pack
from .stored import loaded_to_json, pack_from_json
from .trial_worker import STOPS, Trial, Worker

_WATCHDOG = "Timeout ("
"""The beginning of the message of faulthandler when it ends a process after a timeout."""
_DESCRIPTORS = 64
"""The maximum number of open files of this process at its start."""
_SAID = 20_000
"""The number of last bytes on standard error that are examined after a crash."""
_FRAME = re.compile(r'^  File "(.*)", line \d+ in ', re.MULTILINE)


def run(request: Mapping[str, Any]) -> NoReturn:
    """Load packs, and write one line of JSON for each to standard output; then end.

    Args:
        request: `packs`, the packs as JSON; `limit`, the seconds for each; `grace`, the seconds beyond the limit
            after which a fork that does not respond is killed.
    """
    _with_keeper()
    answers = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(null, descriptor)
    trial = Trial(loader=Loader(), config=_config(), limit=request["limit"], grace=request["grace"])
    waiting = [pack_from_json(entry) for entry in request["packs"]]
    while waiting:
        waiting = waiting[_tried(waiting, trial, answers) :]
    os._exit(0)


def _with_keeper() -> None:
    """Continue in a child. This process becomes the supervisor, which kills the child and all its descendants.

    It does so when standard input closes, which happens when the parent has the results or has ended. The code of packs
    may block or end every other process, and start some in sessions of their own, but orphans become children of the
    supervisor.
    """
    adopts_orphans()
    worker = os.fork()
    with suppress(OSError):  # the child has ended already
        os.setpgid(worker, 0)
    if not worker:
        return
    os.closerange(1, _DESCRIPTORS)
    with suppress(OSError):
        while os.read(0, 1):
            pass
    with suppress(OSError):
        os.killpg(worker, signal.SIGKILL)
    _end_children()
    os._exit(0)


def _end_children() -> None:
    """Kill the children of this process, and their children, which become its own."""
    while children := children_of(os.getpid()):
        for child in children:
            with suppress(PermissionError):  # set-uid programs such as sudo
                os.kill(child, signal.SIGKILL)
        for child in children:
            os.waitpid(child, 0)


def _config() -> Config | None:
    """The configuration of a start without flags, for packs that read it."""
    try:
        return load((), dict(os.environ))[0]
    except MarvinError:
        return None


def _tried(packs: Sequence[Pack], trial: Trial, answers: int) -> int:
    """Load packs in a fork until a pack ends it; returns how many are done."""
    copy = _Copy(trial, answers)
    done = copy.load(packs)
    if done == len(packs) or copy.stopped:
        return done
    if len(packs) > 1 and not copy.hung:
        copy = _Copy(trial, answers)
        if copy.load(packs[done : done + 1]):
            return done + 1  # this pack did not end the first fork
    loaded = trial.loader.failed(packs[done], copy.error(trial.limit))
    _write(answers, {**loaded_to_json(loaded), "read": copy.read})
    return done + 1


class _Copy:
    """A fork of this process, in which packs are loaded."""

    def __init__(self, trial: Trial, answers: int) -> None:
        self._trial = trial
        self._answers = answers
        self._status = 0
        self._said = ""
        self.stopped = False
        """Whether it ended on purpose, not because of the pack without a result."""
        self.read: list[str] = []
        """The variables that the pack without a result has read."""

    def load(self, packs: Sequence[Pack]) -> int:
        """Load packs; returns how many are done."""
        reading, writing = os.pipe()
        with TemporaryFile() as errors:
            pid = os.fork()
            if not pid:
                os.close(reading)
                os.dup2(errors.fileno(), 2)
                faulthandler.enable(errors)
                Worker(self._trial, writing, errors.fileno()).work(packs)
            os.close(writing)
            done = self._pass_on(reading)
            self._status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            errors.seek(max(0, errors.seek(0, os.SEEK_END) - _SAID))
            self._said = errors.read().decode("utf-8", "replace")
        return done

    def _pass_on(self, reading: int) -> int:
        done = 0
        with open(reading, "rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break  # the process ended while it wrote the line
                answer = json.loads(line)
                if isinstance(answer, str):
                    self.read.append(answer)
                else:
                    self.stopped = bool(answer.pop(STOPS, False))
                    _write(self._answers, answer)
                    done, self.read = done + 1, []
        return done

    @property
    def hung(self) -> bool:
        """Whether it was killed because it never released the interpreter."""
        return self._status == 1 and _WATCHDOG in self._said

    def error(self, limit: float) -> Hung | Died:
        """The error of the pack without a result."""
        error = Hung(limit, None) if self.hung else Died(_ending(self._status))
        error.stack, error.files = self._said, _FRAME.findall(self._said)
        return error


def _ending(status: int) -> str:
    if status >= 0:
        return f"ended the whole process while it was loaded, with exit code {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"crashed the whole process while it was loaded ({name})"


def _write(descriptor: int, answer: Any) -> None:
    data = json.dumps(answer).encode() + b"\n"
    while data:
        data = data[os.write(descriptor, data) :]
