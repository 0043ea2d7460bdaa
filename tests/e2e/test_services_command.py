"""`marvin tools health` tries the tools that ask services; `marvin doctor` shows how these services were found."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.e2e.support_e2e import Marvin
from tests.tools_web.test_weather import REPLY

pytestmark = pytest.mark.slow


class _Weather(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(REPLY).encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def weather() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Weather) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_services_are_tried_and_remembered(unconfigured: Marvin, weather: str) -> None:
    assert "Services that tools use" not in unconfigured.run("doctor").text
    result = unconfigured.run("tools", "health", "weather_forecast", env={"MARVIN_URL_OPEN_METEO": weather})
    assert (result.code, result.err) == (0, b"")
    first, *others = result.text.splitlines()
    assert first.split()[:2] == ["ok", "weather_forecast"]
    assert first.endswith("[Source: Open-Meteo (CC BY 4.0).]")
    assert others[:2] == ["", "Services"]
    assert re.match(
        r"  ok     Open-Meteo \(estimate_traffic_adjusted_time, weather_forecast\): last answered 2", others[2]
    )

    result = unconfigured.run("tools", "health", "weather_forecast", env={"MARVIN_URL_OPEN_METEO": f"{weather}0/x"})
    assert result.code == 1
    assert result.text.split()[:2] == ["BROKEN", "weather_forecast"]
    report = unconfigured.run("doctor").text
    assert "Services that tools use" in report
    assert "none   Open-Meteo (estimate_traffic_adjusted_time, weather_forecast): last answered 2" in report
    assert "-> failed 2" in report
    assert "tools health" in report


class _Searching(BaseHTTPRequestHandler):
    """A search engine at /good, and nothing elsewhere."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path.startswith("/good/") else 500)
        self.send_header("content-type", "application/json")
        self.end_headers()
        found = {"results": [{"title": "One", "url": "https://a.example/", "content": "x"}]}
        self.wfile.write(json.dumps(found).encode())

    do_POST = do_GET  # noqa: N815  # http.server's names

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


def test_each_service_of_a_tool_is_tried(unconfigured: Marvin) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Searching) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        env = {"MARVIN_URL_SEARXNG": f"{address}/good"}
        env |= {f"MARVIN_URL_{name}": f"{address}/bad" for name in ("DUCKDUCKGO", "MOJEEK")}
        result = unconfigured.run("tools", "health", "web_search", env=env)
        server.shutdown()
    assert result.code == 0, result.text
    services = result.text.partition("Services\n")[2].splitlines()
    told = [re.sub(r" \(.*?\): |2\d{3}-.*", ": ", line.strip()) for line in services]
    assert [line for line in told if "answered" in line or "tested" in line] == [
        "none   DuckDuckGo: has not answered yet",
        "none   Mojeek: has not answered yet",
        "ok     SearXNG: last answered : ",
        "none   Brave Search: was not tested",
    ]
    assert sum(line.startswith("failed") for line in told) == 2


def test_a_tool_without_services_is_not_tried(unconfigured: Marvin) -> None:
    result = unconfigured.run("tools", "health", "read_file")
    assert result.code == 1
    assert "read_file uses no service, or declares no test call. Leave it out" in result.said
