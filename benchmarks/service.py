"""The scripted server as the suite holds it: a process of its own, asked over its standard input and output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from benchmarks.answers import Description

_ROOT = Path(__file__).resolve().parent.parent


class ServiceError(Exception):
    """The server is gone; nothing can be measured any more."""


class Exchange(NamedTuple):
    """One request as the server saw it, and the marks of its answer; nanoseconds of the monotonic clock.

    `tools` is the size of its schemas in bytes, `role` and `text` are of its last message.
    """

    received: int
    marks: dict[str, int]
    tools: int
    role: str
    text: str


class Service:
    """The running server. It runs on this checkout's Python, whatever is measured."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.server"],
            cwd=_ROOT,
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.url = f"http://127.0.0.1:{self._line()}/v1"
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._process.terminate()
        with suppress(BrokenPipeError):  # it was gone before, with a question on its way
            self._process.communicate()

    def play(self, script: Sequence[Description]) -> None:
        """Begin a new script."""
        self._ask(list(script))

    def report(self) -> list[Exchange]:
        """What has happened since the script began."""
        return [Exchange(**entry) for entry in self._ask(None)]

    def _ask(self, question: object) -> Any:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._gone() from None
        return json.loads(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        if line := self._process.stdout.readline():
            return line.strip()
        raise self._gone()

    def _gone(self) -> ServiceError:
        return ServiceError(f"the scripted server ended with {self._process.wait()}, nobody here asked it to")
