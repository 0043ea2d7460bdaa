"""What a copy of the process that loads packs does: it loads one after the other and says what each brings."""

from __future__ import annotations

import faulthandler
import json
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

from ..api.config import Config
from ..api.record import Record
from .discovery import Loader
from .isolation import Forked, Hung, isolated
from .model import Loaded, Pack
from .stored import loaded_to_json

STOPS = "stops"
"""The key of an answer that says that its copy will not go on."""


class Trial(Record):
    """How packs are tried. `limit` is in seconds, for each; `grace` are those beyond it, before the copy is ended."""

    loader: Loader
    config: Config | None
    limit: float
    grace: float


class Worker:
    """Loads packs in this process. `answers` and `errors` are the descriptors for answers and for last words."""

    def __init__(self, trial: Trial, answers: int, errors: int) -> None:
        self._trial = trial
        self._answers = answers
        self._errors = errors
        self._forks = 0
        self._read: set[str] = set()

    def work(self, packs: Sequence[Pack]) -> NoReturn:
        """Load the packs and leave."""
        process = os.getpid()
        # What a pack forks ends at once: it would load the other packs as well.
        os.register_at_fork(before=self._forking, after_in_child=partial(os._exit, 0))
        _watch_variables(self._reading)
        for pack in packs:
            outcome = self._tried(pack)
            if os.getpid() != process:  # a copy that a library made, past Python
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
        # The watchdog needs no interpreter, so it also ends what never lets go of that.
        faulthandler.dump_traceback_later(limit + self._trial.grace, exit=True, file=self._errors)
        (outcome,) = isolated([partial(self._loaded, pack)], limit)
        return Forked() if self._forks and not isinstance(outcome, BaseException) else outcome

    def _loaded(self, pack: Pack) -> Loaded:
        loaded = self._trial.loader.load(pack)
        if self._trial.config is not None:
            self._trial.loader.rehearse(loaded, self._trial.config)
        return loaded

    def _failed(self, pack: Pack, error: BaseException) -> Loaded:
        return self._trial.loader.failed(pack, error).replace(read=tuple(sorted(self._read)))

    def _forking(self) -> None:
        self._forks += 1

    def _reading(self, name: str) -> None:
        """Say at once which variable is read: there may be no later."""
        if name not in self._read:
            self._read.add(name)
            self._write(name)

    def _write(self, answer: Any) -> None:
        data = json.dumps(answer).encode() + b"\n"
        while data:
            data = data[os.write(self._answers, data) :]


def _watch_variables(told: Callable[[str], None]) -> None:
    """Have each variable of the environment told that is looked at in this process from now on."""

    class Watched(type(os.environ)):  # type: ignore[misc]  # the class of the environment has no public name
        def __getitem__(self, name: str) -> str:
            if isinstance(name, str):
                told(name)
            value: str = super().__getitem__(name)
            return value

    os.environ.__class__ = Watched
