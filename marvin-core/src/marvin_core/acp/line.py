"""The transport to an editor: JSON-RPC messages, one per line, on two descriptors, with bounded queues."""

from __future__ import annotations

import asyncio
import json
import os
import select
import threading
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import Any

from ..util.threads import in_thread
from ..util.untrusted_json import LARGEST, parse_json

_CHUNK = 1 << 16
_AHEAD = 4
"""The maximum number of received lines in the queue."""
_MOST_WAITING = LARGEST
"""The maximum number of queued bytes; an editor that reads so slowly counts as disconnected."""
_PARSE_ERROR, _INVALID, _INTERNAL = -32700, -32600, -32603


class EditorLine:
    """Transfers messages as dictionaries; an invalid message is answered with an error and dropped.

    Create it in the event loop. `reading` and `writing` are file descriptors.
    """

    def __init__(self, reading: int, writing: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._reading, self._writing = reading, writing
        self._incoming: asyncio.Queue[tuple[Any, str] | None] = asyncio.Queue()
        self._ahead = threading.Semaphore(_AHEAD)
        self._outgoing: SimpleQueue[bytes | None] = SimpleQueue()
        self._count = threading.Lock()
        self._waiting = 0
        self._written = threading.Event()
        self._lost = False
        for work in (self._read, self._write):
            threading.Thread(target=work, name="editor", daemon=True).start()

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None once the editor has disconnected, or no longer reads."""
        while True:
            await asyncio.sleep(0)  # an endless sender must not starve other tasks
            taken = None if self._lost else await self._incoming.get()
            if taken is None:
                return None
            self._ahead.release()
            value, wrong = taken
            if wrong:
                self._refuse(None, _PARSE_ERROR, wrong)
                continue
            message = _sound(value)
            if isinstance(message, str):
                self._refuse(value.get("id") if isinstance(value, dict) else None, _INVALID, message)
                continue
            return message

    async def send(self, message: Mapping[str, Any]) -> None:
        """Queue a message, as `post` does."""
        self.post(message)

    def post(self, message: Mapping[str, Any]) -> None:
        """Queue a message. Returns at once."""
        data = json.dumps(message, separators=(",", ":"), default=str).encode() + b"\n"
        with self._count:
            self._waiting += len(data)
            too_much = self._waiting > _MOST_WAITING and self._waiting > len(data)
        if too_much:
            self._lose()
        elif not self._lost:
            self._outgoing.put(data)

    async def close(self) -> None:
        """Do nothing: the SDK's `Transport` requires this method, but `finish` still has to write the queue."""

    async def finish(self, seconds: float) -> None:
        """Wait until the queue is written, for at most this many seconds."""
        self._outgoing.put(None)
        if not self._lost:
            await in_thread(lambda: self._written.wait(seconds))

    def _refuse(self, identity: Any, code: int, text: str) -> None:
        identity = identity if isinstance(identity, (str, int)) else None
        self.post({"jsonrpc": "2.0", "id": identity, "error": {"code": code, "message": text}})

    def _lose(self) -> None:
        self._lost = True
        self._incoming.put_nowait(None)

    def _tell(self, work: Callable[..., None], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(work, *arguments)
        except RuntimeError:
            return  # the loop is closed

    def _read(self) -> None:
        """Split the input into lines, in a separate thread."""
        begun, is_too_long = bytearray(), False
        while chunk := self._some():
            *ends, rest = chunk.split(b"\n")
            for end in ends:
                begun += end
                if is_too_long:
                    self._hand_on(None, f"A line is longer than {LARGEST:,} bytes.")
                elif begun.strip():
                    self._hand_on(*_parsed(bytes(begun)))
                begun, is_too_long = bytearray(), False
            begun += rest
            if len(begun) > LARGEST:
                begun, is_too_long = bytearray(), True
        self._tell(self._incoming.put_nowait, None)

    def _some(self) -> bytes:
        while True:
            try:
                return os.read(self._reading, _CHUNK)
            except BlockingIOError:
                select.select([self._reading], [], [])
            except OSError:  # a read error counts as the end
                return b""

    def _hand_on(self, value: Any, wrong: str) -> None:
        self._ahead.acquire()
        self._tell(self._incoming.put_nowait, (value, wrong))

    def _write(self) -> None:
        """Write the queue, in a separate thread: a slow editor blocks nothing else."""
        while (data := self._outgoing.get()) is not None:
            left = memoryview(data)
            while left:
                try:
                    left = left[os.write(self._writing, left) :]
                except BlockingIOError:
                    select.select([], [self._writing], [])
                except OSError:
                    self._tell(self._lose)
                    self._written.set()
                    return
            with self._count:
                self._waiting -= len(data)
        self._written.set()


def _parsed(line: bytes) -> tuple[Any, str]:
    try:
        return parse_json(line), ""
    except ValueError as error:
        return None, f"A line is no JSON that can be used: {error}"


def _sound(value: Any) -> dict[str, Any] | str:
    """The value as a message with its types checked; otherwise the error."""
    if not isinstance(value, dict):
        return "A message is an object."
    method, identity = value.get("method"), value.get("id")
    if method is None and identity is None:
        return "A message has a method, or the id of what it answers."
    if not isinstance(method, (str, type(None))) or not isinstance(identity, (str, int, type(None))):
        return "The method must be a string, and the id a string or a number."
    if "error" in value and not isinstance(value["error"], dict):
        value["error"] = {"code": _INTERNAL, "message": str(value["error"])[:1_000]}
    return value
