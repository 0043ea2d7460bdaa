"""Services as their published descriptions have them: what requests look like, and every way in which they fail.

A test says with `Operation` what a service takes, and `serve` answers as it does. `check` holds the requests that came
to the descriptions. `FAILURES` is the table of what goes wrong with services; `failing` makes the answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from marvin_core import Record
from marvin_core.testing import Answer, HttpReplay, ReplayedRequest, ToolRunner, cut_after, hang_after, html, paced, raw

JSON = "application/json; charset=utf-8"
_ALWAYS = {"user-agent": r"(Marvin/\d|Mozilla/5\.0 \(compatible; Marvin/\d)"}


class Operation(Record):
    """One operation of a service, as its description has it.

    `url` is a regular expression for all of the address but the query. `required` and `optional` are the parameters of
    the query, each with a regular expression for its value. `headers` likewise; those of every request are beside them.
    `body` is called with the content of the request and says what is wrong with it, or nothing.
    """

    method: str = "GET"
    url: str
    required: Mapping[str, str] = MappingProxyType({})
    optional: Mapping[str, str] = MappingProxyType({})
    headers: Mapping[str, str] = MappingProxyType({})
    body: Callable[[bytes], str] | None = None

    def problems(self, request: ReplayedRequest) -> list[str]:
        """What of a request the description does not allow."""
        address = request.url.partition("?")[0]
        found = []
        if request.method != self.method:
            found.append(f"the method is {request.method}, not {self.method}")
        if not re.fullmatch(self.url, address):
            found.append(f"{address} is not {self.url}")
        found += [f"{name} is missing" for name in self.required if name not in request.params]
        known = {**self.required, **self.optional}
        for name, value in request.params.items():
            if name not in known:
                found.append(f"{name} is no parameter")
            elif not re.fullmatch(known[name], value, re.DOTALL):
                found.append(f"{name} is {value!r}, not {known[name]}")
        for name, pattern in {**_ALWAYS, **self.headers}.items():
            if not re.match(pattern, request.headers.get(name, "")):
                found.append(f"the header {name} is {request.headers.get(name)!r}, not {pattern}")
        wrong = self.body(request.content) if self.body is not None and request.method == self.method else ""
        return [*found, wrong] if wrong else found


def check(http: HttpReplay, *operations: Operation) -> None:
    """Every request that came is one that the descriptions allow."""
    assert http.requests, "nothing was asked"
    for request in http.requests:
        problems = [operation.problems(request) for operation in operations]
        best = min(problems, key=len)
        assert not best, f"{request.method} {request.url}: {'; '.join(best)}"


def document(value: object, kind: str = JSON) -> Answer:
    """A reply in JSON."""
    return raw(json.dumps(value, ensure_ascii=False).encode(), {"content-type": kind})


class Failure(Record):
    """A way in which a service fails.

    `make` gives the answer instead of a good one. `is_error` is None where it depends on the service whether the answer
    can be used all the same. `says` is in the error.
    """

    make: Callable[[Answer], Answer]
    is_error: bool | None = True
    says: str = ""


def _status(status: int, headers: Mapping[str, str] | None = None, body: object = None) -> Callable[[Answer], Answer]:
    content = json.dumps({"error": {"message": "something is wrong"}} if body is None else body).encode()
    return lambda good: raw(content, {"content-type": JSON, **(headers or {})}, status=status)


def _truncated(good: Answer) -> Answer:
    half = good.body[: len(good.body) * 2 // 3]
    return raw(half, {"content-type": dict(good.headers)["content-type"]})


def _wrong_charset(good: Answer) -> Answer:
    """A reply in another encoding than it says, with letters in it that are none in UTF-8."""
    text = good.body.decode("utf-8", "replace").replace("a", "ä")
    return raw(text.encode("latin-1", "replace"), {"content-type": dict(good.headers)["content-type"]})


FAILURES: Mapping[str, Failure] = {
    "400": Failure(make=_status(400), says="400"),
    "401": Failure(make=_status(401), says="401"),
    "403": Failure(make=_status(403), says="403"),
    "404": Failure(make=_status(404), is_error=None),
    "429 with a time": Failure(make=_status(429, {"retry-after": "3600"}), says="429"),
    "429 without one": Failure(make=_status(429), says="429"),
    "500": Failure(make=_status(500), says="500"),
    "503 as a page": Failure(make=lambda good: html(503), says="503"),
    "a page": Failure(make=lambda good: html(), is_error=None),
    "truncated": Failure(make=_truncated, is_error=None),
    "cut off": Failure(make=lambda good: cut_after(len(good.body) // 2, good.replace(framing="chunked"))),
    "silence": Failure(make=lambda good: hang_after(len(good.body) // 2, good), says="in time"),
    "slow drip": Failure(
        make=lambda good: paced(0.05, good.replace(steps=tuple(bytes([byte]) for byte in good.body[:2_000]))),
        says="in time",
    ),
    "wrong charset": Failure(make=_wrong_charset, is_error=None),
    "another schema": Failure(make=lambda good: document({"status": "ok", "version": 9, "payload": [[1, "x"]]})),
    "a list": Failure(make=lambda good: document([1, "x", None, {"a": []}]), is_error=None),
    "a text": Failure(make=lambda good: document("hello")),
    "null": Failure(make=lambda good: document(None)),
    "nothing": Failure(make=lambda good: raw(b"", {"content-type": JSON})),
    "deep": Failure(make=lambda good: raw(b"[" * 100_000, {"content-type": JSON})),
}
"""What goes wrong with services, by name. Each tool is tried with each."""

TIMEOUTS: Mapping[str, Any] = {"http": 0.5, "http_patience": 0.2}
"""For tests of failures: services that are silent are not waited for longer."""

_HOSTILE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def failed_well(
    tools: ToolRunner,
    http: HttpReplay,
    failure: str,
    routes: Iterable[tuple[str, str, Answer]],
    call: tuple[str, Mapping[str, Any]],
    **options: Any,
) -> str:
    """Have all routes of a tool fail in one way, call it, and hold what it says to the rules. Returns the text.

    Args:
        routes: method, address and good answer of each.
        call: the tool and its arguments.
    """
    described = FAILURES[failure]
    for method, url, good in routes:
        http.on(method, url, answer=described.make(good))
    session = tools.session(timeouts=TIMEOUTS, **options)
    outcome = session.call(call[0], **call[1])
    assert outcome.elapsed < 30
    if described.is_error is not None:
        assert outcome.is_error is described.is_error, outcome.text
    if outcome.is_error:
        assert described.says in outcome.text, outcome.text
        # What happened, and what to do: two sentences at least.
        assert len(re.findall(r"\.(?:\s|$)", outcome.text)) >= 2, outcome.text
    assert len(outcome.text) < 4_000, len(outcome.text)
    assert "Traceback" not in outcome.text
    assert not outcome.text.lstrip().startswith(("{", "[{")), "raw JSON"
    assert not _HOSTILE.search(outcome.text), outcome.text
    return outcome.text
