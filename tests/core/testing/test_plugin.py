"""The test kit that pack authors get: its plugin, its server, its script files."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import marvin_core.testing
from marvin_core.testing import ModelServer, calls, cut_after, hang_after, paced, pause, split, text
from tests.support.broken_packs import install_wheel


def post(url: str, body: object) -> tuple[int, bytes]:
    asked = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode())
    try:
        with urllib.request.urlopen(asked) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read()


def test_the_plugin_imports_nothing_but_pytest_until_a_fixture_is_used() -> None:
    """It is loaded in every environment that holds marvin-core, also by people who test something else."""
    code = """
import sys, pytest
before = set(sys.modules)
import marvin_core.testing.plugin
print(sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.replace("'", '"')) == [
        "marvin_core",
        "marvin_core.testing",
        "marvin_core.testing.plugin",
        "marvin_core.version",
    ]


def test_its_fixtures_are_named_marvin_and_none_is_automatic(pytestconfig: pytest.Config) -> None:
    from marvin_core.testing import plugin

    fixtures = [name for name, value in vars(plugin).items() if "fixture" in type(value).__name__.lower()]
    assert fixtures
    assert all(name.startswith("marvin_") for name in fixtures)
    source = Path(plugin.__file__).read_text("utf-8")
    assert "autouse" not in source


def test_the_fixture_is_a_server(marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(text("Hello"))
    status, body = post(marvin_model_server.url, {"model": "m"})
    assert status == 200
    assert b'"Hello"' in body
    assert body.endswith(b"data: [DONE]\n\n")
    (asked,) = marvin_model_server.requests
    assert (asked.path, asked.body) == ("/v1/chat/completions", {"model": "m"})
    assert asked.headers["host"].startswith("127.0.0.1")
    assert asked.answered is None or asked.answered >= asked.received


def test_a_request_too_many_is_told_so(marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(text("one"))
    assert post(marvin_model_server.url, {})[0] == 200
    status, body = post(marvin_model_server.url, {})
    assert status == 500
    assert b"script exhausted" in body


def test_an_answer_waits_for_its_event_and_not_for_one_that_the_server_does_not_outlive() -> None:
    happened = threading.Event()
    with ThreadPoolExecutor(1) as thread:
        with ModelServer(pause(happened, text("one")), pause(threading.Event(), text("never"))) as server:
            asked = thread.submit(post, server.url, {})
            server.wait_for(1)
            assert not asked.done()
            happened.set()
            assert b"one" in asked.result()[1]
            asked = thread.submit(post, server.url, {})
            server.wait_for(2)
        with pytest.raises((OSError, http.client.HTTPException)):
            asked.result()


def test_answers_are_cut_where_they_are_told_to_be() -> None:
    whole = calls(("f", {"a": 1}), text="x")
    assert cut_after(25, whole).body == whole.body[:25]
    assert hang_after(0, whole).body == b""
    assert paced(0.1, whole).body == whole.body
    assert split(whole, 1, 5).steps == (whole.body[:1], whole.body[1:5], whole.body[5:])


def test_every_public_name_of_the_kit_exists() -> None:
    assert sorted(marvin_core.testing.__all__) == marvin_core.testing.__all__ == dir(marvin_core.testing)
    for name in marvin_core.testing.__all__:
        assert getattr(marvin_core.testing, name) is not None


def test_it_runs_as_a_program(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    answers = [{"text": "Hi", "chunks": 2}, {"calls": [["f", {"a": 1}]]}, {"error": 429, "body": "slow"}]
    script.write_text(json.dumps(answers))
    argv = [sys.executable, "-P", "-m", "marvin_core.testing.model_server", "--script", str(script), "--repeat"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            got = [post(url, {}) for _ in range(4)]
        finally:
            process.terminate()
    assert [status for status, _ in got] == [200, 200, 429, 200]
    assert b'"name": "f"' in got[1][1]
    assert b"slow" in got[2][1]


def test_a_script_file_with_an_unknown_answer_is_refused() -> None:
    from marvin_core.testing.answers import from_json

    with pytest.raises(ValueError, match="none of text, calls"):
        from_json({"txt": "typo"})


@pytest.mark.slow
def test_a_tool_of_a_pack_that_cannot_be_loaded_is_not_said_to_be_missing(tmp_path: Path) -> None:
    """Else a mistake in the plugin module looks like a wrong name."""
    packages = tmp_path / "packages"
    packages.mkdir()
    install_wheel(packages, "marvin-acme", {"acme.py": "raise RuntimeError('not today')\n"}, "[marvin]\nacme = acme\n")
    code = f"""
import sys
from pathlib import Path
sys.path.append({str(packages)!r})
from marvin_core.testing import ToolRunner
with ToolRunner(Path({str(tmp_path)!r}), Path({str(tmp_path)!r})) as tools:
    print(tools.call("other_tool").text)
    tools.call("acme_tool")
"""
    environment = {"PYTHONPATH": str(packages), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, env=environment)
    assert "There is no tool 'other_tool'" in done.stdout, done.stderr
    assert "AssertionError: The pack acme could not be loaded: RuntimeError: not today" in done.stderr
