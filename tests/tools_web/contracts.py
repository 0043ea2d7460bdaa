"""Services as their published descriptions have them: what requests look like.

A test says with `Operation` what a service takes. `check` holds the requests that came to the descriptions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from marvin_core import Record
from marvin_core.testing import Answer, HttpReplay, ReplayedRequest, raw

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
                found.append(f"{name} is not a parameter")
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
