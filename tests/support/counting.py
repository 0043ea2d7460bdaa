"""How much is done, counted and not timed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any


def times_called(name: str, work: Callable[[], object]) -> int:
    """How often a Python function of this name is called while something is done."""
    return _counted(work, lambda code: code.co_name == name)


def calls_in_this_thread(work: Callable[[], object], part: str) -> int:
    """How many Python functions of files with this in their path are called in this thread while something is done."""
    return _counted(work, lambda code: part in code.co_filename)


def _counted(work: Callable[[], object], counts: Callable[[CodeType], bool]) -> int:
    """How many of the calls in this thread count."""
    count = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call" and counts(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
