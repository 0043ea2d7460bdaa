"""The kinds of mocks in tests, in any language, and what to write instead."""

from __future__ import annotations

from collections.abc import Mapping

ALTERNATIVES: Mapping[str, str] = {
    "library": "use the real part: a function of the program with real values, a temporary folder, a real child "
    "process, a database in memory",
    "patch": "pass the part as a parameter or through the configuration, and give the test a real one: a temporary "
    "folder, a simple clock, another address",
    "service": "start a small local server on a free port of 127.0.0.1 that answers as the service does",
    "time": "give the function the time, or a clock, as a parameter",
    "files": "write real files into a temporary folder",
    "double": "use the class itself; if it needs a service, use a small local server that answers like the service",
}
"""What to write instead, by kind."""

PYTHON_MODULES: Mapping[str, str] = {
    **dict.fromkeys(("unittest.mock", "mock", "pytest_mock", "asynctest", "flexmock", "doublex", "mockito"), "library"),
    **dict.fromkeys(("responses", "requests_mock", "httpretty", "respx", "aioresponses", "pytest_httpx"), "service"),
    **dict.fromkeys(("moto", "vcr", "fakeredis", "mongomock", "pook", "mocket", "gock"), "service"),
    **dict.fromkeys(("freezegun", "time_machine"), "time"),
    **dict.fromkeys(("pyfakefs",), "files"),
}
PYTHON_FIXTURES: Mapping[str, str] = {
    **dict.fromkeys(("mocker", "class_mocker", "module_mocker", "package_mocker", "session_mocker"), "library"),
    **dict.fromkeys(("httpx_mock", "requests_mock", "respx_mock", "aioresponses"), "service"),
    **dict.fromkeys(("freezer", "time_machine"), "time"),
}
JAVASCRIPT_MODULES: Mapping[str, str] = {
    **dict.fromkeys(("sinon", "testdouble", "jest-mock", "ts-mockito", "proxyquire", "rewire", "mockery"), "library"),
    **dict.fromkeys(
        ("@golevelup/ts-jest", "jest-mock-extended", "vitest-mock-extended", "esmock", "quibble"), "library"
    ),
    **dict.fromkeys(("nock", "msw", "msw/node", "fetch-mock", "axios-mock-adapter", "jest-fetch-mock"), "service"),
    **dict.fromkeys(("vitest-fetch-mock", "aws-sdk-client-mock", "redis-mock", "ioredis-mock"), "service"),
    **dict.fromkeys(("mockdate", "timekeeper", "@sinonjs/fake-timers"), "time"),
    **dict.fromkeys(("mock-fs", "memfs"), "files"),
}
GO_MODULES: Mapping[str, str] = {
    "github.com/stretchr/testify/mock": "library",
    "github.com/golang/mock": "library",
    "go.uber.org/mock": "library",
    "github.com/vektra/mockery": "library",
    "bou.ke/monkey": "patch",
    "github.com/agiledragon/gomonkey": "patch",
    "github.com/DATA-DOG/go-sqlmock": "service",
    "github.com/jarcoal/httpmock": "service",
    "gopkg.in/h2non/gock.v1": "service",
}
RUST_MODULES: Mapping[str, str] = {
    "mockall": "library",
    "mockall_double": "library",
    "faux": "library",
    "double": "library",
    "mocktopus": "patch",
}

DOUBLES = ("Mock", "Fake", "Stub", "Spy", "Dummy")
"""Prefixes of hand-made test doubles. A function `dummy_text` makes data."""
REAL = ("server", "handler", "service")
"""Suffixes of small local servers, which answer over a real connection."""


def module_kind(name: str, modules: Mapping[str, str]) -> str:
    """The kind of mock that a module, or a name in it, provides; empty for other modules."""
    while name:
        if name in modules:
            return modules[name]
        cut = max(name.rfind("."), name.rfind("/"))
        name = name[:cut] if cut > 0 else ""
    return ""


def is_double(name: str) -> bool:
    """Whether a class or function has the name of a test double: `FakeClient`, `stub_reader`, but not `FakeServer`."""
    word = name.lstrip("_")
    begins = word.startswith((*DOUBLES, *(f"{each.lower()}_" for each in DOUBLES if each != "Dummy")))
    return begins and not word.casefold().endswith(REAL)
