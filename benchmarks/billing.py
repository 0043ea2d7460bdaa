"""A model service with bills: it counts the tokens that it gets and streams, as services do, whatever it reports.

It speaks chat completions. Every answer says something and calls a tool, until it may call none.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, NamedTuple, Self

INPUT, OUTPUT = 3.0, 15.0
"""USD for a million tokens."""
_WORDS = "the quick brown fox jumps over a lazy dog and goes on "
_ARGUMENTS = json.dumps({"path": "."})
_MILLION = 1_000_000
_DEFAULT_LIMIT = 32_000
_PIECE = 500
"""Bytes of text at once."""
_SPEED = 2_000
"""Tokens a second of an answer beyond its limit, as the fastest services: output that is not read is billed."""


class Manner(NamedTuple):
    """How the service behaves.

    `density` is the bytes of a token, `fed` how many times more input it counts than that, `hidden` the tokens of
    reasoning that it does not show, `longer` how many times longer than allowed its answers are. `dear` multiplies
    its prices. `fate` is what becomes of a request: some are read and then dropped (`eaten`), cut off in the
    arguments (`cut`), never answered (`silent`) or refused (`refused`); `every` says which ones.
    """

    density: float = 3.6
    fed: float = 1.0
    tokens: int = 900
    hidden: int = 0
    longer: float = 0.0
    dear: float = 1.0
    reports: Literal["exact", "late", "nothing", "no output"] = "exact"
    fate: Literal["answered", "eaten", "cut", "silent", "refused"] = "answered"
    every: int = 1


class Billing:
    """The running service. `manners` are by the first part of the path, as in /one/v1."""

    def __init__(self, **manners: Manner) -> None:
        self.manners = manners
        self.spent = 0.0
        self.requests = 0
        self._open = 0
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)
        self._server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"billing": self}))

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()

    def url(self, name: str = "one") -> str:
        """The base URL of the service of this name."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/{name}/v1"

    def arrived(self) -> int:
        """Count a request; returns its number, from 1 on."""
        with self._arrived:
            self.requests += 1
            self._open += 1
            self._arrived.notify_all()
            return self.requests

    def wait_for(self, count: int, limit: float) -> bool:
        """Block until this many requests have come; returns whether they did."""
        with self._arrived:
            return self._arrived.wait_for(lambda: self.requests >= count, limit)

    def billed(self, limit: float) -> bool:
        """Block until every request has its bill; returns whether they have."""
        with self._arrived:
            return self._arrived.wait_for(lambda: not self._open, limit)

    def bill(self, manner: Manner, fed: float, out: float) -> None:
        """Charge so many tokens for a request."""
        with self._arrived:
            self._open -= 1
            self._arrived.notify_all()
            self.spent += manner.dear * (fed * INPUT + out * OUTPUT) / _MILLION


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that disconnect; what they owe is billed."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    billing: Billing

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def do_GET(self) -> None:  # http.server's name
        self._document(200, {"object": "list", "data": []})

    def do_POST(self) -> None:  # http.server's name
        manner = self.billing.manners[self.path.split("/")[1]]
        body = self.rfile.read(int(self.headers["content-length"]))
        number = self.billing.arrived()
        request = json.loads(body)
        fed = len(body) / manner.density * manner.fed
        limit = request.get("max_tokens") or request.get("max_completion_tokens") or _DEFAULT_LIMIT
        answer = _Answer(manner, limit, last=request.get("tool_choice") == "none")
        fate = manner.fate if number % manner.every == 0 else "answered"
        if fate == "refused":
            self.billing.bill(manner, 0.0, 0.0)
            self._document(503, {"error": {"message": "The server is overloaded."}})
            return
        if fate in ("eaten", "silent"):
            self.billing.bill(manner, fed, answer.out)
            if fate == "silent":
                self.billing.closing.wait()
            self.close_connection = True
            return
        self._stream(answer, manner, fed, cut=fate == "cut")

    def _stream(self, answer: _Answer, manner: Manner, fed: float, *, cut: bool) -> None:
        """Stream an answer; a client that disconnects early pays for what was sent."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        sent = float(answer.hidden)
        try:
            for delta, size in answer.pieces(cut=cut):
                self._event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
                sent += size / manner.density
                if manner.longer:
                    time.sleep(size / manner.density / _SPEED)
            if cut:
                self.close_connection = True
                return
            self._end(answer, manner, fed, sent)
        except OSError:
            self.close_connection = True
        finally:
            self.billing.bill(manner, fed, sent)

    def _end(self, answer: _Answer, manner: Manner, fed: float, sent: float) -> None:
        usage = {"prompt_tokens": round(fed), "completion_tokens": round(sent), "total_tokens": round(fed + sent)}
        if manner.reports == "no output":
            usage |= {"completion_tokens": 0, "total_tokens": round(fed)}
        told = {} if manner.reports in ("nothing", "late") else {"usage": usage}
        self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": answer.reason}], **told})
        if manner.reports == "late":
            self._event({"choices": [], "usage": usage})
        self._chunk(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _event(self, data: dict[str, Any]) -> None:
        self._chunk(f"data: {json.dumps(data)}\n\n".encode())

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _document(self, status: int, data: dict[str, Any]) -> None:
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Answer:
    """What is answered: tokens of reasoning, text, and a call unless it is the last answer."""

    def __init__(self, manner: Manner, limit: int, *, last: bool) -> None:
        self._last = last
        self.out = float(min(manner.tokens + manner.hidden, limit))
        if manner.longer:
            self.out = limit * manner.longer
        self.hidden = int(min(manner.hidden, self.out))
        self._bytes = int((self.out - self.hidden) * manner.density)
        self.reason = "stop" if last else "tool_calls"

    def pieces(self, *, cut: bool) -> Iterator[tuple[dict[str, Any], int]]:
        """The deltas, each with the bytes in it that are billed."""
        arguments = "" if self._last else _ARGUMENTS
        if cut:  # nothing of it is shown, so that it is asked for again
            arguments = json.dumps({"path": _WORDS * (2 * self._bytes // len(_WORDS))})
        left = max(self._bytes - len(arguments), 0)
        while left > 0:
            piece = (_WORDS * (_PIECE // len(_WORDS) + 1))[: min(left, _PIECE)]
            left -= len(piece)
            yield {"content": piece}, len(piece)
        if arguments:
            given = arguments[: len(arguments) // 2] if cut else arguments
            call = {
                "index": 0,
                "id": "call_1",
                "type": "function",
                "function": {"name": "list_dir", "arguments": given},
            }
            yield {"tool_calls": [call]}, len(given)
