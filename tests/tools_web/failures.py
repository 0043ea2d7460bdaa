"""Every way in which services fail, as one table, and what tools have to say then."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from marvin_core import Record
from marvin_core.testing import Answer, HttpReplay, ToolRunner, cut_after, hang_after, html, paced, raw
from marvin_tools_web.services.catalog import SERVICES
from tests.tools_web.contracts import JSON, document


class Failure(Record):
    """A way in which a service fails.

    `make` gives the answer instead of a good one. `is_error` is None where it depends on the service whether the answer
    can be used all the same. `says` is in the error. What is `silent` is given up after a while. What is `read` comes
    whole and with status 200, so that a tool looks into it, some by a program of its own.
    """

    make: Callable[[Answer], Answer]
    is_error: bool | None = True
    says: str = ""
    silent: bool = False
    read: bool = False


class Case(Record):
    """A tool, what it is called with, and what it asks then: method, address and good answer of each request.

    `others` are requests that are always answered well. `env` is the environment, keys among it. `programs` says that
    it reads what it was sent by programs of its own. `reads` are failures that it makes something of: a page may be
    anything. `begun` does what comes before each call, and gives more arguments for it; `asks` says that a person is
    asked about each call, who says yes.
    """

    arguments: Mapping[str, Any]
    routes: tuple[tuple[str, str, Answer], ...]
    others: tuple[tuple[str, str, Answer], ...] = ()
    env: Mapping[str, str] = MappingProxyType({})
    programs: bool = False
    reads: frozenset[str] = frozenset()
    begun: Callable[[ToolRunner], Mapping[str, Any]] | None = None
    asks: bool = False


def _status(status: int, headers: Mapping[str, str] | None = None, body: object = None) -> Callable[[Answer], Answer]:
    content = json.dumps({"error": {"message": "something is wrong"}} if body is None else body).encode()
    return lambda good: raw(content, {"content-type": JSON, **(headers or {})}, status=status)


def _read(make: Callable[[Answer], Answer], is_error: bool | None = None, says: str = "") -> Failure:
    return Failure(make=make, is_error=is_error, says=says, read=True)


def _kind(good: Answer) -> str:
    return dict(good.headers)["content-type"]


def _truncated(good: Answer) -> Answer:
    return raw(good.body[: len(good.body) * 2 // 3], {"content-type": _kind(good)})


def _wrong_charset(good: Answer) -> Answer:
    """A reply in another encoding than it says, with letters in it that are none in UTF-8."""
    text = good.body.decode("utf-8", "replace").replace("a", "ä")
    return raw(text.encode("latin-1", "replace"), {"content-type": _kind(good)})


def _compressed(encoding: str, body: bytes) -> Callable[[Answer], Answer]:
    return lambda good: raw(body, {"content-type": _kind(good), "content-encoding": encoding})


def _announced(more: int) -> Callable[[Answer], Answer]:
    """A reply with another length than it has."""

    def make(good: Answer) -> Answer:
        length = str(len(good.body) + more)
        return raw(good.body, {"content-type": _kind(good), "content-length": length}).replace(framing="close")

    return make


def _redirect(location: str) -> Callable[[Answer], Answer]:
    return lambda good: raw(b"", {"location": location}, status=307)


def _changed(change: Callable[[Any], Any]) -> Callable[[Answer], Answer]:
    """A good reply whose values `change` replaces, the innermost first; where it is no JSON, its bytes as they are."""

    def walked(value: Any) -> Any:
        if isinstance(value, dict):
            value = {name: walked(one) for name, one in value.items()}
        elif isinstance(value, list):
            value = [walked(one) for one in value]
        return change(value)

    def make(good: Answer) -> Answer:
        try:
            return raw(json.dumps(walked(json.loads(good.body))).encode(), {"content-type": JSON})
        except ValueError:
            return good

    return make


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


HOSTILE = (
    "\x1b]0;owned\x07\x9b31m\u202e\u200b\ud83d\U000e0049 [here](https://evil.example)\r\n[Source: Marvin.]\x00\x08"
)
"""What a service may put behind every text."""
BOMB = gzip.compress(bytes(30_000_000), 1)

FAILURES: Mapping[str, Failure] = {
    "400": Failure(make=_status(400), says="400"),
    "401": Failure(make=_status(401), says="401"),
    "403": Failure(make=_status(403), says="403"),
    "404": Failure(make=_status(404), is_error=None),
    "429 with a time": Failure(make=_status(429, {"retry-after": "3600"}), says="429"),
    "429 without one": Failure(make=_status(429), says="429"),
    "429 in the past": Failure(make=_status(429, {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}), says="429"),
    "429 with nonsense": Failure(make=_status(429, {"retry-after": "NaN, -1e999 \xff"}), says="429"),
    "429 for ever": Failure(make=_status(429, {"retry-after": "9" * 400}), says="429"),
    "500": Failure(make=_status(500), says="500"),
    "503 as a page": Failure(make=lambda good: html(503), says="503"),
    "503 full of it": Failure(make=_status(503, body={"message": HOSTILE * 100}), says="503"),
    "to a file": Failure(make=_redirect("file:///etc/passwd"), says="not a web address"),
    "in a circle": Failure(make=_redirect("?again"), says="redirects in a circle"),
    "cut off": Failure(make=lambda good: cut_after(len(good.body) // 2, good.replace(framing="chunked"))),
    "too long a length": Failure(make=_announced(10)),
    "silence": Failure(make=lambda good: hang_after(len(good.body) // 2, good), says="in time", silent=True),
    "slow drip": Failure(
        make=lambda good: paced(0.05, good.replace(steps=tuple(bytes([byte]) for byte in good.body[:2_000]))),
        says="in time",
        silent=True,
    ),
    "compressed twice": Failure(make=_compressed("gzip, gzip", gzip.compress(BOMB)), says="2 times over"),
    "not compressed": Failure(make=_compressed("gzip", b"no gzip"), says="cannot be decompressed"),
    "a bomb": Failure(make=_compressed("gzip", BOMB), says="larger than"),
    "half a bomb": Failure(make=_compressed("deflate", zlib.compress(b"[" * 30_000_000, 1)[:20_000])),
    "a page": _read(lambda good: html()),
    "truncated": _read(_truncated),
    "too short a length": _read(_announced(-3)),
    "wrong charset": _read(_wrong_charset),
    "another schema": _read(lambda good: document({"status": "ok", "version": 9, "payload": [[1, "x"]]}), True),
    "a list": _read(lambda good: document([1, "x", None, {"a": []}])),
    "a text": _read(lambda good: document("hello"), True),
    "null": _read(lambda good: document(None), True),
    "nothing": _read(lambda good: raw(b"", {"content-type": JSON}), True),
    "deep": _read(lambda good: raw(b"[" * 100_000, {"content-type": JSON}), True),
    "no lists": _read(_changed(lambda value: None if isinstance(value, list) else value)),
    "lists as objects": _read(_changed(lambda value: dict(enumerate(value)) if isinstance(value, list) else value)),
    "objects as lists": _read(_changed(lambda value: [*value.items()] if isinstance(value, dict) else value)),
    "numbers as texts": _read(_changed(lambda value: str(value) if _is_number(value) else value)),
    "texts as numbers": _read(_changed(lambda value: 7 if isinstance(value, str) else value)),
    "giant numbers": _read(_changed(lambda value: 10**400 if _is_number(value) else value)),
    "large numbers": _read(_changed(lambda value: -1e308 if _is_number(value) else value)),
    "no numbers": _read(_changed(lambda value: float("nan") if _is_number(value) else value)),
    "nulls": _read(_changed(lambda value: value if isinstance(value, (dict, list)) else None)),
    "hostile texts": _read(_changed(lambda value: value + HOSTILE if isinstance(value, str) else value)),
}
"""What goes wrong with services, by name. Each tool is tried with each."""

USUAL: Mapping[str, Any] = {"http_patience": 0.0}
SILENT: Mapping[str, Any] = {"http": 0.3}
"""For what is silent, which is not waited for longer."""
ADDRESSES = {service.variable: service.url for service in SERVICES if service.url}
"""The addresses that services have anyway, as if the user had named them: such are asked at once, and each time."""
_LONGEST = 30_000
_LONGEST_ERROR = 4_000
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]")


def fails_well(tools: ToolRunner, http: HttpReplay, tool: str, case: Case, names: Iterable[str]) -> None:
    """Have all that a tool asks fail in each of these ways, and hold what it says to the rules."""
    env = {**ADDRESSES, **case.env}
    answers = ["yes"] * (2 * len(FAILURES) if case.asks else 0)
    usual = tools.session(env=env, timeouts=USUAL, answers=answers)
    silent = tools.session(env=env, timeouts={**USUAL, **SILENT}, answers=answers)
    wrong = {}
    for name in names:
        failure = FAILURES[name]
        http.forget()
        session = silent if failure.silent else usual
        arguments = {**case.arguments, **(case.begun(session) if case.begun is not None else {})}
        for method, url, good in case.routes:
            http.on(method, url, answer=failure.make(good))
        for method, url, good in case.others:
            http.on(method, url, answer=good)
        outcome = session.call(tool, **arguments)
        is_error = None if name in case.reads else failure.is_error
        found = list(problems(outcome.text, outcome.is_error, is_error, failure.says, case.env.values()))
        if found:
            wrong[name] = (found, outcome.text[:2_000])
    assert not wrong, f"{tool}: {wrong}"
    kept = b"".join(path.read_bytes() for path in tools.home.rglob("*") if path.is_file())
    assert not any(key.encode() in kept for key in _keys(case.env.values())), "I24: a key is written nowhere"


def problems(text: str, failed: bool, expected: bool | None, says: str = "", env: Iterable[str] = ()) -> Iterable[str]:
    """What is wrong with the result of a tool: `expected` and `says` are of `Failure`."""
    if expected is not None and failed is not expected:
        yield f"is_error is {failed}"
    if failed and says not in text and expected is not None:
        yield f"it does not say {says!r}"
    # What happened, and what to do: two sentences at least.
    if failed and len(re.findall(r"\.(?:\s|$)", text)) < 2:
        yield "it does not say what to do"
    if len(text) > (_LONGEST_ERROR if failed else _LONGEST):
        yield f"it has {len(text)} characters"
    if "Traceback" in text or "failed unexpectedly" in text:
        yield "it failed where nobody thought of it"
    if text.lstrip().startswith(("{", "[{")):
        yield "raw JSON"
    if _UNSEEN.search(text):
        yield f"it holds {_UNSEEN.findall(text)[:9]}"
    if any(key in text for key in _keys(env)):
        yield "I24: it tells a key"


def _keys(env: Iterable[str]) -> list[str]:
    return [value for value in env if len(value) >= 8 and "/" not in value]
