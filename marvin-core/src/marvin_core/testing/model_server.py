"""A real HTTP server on loopback that sends scripted answers and records the requests.

`python -m marvin_core.testing.model_server --script FILE.json` runs it as a program; FILE has a list
of answers in the form of `answers.from_json`.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import deque
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, Self

from . import answers

if TYPE_CHECKING:
    import ssl

    from .answers import Answer

_HOST = "127.0.0.1"
_POLL = 0.02
"""The interval of checks for a closed server while an answer waits for an event, in seconds."""


class RecordedRequest:
    """A received request.

    `headers` has lower-case names, `body` is the JSON or None, `connection` is the number of the connection. `received`
    and `answered` are the times of the last byte of the request and of the answer (`time.monotonic()`). `gone` is set
    if the client disconnected before the end of the answer.
    """

    def __init__(self, method: str, path: str, headers: dict[str, str], content: bytes, connection: int) -> None:
        self.received = time.monotonic()
        self.answered: float | None = None
        self.method = method
        self.path = path
        self.headers = headers
        self.content = content
        self.connection = connection
        self.gone = threading.Event()
        try:
            self.body: Any = json.loads(content)
        except ValueError:
            self.body = None


class LoopbackServer:
    """Sends the answer that a subclass chooses for each request. `requests` records all requests.

    `tls` makes it an https server.
    """

    def __init__(self, *, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[RecordedRequest] = []
        self._tls = tls
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)
        self._closing = False
        self._open: dict[socket.socket, threading.Thread] = {}
        self._connections = 0
        self._listener = socket.create_server((_HOST, port), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        self._acceptor = threading.Thread(target=self._accept, name="loopback-server", daemon=True)
        self._acceptor.start()

    def answer_to(self, request: RecordedRequest) -> Answer:
        """The answer to a request. Called in the thread of the connection."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop, and cut every connection."""
        self._closing = True
        # Closing a socket does not wake a thread that waits in accept; a connection does.
        socket.create_connection((_HOST, self.port)).close()
        self._acceptor.join()
        self._listener.close()
        with self._lock:
            open_connections = dict(self._open)
        for connection, thread in open_connections.items():
            _shut(connection)
            thread.join()

    def wait_for(self, count: int) -> None:
        """Block until `count` requests have arrived."""
        with self._arrived:
            self._arrived.wait_for(lambda: len(self.requests) >= count)

    def wait_for_ends(self, count: int) -> None:
        """Block until `count` connections have ended."""
        with self._arrived:
            self._arrived.wait_for(lambda: self._connections - len(self._open) >= count)

    def hold(self, until: threading.Event) -> None:
        """Block until the event is set, or this server is closed."""
        while not until.wait(_POLL) and not self._closing:
            pass

    def record(self, request: RecordedRequest) -> None:
        """Record a request."""
        with self._arrived:
            self.requests.append(request)
            self._arrived.notify_all()

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self._closing:
                connection.close()
                return
            with self._lock:
                self._connections += 1
                thread = threading.Thread(target=self._serve, args=(connection, self._connections), daemon=True)
                self._open[connection] = thread
            thread.start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        wrapped = connection
        try:
            if self._tls is not None:
                wrapped = self._tls.wrap_socket(connection, server_side=True)
            _Handler(wrapped, self, number)
        except OSError:
            pass  # the client disconnected, or rejected our certificate
        finally:
            wrapped.close()
            connection.close()
            with self._arrived:
                self._open.pop(connection, None)
                self._arrived.notify_all()


