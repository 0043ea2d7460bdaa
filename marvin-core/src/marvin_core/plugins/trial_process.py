"""The process that loads packs for the index: whatever their code does, it does it here.

It is a clean process of its own, without threads, so that it can fork. One copy of it loads all packs, one after the
other, and says of each what it brings. Where that copy dies, the pack that it died on is tried once more in a copy of
its own, and another copy goes on with the rest. A keeper above them ends whatever is left of it all.
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
"""How faulthandler begins what it says when it ends a process that takes too long."""
_DESCRIPTORS = 64
"""Open files that this process has at most at its start."""
_SAID = 20_000
"""Bytes of what a copy said last on standard error that are looked at."""
_FRAME = re.compile(r'^  File "(.*)", line \d+ in ', re.MULTILINE)


def run(request: Mapping[str, Any]) -> NoReturn:
    """Load packs, and answer on standard output with one line of JSON for each; then end.

    Args:
        request: `packs`, the packs as JSON; `limit`, the seconds that each may take; `grace`, those beyond the limit
            after which a copy that cannot even say so is ended.
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
    """Go on in a child. This process becomes the keeper: it ends that and all that comes of it.

    It does so when standard input ends, as it does when whoever asked has the answers or is gone. The code of packs
    may hold up or end every other process, and start some in sessions of their own, but their orphans come to the
    keeper.
    """
    adopts_orphans()
    worker = os.fork()
    with suppress(OSError):  # the other one was faster
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
    """End the children of this process, and theirs, which are its own by then."""
    while children := children_of(os.getpid()):
        for child in children:
            with suppress(PermissionError):  # sudo and the like
                os.kill(child, signal.SIGKILL)
        for child in children:
            os.waitpid(child, 0)


def _config() -> Config | None:
    """The configuration as far as a start without flags has one; it is only for packs that want to look at it."""
    try:
        return load((), dict(os.environ))[0]
    except MarvinError:
        return None


def _tried(packs: Sequence[Pack], trial: Trial, answers: int) -> int:
    """Have packs loaded until one of them ends the copy that does it; returns how many have their answer."""
    copy = _Copy(trial, answers)
    done = copy.load(packs)
    if done == len(packs) or copy.stopped:
        return done
    if len(packs) > 1 and not copy.hung:
        copy = _Copy(trial, answers)
        if copy.load(packs[done : done + 1]):
            return done + 1  # it was not this one that ended the first copy
    loaded = trial.loader.failed(packs[done], copy.error(trial.limit))
    _write(answers, {**loaded_to_json(loaded), "read": copy.read})
    return done + 1


class _Copy:
    """A copy of this process, in which packs are loaded."""

    def __init__(self, trial: Trial, answers: int) -> None:
        self._trial = trial
        self._answers = answers
        self._status = 0
        self._said = ""
        self.stopped = False
        """Whether it ended because it would not go on, and not on a pack that has no answer yet."""
        self.read: list[str] = []
        """The variables that the pack without an answer has read."""

    def load(self, packs: Sequence[Pack]) -> int:
        """Load packs; returns how many have their answer."""
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
                    break  # it ended in the middle of it
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
        """Whether it was ended because it never let go of the interpreter."""
        return self._status == 1 and _WATCHDOG in self._said

    def error(self, limit: float) -> Hung | Died:
        """What is wrong with the pack that has no answer."""
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
