"""An HTTP server on loopback that replaces every host, and the transport to it.

The requests are real: a real client sends them, and a real server receives them. Only the address of the connection
differs.
"""

from __future__ import annotations

import json as json_module
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from ..api.record import Record
from ..api.timeouts import Timeouts
from ..http.client import HttpSettings, load_httpx, make_client
from .answers import Answer
from .model_server import LoopbackServer, RecordedRequest

if TYPE_CHECKING:
    import httpx

_URL_HEADER = "x-marvin-replay-url"
UNEXPECTED = 599
_CHUNK = 64 * 1024


class ReplayedRequest(Record):
    """A request as it was sent: `url` is the original URL, `headers` have lower-case names."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json_module.loads(self.content)

    @property
    def params(self) -> dict[str, str]:
        """The query parameters of the URL; for a repeated name, the last value."""
        from urllib.parse import parse_qsl, urlsplit

        return dict(parse_qsl(urlsplit(self.url).query, keep_blank_values=True))


class _Route:
    def __init__(self, method: str, url: str, answer: Answer, times: int | None) -> None:
        self.method = method.upper()
        self.url = url
        self.answer = answer
        self.left = times
        self._address, self._query = _parts(url)

    def fits(self, request: ReplayedRequest) -> bool:
        address, query = _parts(request.url)
        same = self.method == request.method and self._address == address
        return same and self.left != 0 and self._query in ([], query)


class HttpReplay:
    """Answers requests to any host with the answers set by `on`, and records them in `requests`.

    A request without a matching answer gets status 599, and is recorded in `unexpected`.
    """

    def __init__(self) -> None:
        self.requests: list[ReplayedRequest] = []
        self.unexpected: list[ReplayedRequest] = []
        self._routes: list[_Route] = []
        self._server = _Server(self)

    def on(
        self,
        method: str,
        url: str,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        json: object = None,
        text: str | None = None,
        body: bytes = b"",
        chunked: bool = False,
        times: int | None = None,
        answer: Answer | None = None,
    ) -> None:
        """Set the answer to requests with this method and URL.

        Args:
            url: a URL with a query matches only requests with the same parameters, in any order; a URL without one
                matches any parameters.
            json, text, body: the content. The first two set the matching content type.
            chunked: send the content in HTTP chunks, without a content-length.
            times: the number of requests that get this answer, before the next matching one is used; by default all.
            answer: replaces all of these by an answer of `marvin_core.testing`, such as `hang()` or `cut_after(...)`.
        """
        if answer is None:
            answer = _answer(status, headers or {}, json, text, body, chunked)
        self._routes.append(_Route(method, url, answer, times))

    def forget(self) -> None:
        """Remove all answers and all recorded requests, except the unexpected ones."""
        self._routes.clear()
        self.requests.clear()

    def transport(self, connect_stagger: float = Timeouts().connect_stagger) -> httpx.AsyncBaseTransport:
        """A transport for an httpx client that sends all requests to this server."""
        load_httpx()
        from .redirecting import Redirecting

        return Redirecting(self._server.port, _URL_HEADER, connect_stagger)

    def client(self) -> httpx.AsyncClient:
        """A client that sends all requests to this server; close it with `aclose()`."""
        return make_client(HttpSettings(), timeout_read=Timeouts().http, tls=None, transport=self.transport())

    def check(self) -> None:
        """Raise `AssertionError` if there was an unexpected request."""
        if self.unexpected:
            raise AssertionError("\n".join(self._refusal(request) for request in self.unexpected))

    def close(self) -> None:
        """Stop, and cut every connection."""
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def answer_to(self, request: ReplayedRequest) -> Answer:
        """The answer to a request."""
        self.requests.append(request)
        for route in self._routes:
            if route.fits(request):
                route.left = None if route.left is None else route.left - 1
                return route.answer
        self.unexpected.append(request)
        return _answer(UNEXPECTED, {}, None, self._refusal(request), b"", False)

    def _refusal(self, request: ReplayedRequest) -> str:
        known = [
            f"{route.method} {route.url}" + (" (used up)" if route.left == 0 else "") for route in self._routes
        ] or ["nothing"]
        return f"unexpected request {request.method} {request.url}; expected: {', '.join(known)}"


class _Server(LoopbackServer):
    def __init__(self, owner: HttpReplay) -> None:
        self._owner = owner
        super().__init__()

    def answer_to(self, request: RecordedRequest) -> Answer:
        headers = dict(request.headers)
        url = headers.pop(_URL_HEADER, f"http://{headers.get('host', '')}{request.path}")
        replayed = ReplayedRequest(method=request.method, url=url, headers=headers, content=request.content)
        with self._lock:
            return self._owner.answer_to(replayed)


def _answer(
    status: int, headers: Mapping[str, str], json: object, text: str | None, body: bytes, chunked: bool
) -> Answer:
    fields = {name.lower(): value for name, value in headers.items()}
    if json is not None:
        body = json_module.dumps(json).encode()
        fields.setdefault("content-type", "application/json")
    elif text is not None:
        body = text.encode()
        fields.setdefault("content-type", "text/plain; charset=utf-8")
    steps = tuple(body[start : start + _CHUNK] for start in range(0, len(body), _CHUNK))
    answer = Answer(status=status, headers=tuple(fields.items()), steps=steps, framing="length")
    return answer.replace(framing="chunked") if chunked else answer


def _parts(url: str) -> tuple[tuple[str, str, int | None, bytes], list[tuple[str, str]]]:
    """The normalized address, and the sorted parameters."""
    load_httpx()
    import httpx

    parsed = httpx.URL(url)
    path = parsed.raw_path.partition(b"?")[0]
    return (parsed.scheme, parsed.host, parsed.port, path), sorted(parsed.params.multi_items())
