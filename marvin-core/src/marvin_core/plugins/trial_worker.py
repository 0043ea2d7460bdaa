"""The fork that loads packs: one after the other, with a report on each."""

from __future__ import annotations

import faulthandler
import json
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType
from typing import Any, AnyStr, NoReturn

from ..api.config import Config
from ..api.record import Record
from ..util.imports import file_module
from .discovery import Loader
from .isolation import Forked, Hung, isolated
from .model import CORE, Loaded, Pack
from .stored import loaded_to_json

STOPS = "stops"
"""The key of a report after which the fork ends."""
_IMPORTING = "<frozen importlib"
"""The beginnings of file names of frames of the import system."""


class Trial(Record):
    """The limits of loading, in seconds: `limit` for each pack, and `grace` beyond it before the fork is killed."""

    loader: Loader
    config: Config | None
    limit: float
    grace: float


class Worker:
    """Loads packs in this process. `answers` and `errors` are the descriptors for reports and for crash messages."""

    def __init__(self, trial: Trial, answers: int, errors: int) -> None:
        self._trial = trial
        self._answers = answers
        self._errors = errors
        self._forks = 0
        self._read: dict[str, set[str]] = {}
        self._packages: set[str] = set()

    def work(self, packs: Sequence[Pack]) -> NoReturn:
        """Load the packs and exit."""
        process = os.getpid()
        # A process that a pack forks ends at once: it would load the other packs as well.
        os.register_at_fork(before=self._forking, after_in_child=partial(os._exit, 0))
        self._packages = {_top(pack.module) for pack in packs if pack.distribution != CORE}
        _watch_variables(self._reading)
        for pack in packs:
            outcome = self._tried(pack)
            if os.getpid() != process:  # native code has forked, unnoticed by Python
                os._exit(0)
            stops = isinstance(outcome, Hung)  # its thread is still there
            loaded = self._failed(pack, outcome) if isinstance(outcome, BaseException) else outcome
            self._write({**loaded_to_json(loaded), STOPS: stops})
            if stops:
                break
        os._exit(0)

    def _tried(self, pack: Pack) -> Loaded | BaseException:
        self._forks = 0
        self._read.clear()
        limit = self._trial.limit
        # The watchdog needs no interpreter, so it also ends code that never releases it.
        faulthandler.dump_traceback_later(limit + self._trial.grace, exit=True, file=self._errors)
        (outcome,) = isolated([partial(self._loaded, pack)], limit)
        return Forked() if self._forks and not isinstance(outcome, BaseException) else outcome

    def _loaded(self, pack: Pack) -> Loaded:
        loaded = self._trial.loader.load(pack)
        if self._trial.config is not None:
            loaded = self._trial.loader.rehearse(loaded, self._trial.config)
        own = {*self._packages, *(_top(spec.module) for spec in loaded.tools if pack.distribution != CORE)}
        return loaded.replace(read=tuple(sorted(name for name, readers in self._read.items() if readers & own)))

    def _failed(self, pack: Pack, error: BaseException) -> Loaded:
        return self._trial.loader.failed(pack, error).replace(read=tuple(sorted(self._read)))

    def _forking(self) -> None:
        self._forks += 1

    def _reading(self, name: str) -> None:
        """Report a read of a variable at once: the process may crash later."""
        if name not in self._read:
            self._read[name] = set()
            self._write(name)
        self._read[name] |= _readers(sys._getframe(2))

    def _write(self, answer: Any) -> None:
        data = json.dumps(answer).encode() + b"\n"
        while data:
            data = data[os.write(self._answers, data) :]


def _readers(frame: FrameType | None) -> set[str]:
    """The packages whose code reads a variable, down to the last import.

    Variables that a library reads during its import do not count for the pack that imports it.
    """
    found = set()
    while frame is not None and not frame.f_code.co_filename.startswith(_IMPORTING):
        found.add(str(frame.f_globals.get("__name__", "")).partition(".")[0])
        frame = frame.f_back
    return found


def _top(module: str) -> str:
    """The top-level package of a module, or the module name of a user's file after loading."""
    return file_module(module) if module.endswith(".py") else module.partition(".")[0]


def _watch_variables(told: Callable[[str], None]) -> None:
    """Report all reads of environment variables in this process from now on."""

    class Watched(type(os.environ)):  # type: ignore[misc]  # the class of the environment has no public name
        def __getitem__(self, name: AnyStr) -> AnyStr:
            if isinstance(name, (str, bytes)):
                told(os.fsdecode(name))
            value: AnyStr = super().__getitem__(name)
            return value

    os.environ.__class__ = os.environb.__class__ = Watched
