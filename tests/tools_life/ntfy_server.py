"""A server with the interface of ntfy, written from its documentation, https://docs.ntfy.sh.

It takes messages as JSON at `/`, hands them out at `/TOPICS/json?poll=1&since=TIME`, and can be told to fail.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

_TOPIC = re.compile(r"[-_A-Za-z0-9]{1,64}")


class NtfyService:
    """A running server at `url`.

    `requests` are the paths that were asked for. `token` is wanted where it is set. `answers` are sent instead, in
    their order: a status and a body; `silent` is no answer until the end.
    """

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self.token = ""
        self.answers: list[tuple[int, bytes]] = []
        self.silent = False
        self.held = threading.Event()
        """Answers wait for it; it is set unless a test clears it."""
        self.held.set()
        self.base = ""
        """The path that it stands under, as behind another server."""
        self.ended = threading.Event()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                service.handle(self)

            def do_POST(self) -> None:
                service.handle(self)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def running(self) -> Iterator[NtfyService]:
        """Serve as long as the block."""
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield self
        finally:
            self.ended.set()
            self.held.set()
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def put(self, topic: str, message: str, **fields: Any) -> dict[str, Any]:
        """A message, as another program publishes it."""
        entry = {"id": f"id{len(self.messages)}", "time": int(time.time()), "event": "message", "topic": topic}
        self.messages.append({**entry, "message": message, **fields})
        return self.messages[-1]

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        """Answer a request."""
        self.requests.append(request.path)
        body = request.rfile.read(int(request.headers.get("content-length") or 0))
        if self.silent:
            self.ended.wait()
            return
        self.held.wait(30)
        status, content = self.answers.pop(0) if self.answers else self._answer(request, body)
        request.send_response(status)
        request.send_header("content-type", "application/x-ndjson; charset=utf-8")
        request.send_header("content-length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)

    def _answer(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
        if self.token and request.headers.get("authorization") != f"Bearer {self.token}":
            return 401, b'{"code":40101,"http":401,"error":"unauthorized"}'
        url = urlsplit(request.path)
        if not url.path.startswith(f"{self.base}/"):
            return 404, b"<html>"
        url = url._replace(path=url.path.removeprefix(self.base))
        if request.command == "POST":
            given = json.loads(body)
            if url.path != "/" or not _TOPIC.fullmatch(given.get("topic", "")):
                return 400, b'{"code":40009,"http":400,"error":"invalid request: topic invalid"}'
            return 200, json.dumps(self.put(**given)).encode()
        topics = url.path.removesuffix("/json").strip("/").split(",")
        query = parse_qs(url.query)
        if not all(_TOPIC.fullmatch(topic) for topic in topics) or query.get("poll") != ["1"]:
            return 404, b'{"code":40401,"http":404,"error":"page not found"}'
        since = float(query["since"][0])
        found = [one for one in self.messages if one["topic"] in topics and one["time"] >= since]
        return 200, b"".join(json.dumps(one).encode() + b"\n" for one in found)
