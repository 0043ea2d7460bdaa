"""Programs that are talked with."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from marvin_core import Conversation, ToolError
from marvin_core.api.timeouts import Timeouts
from marvin_core.guard.processes.runner import ProcessRunner
from tests.support.folders import Folders

LIMIT = 20.0


class Heard:
    """What a program wrote, and whether it has ended."""

    def __init__(self) -> None:
        self.output = b""
        self.ended = asyncio.Event()
        self._news = asyncio.Event()

    def take(self, chunk: bytes) -> None:
        self.output += chunk
        self._news.set()

    async def until(self, size: int) -> bytes:
        """The output, once it has so many bytes."""
        async with asyncio.timeout(LIMIT):
            while len(self.output) < size:
                self._news.clear()
                await self._news.wait()
        return self.output


@asynccontextmanager
async def talk(folder: Path, argv: Sequence[str]) -> AsyncIterator[tuple[Conversation, Heard]]:
    """A conversation with a program, whose runner is closed at the end."""
    runner = ProcessRunner(Folders(root=folder, base=folder), {"PATH": os.defpath}, Timeouts())
    heard = Heard()
    try:
        yield await runner.converse(argv, on_output=heard.take, on_end=heard.ended.set), heard
    finally:
        await runner.close()


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_what_is_sent_is_read_and_answered_whatever_its_size(tmp_path: Path) -> None:
    async def go() -> None:
        async with talk(tmp_path, ["cat"]) as (program, heard):
            sent = b"0123456789" * 100_000
            program.send(b"first\n")
            program.send(sent)
            program.send(b"last\n")  # while the pipe is full
            assert await heard.until(len(sent) + 11) == b"first\n" + sent + b"last\n"
            program.send(b"again\n")  # after all was taken
            assert (await heard.until(len(sent) + 17)).endswith(b"last\nagain\n")
            assert is_there(program.pid)
            await program.close()
            assert not program.running
            await asyncio.wait_for(heard.ended.wait(), LIMIT)
            with pytest.raises(ToolError, match="has ended"):
                program.send(b"more")

    asyncio.run(go())


def test_a_program_that_reads_nothing_is_not_fed_without_end(tmp_path: Path) -> None:
    async def go() -> int:
        async with talk(tmp_path, ["sleep", "300"]) as (program, _):
            program.send(b"x" * 20_000_000)
            with pytest.raises(ToolError, match="does not read"):
                program.send(b"x" * 20_000_000)
            return program.pid

    assert not is_there(asyncio.run(go()))


def test_a_program_that_ends_by_itself_is_noticed(tmp_path: Path) -> None:
    async def go() -> None:
        async with talk(tmp_path, ["sh", "-c", "echo bye"]) as (program, heard):
            await asyncio.wait_for(heard.ended.wait(), LIMIT)
            assert heard.output == b"bye\n"
            assert not program.running

    asyncio.run(go())


def test_a_program_that_is_not_there_is_told(tmp_path: Path) -> None:
    async def go() -> None:
        async with talk(tmp_path, ["no-such-program"]):
            raise AssertionError

    with pytest.raises(ToolError, match="not installed"):
        asyncio.run(go())
