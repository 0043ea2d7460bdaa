"""Searches by the real SearXNG, whose only engine is a server of the test's own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import pytest

from marvin_core.testing import ToolRunner
from tests.real.components import PYTHON, REAL, free_port, required, serving

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("searxng")]

SEARXNG = REAL / "searxng"
SETTINGS = """
use_default_settings:
  engines:
    keep_only: []
server:
  secret_key: "of the tests alone"
  bind_address: "127.0.0.1"
  port: {port}
  limiter: false
search:
  formats: [html, json]
engines:
  - name: towns
    engine: json_engine
    shortcut: towns
    categories: [general]
    paging: false
    enable_http: true
    search_url: {engine}/search?q={{query}}
    results_query: hits
    title_query: title
    url_query: url
    content_query: text
    disabled: false
"""
HITS = {
    "hits": [
        {"title": "Kyoto <b>&amp;</b> Nara", "url": "https://towns.example/kyoto", "text": "Two old towns."},
        {"title": "東京", "url": "https://towns.example/tokyo", "text": "A large town."},
    ]
}


class Engine(ThreadingHTTPServer):
    """Answers each search with the same hits; `queries` are those that came."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.queries: list[str] = []


class _Answering(BaseHTTPRequestHandler):
    server: Engine

    def do_GET(self) -> None:
        self.server.queries += parse_qs(urlsplit(self.path).query).get("q", [])
        content = json.dumps(HITS).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def searxng(tmp_path_factory: pytest.TempPathFactory, engine: Engine) -> Iterator[str]:
    """The address of a SearXNG."""
    required(PYTHON, SEARXNG)
    folder, port = tmp_path_factory.mktemp("searxng"), free_port()
    settings = folder / "settings.yml"
    settings.write_text(SETTINGS.format(port=port, engine=f"http://127.0.0.1:{engine.server_port}"))
    environment = {**os.environ, "SEARXNG_SETTINGS_PATH": str(settings), "PYTHONPATH": str(SEARXNG)}
    url = f"http://127.0.0.1:{port}"
    with serving((PYTHON, "-m", "searx.webapp"), folder / "log", f"{url}/config", environment):
        yield url


def test_the_web_is_searched(marvin_home: Path, marvin_workdir: Path, searxng: str, engine: Engine) -> None:
    with ToolRunner(marvin_home, marvin_workdir, env={"MARVIN_URL_SEARXNG": searxng}) as tools:
        outcome = tools.call("web_search", query='old "towns" & more')
        assert not outcome.is_error, outcome.text
        assert "https://towns.example/kyoto" in outcome.text
        assert "東京" in outcome.text
        assert "Source: SearXNG" in outcome.text
    assert engine.queries == ['old "towns" & more']
