"""A real HTTP server on loopback that replays scripted answers and records what it was asked.

`python -m marvin_core.testing.model_server --script FILE.json` runs it as a program; FILE holds a
list of answers as `answers.from_json` takes them.
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
"""Seconds between two looks at whether the server was closed, while an answer waits for an event."""


class RecordedRequest:
    """A request as it came in.

    `headers` has lower-case names, `body` is the JSON or None, `connection` numbers the connection,
    `received` and `answered` are `time.monotonic()` of its last byte and of the answer's. `gone` is
    set when the client went away before the end of the answer.
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
    """Gives each request the answer that a subclass chooses. `requests` records all of them.

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
        """What is answered to a request; called in the thread of its connection."""
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
        """Block until so many requests have come."""
        with self._arrived:
            self._arrived.wait_for(lambda: len(self.requests) >= count)

    def wait_for_ends(self, count: int) -> None:
        """Block until so many connections have ended."""
        with self._arrived:
            self._arrived.wait_for(lambda: self._connections - len(self._open) >= count)

    def hold(self, until: threading.Event) -> None:
        """Block until the event is set, or this server is closed."""
        while not until.wait(_POLL) and not self._closing:
            pass

    def record(self, request: RecordedRequest) -> None:
        """Take note of a request."""
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
            pass  # the client went away, or refused our certificate
        finally:
            wrapped.close()
            connection.close()
            with self._arrived:
                self._open.pop(connection, None)
                self._arrived.notify_all()


class ModelServer(LoopbackServer):
    """Answers each POST with the next answer of its script, and GET .../models with `models`.

    What Ollama is asked about a model is answered apart, and takes no answer of the script.

    `repeat` starts the script again at its end; else a request too many gets a 500 that says so.
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
        """What is answered to a request."""
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
    """One connection."""

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
        """Nothing: standard error belongs to the test."""

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
