"""Whose code is said to hold the event loop."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import pytest

from marvin_core.util.watchdog import attributed_call, holder


def in_module(name: str) -> Callable[[Callable[[], FrameType]], FrameType]:
    """A function that calls what it is given, with globals as those of a module have them."""
    made: dict[str, Any] = {}
    exec(compile("def held(look):\n    return look()", "<string>", "exec"), {"__name__": name}, made)
    held: Callable[[Callable[[], FrameType]], FrameType] = made["held"]
    return held


@pytest.mark.parametrize("name", ["namedtuple_Reply", "httpx._client", "idna.core", "asyncio.streams", "None"])
def test_code_that_is_no_packs_is_nobodys(name: str) -> None:
    """A named tuple's code lies in a module that there is not: the provider that made one was accused of it."""
    frame = attributed_call("the provider x", partial(in_module(name), sys._getframe))
    assert holder(frame) == ""


def test_code_of_a_pack_is_named_with_its_place() -> None:
    frame = attributed_call("the tool x", partial(in_module("pytest"), sys._getframe))
    assert holder(frame) == "the tool x (<string>, line 2)"
    assert holder(in_module("pytest")(sys._getframe)) == "", "nobody waits for it"


def test_generated_code_counts_as_its_callers() -> None:
    frame = attributed_call("the tool x", partial(in_module("pytest"), partial(in_module("made_up"), sys._getframe)))
    assert holder(frame) == "the tool x (<string>, line 2)"
