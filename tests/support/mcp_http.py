"""An MCP server over HTTP, written without the SDK, with a configurable misbehaviour."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def listens(port: int) -> bool:
    """Whether somebody listens on a port."""
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


class HttpServer(ThreadingHTTPServer):
    """The server. `seen` are its requests: method, target, and headers; `over` is set when it is to end."""

    daemon_threads = True

    def __init__(self, way: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.way = way
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        self.over = threading.Event()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}/mcp"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect."""


class _Handler(BaseHTTPRequestHandler):
    server: HttpServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """No stream of its own."""
        self._note()
        self._answer(405, b"", "text/plain")

    def do_DELETE(self) -> None:
        """The end of a session."""
        self._note()
        if self.server.way == "hang-close":
            self.server.over.wait(60)
        if self.server.way == "slow-close":
            self._trickle()
        self._answer(200, b"", "text/plain")

    def _trickle(self) -> None:
        """An answer that goes on and on."""
        self.send_response(200)
        self.send_header("content-length", "1000")
        self.end_headers()
        with suppress(OSError):
            while not self.server.over.wait(0.5):
                self.wfile.write(b"x")

    def do_POST(self) -> None:
        """A message."""
        self._note()
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        number, method = message.get("id"), message.get("method")
        way = self.server.way
        if number is None:
            self._answer(202, b"", "text/plain")
        elif way == "hang-start":
            self.server.over.wait(60)
        elif way == "refuses":
            self._answer(403, b"go away", "text/plain")
        elif method == "initialize":
            about = {"name": "trial", "version": "1"}
            can: dict[str, Any] = {"tools": {}}
            self._result(number, {"protocolVersion": "2025-11-25", "capabilities": can, "serverInfo": about})
        elif method == "tools/list":
            self._result(number, {"tools": [{"name": "act", "inputSchema": {"type": "object"}}]})
        elif method == "tools/call":
            self._call(number)
        else:
            error = {"code": -32601, "message": "no such method"}
            self._answer(200, json.dumps({"jsonrpc": "2.0", "id": number, "error": error}).encode())

    def _call(self, number: Any) -> None:
        way = self.server.way
        if way == "hang-call":
            self.server.over.wait(60)
        elif way == "large":
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(100_000_000))
            self.end_headers()
            with suppress(OSError):
                for _ in range(200):
                    self.wfile.write(b"x" * 500_000)
            self.close_connection = True
        elif way == "garbage":
            self._answer(200, b"\x00\xff {[ no json")
        elif way == "redirects":
            self.send_response(307)
            self.send_header("location", "http://127.0.0.1:1/stolen")
            self.send_header("content-length", "0")
            self.end_headers()
        else:
            self._result(number, {"content": [{"type": "text", "text": "done"}]})

    def _result(self, number: Any, result: Any) -> None:
        self._answer(200, json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode())

    def _answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
        with suppress(OSError):
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.send_header("mcp-session-id", "of-this-test")
            self.end_headers()
            self.wfile.write(body)

    def _note(self) -> None:
        self.server.seen.append((self.command, self.path, {key.lower(): value for key, value in self.headers.items()}))


@contextmanager
def http_server(way: str) -> Iterator[HttpServer]:
    """Run one in a thread."""
    server = HttpServer(way)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
