"""Running the code of packs: within a time, with standard output kept clean."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable
from tempfile import TemporaryFile
from typing import Any, TypeVar

from .errors import PluginError

T = TypeVar("T")

_SHOWN = 200


class Hung(PluginError):
    """A pack took too long; `stack` says where it was, `files` which sources had a part in it."""

    def __init__(self, limit: float, frame: Any) -> None:
        super().__init__(f"did not finish loading within {limit:g} s")
        found = traceback.extract_stack(frame)
        self.stack = "".join(traceback.format_list(found))
        self.files = [entry.filename for entry in found]


def isolated(work: Callable[[], T], limit: float) -> T:
    """Do what a pack's code has a part in.

    Args:
        limit: seconds.

    Raises:
        Hung: where it does not finish in time; its thread is left behind and cannot hold up the exit.
        PluginError: where it prints to standard output, which belongs to the model's answer.
        Exception, SystemExit: what it raises itself.
    """
    outcome: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:  # handed to the waiting side, whatever it is
            failure.append(error)

    thread = threading.Thread(target=run, daemon=True)
    with _CapturedOutput() as captured:
        thread.start()
        thread.join(limit)
    if thread.is_alive():
        raise Hung(limit, sys._current_frames().get(thread.ident or 0))
    if failure:
        raise failure[0]
    if captured.text:
        raise PluginError(f"printed to standard output while it was loaded: {captured.text[:_SHOWN]!r}")
    return outcome[0]


class _CapturedOutput:
    """Standard output, of Python and of the process, goes to a file for a while."""

    def __init__(self) -> None:
        self.text = ""

    def __enter__(self) -> _CapturedOutput:
        self._file = TemporaryFile()
        self._flush()
        try:
            self._saved = os.dup(1)
        except OSError:  # standard output is closed: nothing can get out
            self._saved = -1
        else:
            os.dup2(self._file.fileno(), 1)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._flush()
        if self._saved >= 0:
            os.dup2(self._saved, 1)
            os.close(self._saved)
        self._file.seek(0)
        self.text = self._file.read(_SHOWN).decode("utf-8", "replace")
        self._file.close()

    @staticmethod
    def _flush() -> None:
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
        except (OSError, ValueError):
            return
