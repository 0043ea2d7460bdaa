"""Runs the code of packs with a time limit, and captures its standard output."""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Generic, TypeVar

from ..api.errors import PluginError
from ..util.failures import told
from .model import Pack

T = TypeVar("T")

_SHOWN = 200


class Hung(PluginError):
    """A pack exceeded its time limit; `stack` says where, `files` are the sources involved."""

    def __init__(self, limit: float, frame: FrameType | None) -> None:
        import traceback  # only needed after an error

        super().__init__(f"did not finish loading within {limit:g} s")
        found = traceback.extract_stack(frame)
        self.stack = "".join(traceback.format_list(found))
        self.files: list[str] = [entry.filename for entry in found]


class Died(PluginError):
    """A pack ended the process that loads it; `stack` says where, if known."""

    def __init__(self, how: str) -> None:
        super().__init__(how)
        self.stack = ""
        self.files: list[str] = []


class Forked(PluginError):
    """A pack forked the process that loads it."""

    def __init__(self) -> None:
        super().__init__("forked while it was loaded, which would run each start twice. Fork when a tool is called")


class Printed(PluginError):
    """A pack printed to standard output; `stack` says where, and is empty for output of native code."""

    def __init__(self, text: str, stack: str) -> None:
        super().__init__(f"printed to standard output while it was loaded: {text!r}")
        self.stack = stack


def with_problem(pack: Pack, error: BaseException) -> Pack:
    """The pack as one that is left out, with its error and the place."""
    import traceback

    stack = error.stack if isinstance(error, (Hung, Died, Printed)) else ""
    stack = stack or "".join(traceback.format_exception(error))
    return pack.replace(problems=(told(error),), traceback=stack, left_out=True)


def isolated(works: Sequence[Callable[[], T]], limit: float) -> list[T | BaseException]:
    """Call functions that run code of packs, one after the other.

    Args:
        limit: seconds, for each.

    Returns:
        For each its result or exception: `Hung` if it exceeded the limit (its thread is left running, and does not
        block the exit), and `Printed` if it printed to standard output, which
        is reserved for the model's answer.
    """
    outcomes: list[T | BaseException] = []
    with _CapturedOutput() as captured:
        # One thread for all of them, since another one costs as much as a pack; a new one after one that hangs.
        while len(outcomes) < len(works):
            outcomes += _Worker(works[len(outcomes) :], limit, captured).run()
    return outcomes


class _Worker(Generic[T]):
    """Calls functions in a thread until all have returned, or one of them hangs."""

    def __init__(self, works: Sequence[Callable[[], T]], limit: float, captured: _CapturedOutput) -> None:
        self._works = works
        self._limit = limit
        self._captured = captured
        self._outcomes: list[T | BaseException] = []
        self._begun = 0.0
        self._given_up = False
        self._lock = threading.Lock()
        self._done = threading.Event()

    def run(self) -> list[T | BaseException]:
        """The results; the last one is `Hung` if it hung."""
        self._begun = time.monotonic()
        thread = threading.Thread(target=self._work, daemon=True)
        thread.start()
        while not self._done.wait(self._begun + self._limit - time.monotonic()):
            with self._lock:  # decides between a result and a timeout at the same moment
                if time.monotonic() - self._begun >= self._limit and not self._done.is_set():
                    self._given_up = True
                    hung = Hung(self._limit, sys._current_frames().get(thread.ident or 0))
                    self._captured.take()
                    return [*self._outcomes, hung]
        return self._outcomes

    def _work(self) -> None:
        for work in self._works:
            outcome = self._outcome(work)
            with self._lock:
                if self._given_up:
                    return
                self._outcomes.append(outcome)
                self._begun = time.monotonic()
        self._done.set()

    def _outcome(self, work: Callable[[], T]) -> T | BaseException:
        try:
            result = work()
        except BaseException as error:  # passed to the waiting thread
            if not self._given_up:
                self._captured.take()
            return error
        printed = "" if self._given_up else self._captured.take()
        return Printed(printed, self._captured.stack) if printed else result


class _Noticing(io.TextIOWrapper):
    """A replacement for standard output that records the stack of the first write."""

    stack = ""

    def write(self, text: str) -> int:
        """Write a text, and record the stack."""
        if not self.stack:
            import traceback

            self.stack = "".join(traceback.format_stack(sys._getframe(1)))
        return super().write(text)


class _CapturedOutput:
    """Redirects standard output, of Python and of the process, to a file.

    `stack` says where Python printed the result of the last `take`.
    """

    stack = ""

    def __enter__(self) -> _CapturedOutput:
        self._file = _file_without_name()
        self._read = 0
        self._flush()
        try:
            self._saved = os.dup(1)
        except OSError:  # standard output is closed: nothing can get out
            self._saved = -1
        else:
            os.dup2(self._file, 1)
        self._python, self._noticing = sys.stdout, _Noticing(io.FileIO(1, "w", closefd=False), "utf-8", "replace")
        sys.stdout = self._noticing
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._flush()
        sys.stdout = self._python
        if self._saved >= 0:
            os.dup2(self._saved, 1)
            os.close(self._saved)
        os.close(self._file)

    def take(self) -> str:
        """The beginning of the output since the last call."""
        self._flush()
        size = os.fstat(self._file).st_size
        text = os.pread(self._file, _SHOWN, self._read).decode("utf-8", "replace") if size > self._read else ""
        self._read = size
        self.stack, self._noticing.stack = self._noticing.stack, ""
        return text

    @staticmethod
    def _flush() -> None:
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
        except (OSError, ValueError):
            return


def _file_without_name() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("marvin-packs")
    from tempfile import TemporaryFile  # it takes longer to import than a pack does

    with TemporaryFile() as file:
        return os.dup(file.fileno())
