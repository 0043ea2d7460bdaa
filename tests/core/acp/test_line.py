"""The line to an editor: whatever comes is a message or is refused, and who reads nothing is left."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.acp.line import EditorLine
from tests.support.examples import examples

SECONDS = 60.0


def spoken(sent: bytes, pieces: int = 1) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What is taken of what an editor sends, in so many pieces, and what it is answered."""
    theirs, ours = os.pipe(), os.pipe()

    async def talk() -> list[dict[str, Any]]:
        line = EditorLine(theirs[0], ours[1])
        size = max(1, len(sent) // pieces)
        for start in range(0, len(sent), size):
            os.write(theirs[1], sent[start : start + size])
            await asyncio.sleep(0)
        os.close(theirs[1])
        taken = []
        while (message := await line.receive()) is not None:
            taken.append(message)
        await line.finish(SECONDS)
        return taken

    try:
        taken = asyncio.run(talk())
        os.close(ours[1])
        with open(ours[0], "rb") as stream:
            return taken, [json.loads(one) for one in stream.read().splitlines()]
    finally:
        os.close(theirs[0])


def test_messages_come_in_their_order_however_they_are_cut() -> None:
    sent = [{"id": number, "method": "ä" * number} for number in range(1, 9)]
    data = b"".join(json.dumps(one, ensure_ascii=False).encode() + b"\r\n\n" for one in sent)
    for pieces in (1, 7, len(data)):
        assert spoken(data, pieces) == (sent, [])


@pytest.mark.parametrize(
    "wrong",
    ["no json", "[]", "17", '"text"', "{}", '{"method": 5, "id": 1}', '{"method": "m", "id": [1]}', "[" * 5_000],
)
def test_what_is_no_message_is_refused_and_the_next_one_is_taken(wrong: str) -> None:
    taken, answered = spoken(wrong.encode() + b'\n{"id": 2, "method": "m"}\n')
    assert [one["id"] for one in taken] == [2]
    assert [one["error"]["code"] in (-32700, -32600) for one in answered] == [True]


def test_a_wrong_error_is_made_one_that_can_be_read() -> None:
    (taken,), _ = spoken(b'{"id": 2, "error": ["boom"]}\n')
    assert taken["error"] == {"code": -32603, "message": "['boom']"}


@given(st.lists(st.binary(max_size=200), max_size=5))
@examples(30)
def test_no_bytes_stop_it(chunks: list[bytes]) -> None:
    taken, _ = spoken(b"\n".join(chunks) + b'\n{"id": "last", "method": "m"}\n')
    assert taken[-1] == {"id": "last", "method": "m"}


def watched(work: Callable[[EditorLine, int], Awaitable[None]]) -> None:
    """Do something with a line whose other end reads nothing."""
    theirs, ours = os.pipe(), os.pipe()

    async def talk() -> None:
        await work(EditorLine(theirs[0], ours[1]), ours[0])

    try:
        asyncio.run(talk())
    finally:
        os.close(theirs[1])
        os.close(ours[1])


def test_an_editor_that_is_gone_ends_the_line() -> None:
    async def work(line: EditorLine, reading: int) -> None:
        os.close(reading)
        line.post({"method": "m"})
        async with asyncio.timeout(SECONDS):
            assert await line.receive() is None
            await line.finish(SECONDS)

    watched(work)


def test_an_editor_that_reads_nothing_is_left_before_memory_is_full() -> None:
    async def work(line: EditorLine, reading: int) -> None:
        for _ in range(3):
            line.post({"method": "x" * 30_000_000})
        async with asyncio.timeout(SECONDS):
            assert await line.receive() is None
        os.close(reading)

    watched(work)
