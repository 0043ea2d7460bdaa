"""Calling for somebody who looks elsewhere."""

from __future__ import annotations

import asyncio
import time

from marvin_core.ui.plain.attention import Attention
from tests.support.engine import run, until

BELL, NOTICE = "\a", "\x1b]9;Marvin has answered.\x07"


def test_the_end_of_a_quick_answer_calls_nobody() -> None:
    written: list[str] = []
    attention = Attention(("bell", "notify"), 60.0, written.append, time.monotonic)
    attention.works()
    attention.answered()
    assert written == []


def test_the_end_of_a_long_one_does() -> None:
    written: list[str] = []
    attention = Attention(("bell", "notify"), 0.0, written.append, time.monotonic)
    attention.works()
    attention.answered()
    assert written == [BELL, NOTICE]
    written.clear()
    nothing = Attention((), 0.0, written.append, time.monotonic)
    nothing.begin()
    nothing.works()
    nothing.answered()
    nothing.close()
    assert written == []


def test_a_question_calls_once_nobody_has_typed_for_long_enough() -> None:
    async def go() -> None:
        written: list[str] = []
        last = time.monotonic()
        attention = Attention(("bell",), 0.2, written.append, lambda: last)
        attention.asks()
        assert written == []
        last = time.monotonic() + 0.1
        await until(lambda: bool(written))
        assert time.monotonic() >= last + 0.2
        assert written == [BELL]
        attention.settled()
        written.clear()
        last = time.monotonic()
        attention.asks()
        attention.settled()
        await asyncio.sleep(0.3)
        assert written == []

    run(go())


def test_the_title_is_given_back() -> None:
    async def go() -> list[str]:
        written: list[str] = []
        attention = Attention(("title",), 9.0, written.append, time.monotonic)
        attention.begin()
        attention.works()
        attention.asks()
        attention.settled()
        attention.answered()
        attention.close()
        return written

    written = run(go())
    assert written[0] == "\x1b[22;2t"
    assert written[-1] == "\x1b[23;2t"
    assert written[1:-1] == [f"\x1b]2;marvin{state}\x07" for state in ("", ": works", ": asks", ": works", "")]
