"""The server of the benchmarks, in a process of its own: it streams scripted answers and records timestamps.

It is spoken to over its standard input and output, a JSON line each way: a list of answers is
answered with their number, `null` with what happened to them. All stamps are nanoseconds of
CLOCK_MONOTONIC, which all processes of a machine share.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from contextlib import suppress
from typing import Any

from benchmarks.answers import Write, writes

_RECEIVE = 256 * 1024
_SHOWN = 300


class Desk:
    """The current script and its record. Parallel clients get the answers in turn."""

    def __init__(self) -> None:
        self._script: list[list[Write]] = []
        self._record: list[tuple[int, bytes, dict[str, int]]] = []
        self._order = threading.Lock()

    def play(self, descriptions: list[dict[str, Any]]) -> int:
        """Begin a new script."""
        self._record = []
        self._script = [writes(description, number) for number, description in enumerate(descriptions)]
        return len(self._script)

    def report(self) -> list[dict[str, Any]]:
        """When each request was complete and the marks of its answer were sent, and what the request held."""
        return [{"received": received, "marks": marks, **_shown(body)} for received, body, marks in self._record]

    def answer(self, connection: socket.socket) -> bool:
        """Serve one request; False where the client is gone or the script is at its end."""
        body = _receive(connection)
        received = time.monotonic_ns()
        marks: dict[str, int] = {}
        with self._order:
            number = len(self._record)
            if body is None or number >= len(self._script):
                return False
            self._record.append((received, body, marks))
        for data, mark, pause in self._script[number]:
            if pause:
                time.sleep(pause)
            if mark:
                marks[mark] = time.monotonic_ns()
            connection.sendall(data)
        return True


def _receive(connection: socket.socket) -> bytes | None:
    """The body of the next request, or None at the end of the connection."""
    received = b""
    while b"\r\n\r\n" not in received:
        data = connection.recv(_RECEIVE)
        if not data:
            return None
        received += data
    head, _, body = received.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    missing = int(lengths[0]) - len(body) if lengths else 0
    parts = [body]
    while missing > 0:
        data = connection.recv(_RECEIVE)
        if not data:
            return None
        parts.append(data)
        missing -= len(data)
    return b"".join(parts)


def _shown(body: bytes) -> dict[str, Any]:
    request = json.loads(body)
    tools = json.dumps(request.get("tools", []), ensure_ascii=False, separators=(",", ":"))
    last = request["messages"][-1]
    return {"tools": len(tools.encode()), "role": last["role"], "text": str(last["content"])[:_SHOWN]}


def _serve(listener: socket.socket, desk: Desk) -> None:
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=_answer, args=(connection, desk), daemon=True).start()


def _answer(connection: socket.socket, desk: Desk) -> None:
    """Serve one client: a Marvin keeps its connection while an agent of it has one of its own."""
    with connection, suppress(OSError):  # the client disconnected; the suite sees that by its exit code
        while desk.answer(connection):
            pass


def main() -> None:
    """Serve until standard input ends; the port is the first line of standard output."""
    listener = socket.create_server(("127.0.0.1", 0))
    desk = Desk()
    threading.Thread(target=_serve, args=(listener, desk), daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    for line in sys.stdin:
        script = json.loads(line)
        print(json.dumps(desk.report() if script is None else desk.play(script)), flush=True)


if __name__ == "__main__":
    main()
