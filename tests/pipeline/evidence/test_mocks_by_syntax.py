"""Mocks and monkeypatching, told from the syntax of tests."""

from __future__ import annotations

import pytest

from marvin_pipeline.evidence.syntax.mocks import ALTERNATIVES
from marvin_pipeline.evidence.syntax.program import compare


def lines(path: str, source: str) -> list[tuple[int, str]]:
    """The lines that replace behaviour, and by what kind."""
    found = compare({}, {path: source}, [])
    assert found["unread"] == []
    assert {each["kind"] for each in found["replaced"]} <= set(ALTERNATIVES)
    return [(each["line"], each["kind"]) for each in found["replaced"]]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from unittest import mock\n", [(1, "library")]),
        ("import unittest.mock as m\n\ndef test_a():\n    m.patch('a.b')\n", [(1, "library"), (4, "library")]),
        ("from unittest.mock import MagicMock as Real\nx = Real()\n", [(1, "library"), (2, "library")]),
        ("from mock import patch\n", [(1, "library")]),
        ("import importlib\nm = importlib.import_module('unittest.mock')\n", [(2, "library")]),
        ("def test_a(mocker):\n    mocker.patch('a.b')\n", [(1, "library")]),
        ("def test_a(monkeypatch):\n    monkeypatch.setattr('a.b', 1)\n", [(2, "patch")]),
        (
            "def test_a(monkeypatch):\n    with monkeypatch.context() as m:\n        m.setitem(a, 'b', 1)\n",
            [(3, "patch")],
        ),
        ("import pytest\n\ndef test_a():\n    pytest.MonkeyPatch().setattr('a.b', 1)\n", [(4, "patch")]),
        ("import adder\nadder.add = lambda a, b: 5\n", [(2, "patch")]),
        ("from adder import add\n\ndef test_a():\n    add = lambda a, b: 5\n", [(4, "patch")]),
        ("import adder\nsetattr(adder, 'add', None)\n", [(2, "patch")]),
        ("import sys\nsys.modules['adder'] = object()\n", [(2, "patch")]),
        ("import builtins\nbuiltins.open = None\n", [(2, "patch")]),
        ("import responses\n", [(1, "service")]),
        ("from freezegun import freeze_time\n", [(1, "time")]),
        ("def test_a(httpx_mock):\n    pass\n", [(1, "service")]),
        ("class FakeClient:\n    pass\n", [(1, "double")]),
        ("class StubStore(Store):\n    pass\n", [(1, "double")]),
        ("def fake_reader():\n    pass\n", [(1, "double")]),
    ],
)
def test_python(source: str, found: list[tuple[int, str]]) -> None:
    assert lines("tests/test_a.py", source) == found


@pytest.mark.parametrize(
    "source",
    [
        "def test_a(monkeypatch, tmp_path):\n    monkeypatch.setenv('A', 'b')\n    monkeypatch.chdir(tmp_path)\n",
        "import os\nos.environ['A'] = 'b'\n",
        "'''Do not use unittest.mock here.'''\nx = 'monkeypatch.setattr(a, b)'  # from unittest import mock\n",
        "class FakeServer(http.server.HTTPServer):\n    pass\n",
        "class Real:\n    pass\n\ndef test_a():\n    real = Real()\n    real.name = 'x'\n",
        "import mockingbird\nimport adder\nresult = adder.add(1, 2)\n",
    ],
)
def test_python_that_replaces_nothing(source: str) -> None:
    assert lines("tests/test_a.py", source) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("jest.mock('../adder');\n", [(1, "library")]),
        ("const spy = vi.spyOn(adder, 'add');\n", [(1, "library")]),
        ("const f = jest.fn().mockReturnValue(5);\n", [(1, "library")]),
        ("vi.useFakeTimers();\n", [(1, "time")]),
        ("import sinon from 'sinon';\n", [(1, "library")]),
        ("const nock = require('nock');\n", [(1, "service")]),
        ("const { setupServer } = await import('msw/node');\n", [(1, "service")]),
        ("import { mock } from 'node:test';\nmock.method(adder, 'add', () => 5);\n", [(2, "patch")]),
        ("test('a', (t) => {\n  t.mock.method(adder, 'add');\n});\n", [(2, "patch")]),
        ("test('a', (t) => {\n  t.mock.timers.enable();\n});\n", [(2, "time")]),
        ("globalThis.fetch = async () => ({ ok: true });\n", [(1, "patch")]),
        ("Date.now = () => 5;\n", [(1, "patch")]),
        ("const adder = require('../adder');\nadder.add = () => 5;\n", [(2, "patch")]),
        ("import * as adder from '../adder';\nadder.add = () => 5;\n", [(2, "patch")]),
        ("require.cache[require.resolve('../adder')] = {};\n", [(1, "patch")]),
        ("Adder.prototype.add = () => 5;\n", [(1, "patch")]),
        ("class FakeClient {}\n", [(1, "double")]),
    ],
)
def test_javascript(source: str, found: list[tuple[int, str]]) -> None:
    assert lines("test/add.test.js", source) == found
    assert lines("test/add.test.ts", source) == found


@pytest.mark.parametrize(
    "source",
    [
        "// jest.mock('../adder')\nconst text = \"jest.mock('x')\";\n",
        "const server = http.createServer((request, response) => response.end('5'));\nserver.timeout = 5;\n",
        "process.env.A = 'b';\n",
        "class FakeServer {}\n",
        "import { add } from '../adder';\ntest('a', () => { expect(add(1, 2)).toBe(3); });\n",
    ],
)
def test_javascript_that_replaces_nothing(source: str) -> None:
    assert lines("test/add.test.js", source) == []


def test_go_and_rust() -> None:
    go = 'package a\n\nimport (\n\t"testing"\n\t"github.com/stretchr/testify/mock"\n)\n\ntype MockStore struct{}\n'
    assert lines("a_test.go", go) == [(5, "library"), (8, "double")]
    assert lines("tests/a.rs", "use mockall::predicate;\n\n#[automock]\ntrait Store {}\n") == [
        (1, "library"),
        (3, "library"),
    ]


def test_only_what_is_new_is_told_also_where_it_moved() -> None:
    old = "from unittest import mock\n"
    assert compare({"tests/test_a.py": old}, {"tests/test_b.py": old}, [])["replaced"] == []
    twice = compare({"tests/test_a.py": old}, {"tests/test_a.py": old, "tests/test_b.py": old}, [])
    assert [each["file"] for each in twice["replaced"]] == ["tests/test_b.py"]
