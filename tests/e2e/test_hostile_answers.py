"""A service that sends without an end: the run ends by itself, with the reason, and in bounded memory."""

from __future__ import annotations

import gzip
import itertools
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from marvin_core.testing import ModelServer, text
from tests.e2e.support_e2e import PROGRAM, Marvin, assert_cost_last

ROOM = 100_000
"""KB above the size of an ordinary run."""
LIMIT = 150.0
"""Seconds; a run takes a few, and much more on a busy machine."""
_ADDRESS_SPACE = 1_500_000
"""KB that the program may take at most, so that a mistake does not take the machine down."""


def event(payload: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


def delta(**fields: Any) -> bytes:
    return event({"choices": [{"index": 0, "delta": fields, "finish_reason": None}]})


def arguments(fragment: str) -> bytes:
    return delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "run_command", "arguments": fragment}}])


def forever(piece: bytes, head: bytes = b"") -> Iterator[bytes]:
    return itertools.chain([head], itertools.repeat(piece))


def dense(brackets: bytes) -> Iterator[bytes]:
    """An event of objects, each of which takes many times its bytes."""
    return forever(brackets * 3000, b'data: {"choices": [')


KINDS: Mapping[str, tuple[str, Callable[[], Iterator[bytes]]]] = {
    "a line": ("", lambda: forever(b"x" * 65_536, b"data: ")),
    "a document": ("", lambda: forever(b"x" * 65_536, b'{"a": "')),
    "objects": ("", lambda: itertools.chain([b'data: {"a": ['], [b'{"":0},' * 9_000] * 60, [b"0]}\n\n"])),
    "lists": ("", lambda: itertools.chain([b"data: "], [b"[[],[[]],[]]," * 9_000] * 30, [b"\n\n"])),
    "text": ("", lambda: forever(delta(content="word " * 2_000))),
    "wide text": ("", lambda: forever(delta(content="\U0001f600" * 2_000))),
    "short pieces of text": ("", lambda: forever(delta(content="words") * 200)),
    "thinking": ("", lambda: forever(delta(reasoning_content="word " * 2_000))),
    "arguments": ("", lambda: forever(arguments("x" * 10_000))),
    "calls": ("", lambda: (delta(tool_calls=[{"index": n, "function": {"name": "f"}}]) for n in itertools.count())),
    "comments, compressed": ("gzip", lambda: forever(gzip.compress(b": keep-alive\n\n" * 5_000_000))),
    "empty deltas, compressed": ("gzip", lambda: forever(gzip.compress(delta() * 1_000_000))),
    "twice compressed": ("gzip, gzip", lambda: forever(gzip.compress(gzip.compress(bytes(50_000_000))))),
}
SMALLER = {
    "empty deltas, compressed": "limits: {stream: 20000000}\n",
    "short pieces of text": "limits: {answer: 500000}\n",
}
"""Limits of those that take long to reach the usual ones."""


class Endless:
    """A server that answers each POST with pieces until the client is gone."""

    def __init__(self, encoding: str, pieces: Callable[[], Iterator[bytes]]) -> None:
        self.posts = 0
        self._head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
        self._head += f"content-encoding: {encoding}\r\n\r\n".encode() if encoding else b"\r\n"
        self._pieces = pieces
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                head += connection.recv(65_536)
            if not head.startswith(b"POST"):
                connection.sendall(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                return
            self.posts += 1
            connection.sendall(self._head)
            for piece in self._pieces():
                connection.sendall(piece)


@contextmanager
def endless(kind: str) -> Iterator[Endless]:
    server = Endless(*KINDS[kind])
    try:
        yield server
    finally:
        server.close()


# A process of its own, and a small one: a child counts what its parent takes when it is started.
_WATCH = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, code)
"""


def peak(marvin: Marvin, url: str) -> tuple[int, int, bytes]:
    """The most memory that a run took, in KB, its exit code and what it said."""
    limited = ["sh", "-c", f'ulimit -v {_ADDRESS_SPACE}; exec "$@"', "sh", *PROGRAM]
    done = subprocess.run(
        [sys.executable, "-P", "-S", "-c", _WATCH, *limited, "--non-interactive", "--prompt", "Do it."],
        cwd=marvin.project,
        env={**marvin.env, "OPENAI_COMPAT_URL": url},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LIMIT,
    )
    most, code = map(int, done.stdout.split())
    return most, code, done.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere memory is counted in other units")
@pytest.mark.parametrize("kind", KINDS)
def test_memory_stays_bounded(marvin: Marvin, kind: str) -> None:
    """I22: the run ends with the reason, nothing is asked for again, and MARVIN_COST is the last line."""
    marvin.config(SMALLER.get(kind, ""))
    with ModelServer(text("Hello.")) as plain:
        before, code, _ = peak(marvin, plain.url)
        assert code == 0
    with endless(kind) as server:
        most, code, said = peak(marvin, server.url)
    assert code == 1, said[-2000:]
    assert_cost_last(said)
    assert b"openai-compat" in said
    assert server.posts == 1
    print(f"{kind}: {(most - before) / 1000:.0f} MB above {before / 1000:.0f} MB")
    assert most - before < ROOM