class ModelServer(LoopbackServer):
    """Answers each POST with the next answer of its script, and GET .../models with `models`.

    Ollama's requests for facts about a model use no answer of the script. `repeat` starts the script again at its
    end; otherwise further requests get an error 500.
    """

    def __init__(
        self,
        *script: Answer,
        port: int = 0,
        models: Sequence[str] = ("scripted",),
        repeat: bool = False,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.models = list(models)
        self._script = deque(script)
        self._repeat = repeat
        super().__init__(port=port, tls=tls)

    @property
    def url(self) -> str:
        """The base URL."""
        return f"{'https' if self._tls else 'http'}://{_HOST}:{self.port}/v1"

    def script(self, *script: Answer) -> None:
        """Add answers to the script."""
        with self._lock:
            self._script.extend(script)

    def answer_to(self, request: RecordedRequest) -> Answer:
        """The answer to a request."""
        if request.path.endswith("/api/show"):
            return answers.error(404, "nothing is known of this model")  # Ollama is asked before the first request
        if request.method == "POST":
            return self.next_answer()
        if request.method == "GET" and request.path.partition("?")[0].endswith("/models"):
            entries = [{"id": model, "object": "model"} for model in self.models]
            return answers.document({"object": "list", "data": entries})
        return answers.error(404, "there is nothing here")

    def next_answer(self) -> Answer:
        """The next answer of the script."""
        with self._lock:
            if not self._script:
                return answers.error(500, f"script exhausted: this is request {len(self.requests)}")
            answer = self._script.popleft()
            if self._repeat:
                self._script.append(answer)
            return answer


class _Handler(BaseHTTPRequestHandler):
    """Handles one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, connection: socket.socket, owner: LoopbackServer, number: int) -> None:
        self._owner = owner
        self._number = number
        super().__init__(connection, (_HOST, owner.port), owner)  # type: ignore[arg-type]  # it only keeps it

    def _answer(self) -> None:
        request = self._record()
        self._send(request, self._owner.answer_to(request))

    do_DELETE = do_GET = do_HEAD = do_OPTIONS = do_PATCH = do_POST = do_PUT = _answer  # noqa: N815  # http.server's names

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: standard error belongs to the test."""

    def _record(self) -> RecordedRequest:
        content = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = RecordedRequest(self.command, self.path, headers, content, self._number)
        self._owner.record(request)
        return request

    def _send(self, request: RecordedRequest, answer: Answer) -> None:
        try:
            if not answer.silent:
                self._send_head(answer)
            if not answer.silent and request.method != "HEAD":
                self._send_body(answer)
            if answer.ending == "hang" and self.connection.recv(1) == b"":
                request.gone.set()
        except OSError:
            request.gone.set()
            self.close_connection = True
        request.answered = time.monotonic()
        if answer.ending != "complete" or answer.framing == "close":
            self.close_connection = True

    def _send_head(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers:
            self.send_header(name, value)
        if answer.framing == "chunked":
            self.send_header("transfer-encoding", "chunked")
        elif answer.framing == "length":
            self.send_header("content-length", str(len(answer.body)))
        else:
            self.send_header("connection", "close")
        self.end_headers()

    def _send_body(self, answer: Answer) -> None:
        chunked = answer.framing == "chunked"
        for step in answer.steps:
            if isinstance(step, threading.Event):
                self._owner.hold(step)
            elif not isinstance(step, bytes):
                time.sleep(step)
            elif step:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(step), step) if chunked else step)
        if chunked and answer.ending in ("complete", "close"):
            self.wfile.write(b"0\r\n\r\n")


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # the client was faster


def main(argv: Sequence[str] | None = None) -> None:
    """Serve a script file until interrupted; the base URL is the first line of standard output."""
    import argparse
    import sys
    from pathlib import Path

    parser = argparse.ArgumentParser(prog="python -m marvin_core.testing.model_server", description=main.__doc__)
    parser.add_argument("--script", type=Path, required=True, help="a JSON list of answers")
    parser.add_argument("--port", type=int, default=0, help="0, the default, takes a free one")
    parser.add_argument("--repeat", action="store_true", help="start again at the end of the script")
    options = parser.parse_args(argv)
    script = [answers.from_json(item) for item in json.loads(options.script.read_text("utf-8"))]
    with ModelServer(*script, port=options.port, repeat=options.repeat) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
