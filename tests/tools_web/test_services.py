"""How services are asked: addresses, turns, caching, order, health, words."""

from __future__ import annotations

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from marvin_core import ServiceHealth, ToolError
from marvin_core.testing import HttpReplay, ToolRunner, cut_after, document, hang
from marvin_core.testing.tool_runner import installed_tools
from marvin_tools_web.plugin import marvin_register_settings
from marvin_tools_web.services import catalog
from marvin_tools_web.services.backends import Backend, first_answer
from marvin_tools_web.settings import ServiceAddresses
from tests.tools_web.failures import ADDRESSES
from tests.tools_web.test_places import FOUND, NOMINATIM
from tests.tools_web.test_search import BRAVE, BRAVE_KEY, BRAVE_REPLY, DUCKDUCKGO, MOJEEK, MOJEEK_REPLY, SEARXNG
from tests.tools_web.test_weather import REPLY, URL

GOOD = "https://good.example/api"
HERE = {"latitude": 52.52, "longitude": 13.42}


def health(home: Path) -> dict[str, Any]:
    found = [*home.rglob("services.json")]
    assert len(found) == 1, found
    kept: dict[str, Any] = json.loads(found[0].read_text())
    return kept


def test_every_service_has_an_address_of_the_users() -> None:
    names = [service.name for service in catalog.SERVICES]
    assert sorted(names) == sorted(ServiceAddresses.model_fields)
    assert all(field.description for field in ServiceAddresses.model_fields.values())
    variables = marvin_register_settings().variables or {}
    assert variables["services.osrm"] == "MARVIN_URL_OSRM"
    assert len(variables) == len(names)
    assert all(service.url.startswith("https://") or service is catalog.SEARXNG for service in catalog.SERVICES)


def test_another_address_by_variable_and_by_setting(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", f"{GOOD}/forecast", json=REPLY)
    env = {"MARVIN_URL_OPEN_METEO": f"{GOOD}/"}
    assert not marvin_tools.session(env=env).call("weather_forecast", **HERE).is_error
    settings = {"web": {"services": {"open_meteo": "https://other.example/v1"}, "contact": "ada@example.org"}}
    marvin_http.on("GET", "https://other.example/v1/forecast", json=REPLY)
    assert not marvin_tools.session(settings=settings).call("weather_forecast", **HERE).is_error
    assert [request.url.partition("?")[0] for request in marvin_http.requests] == [
        f"{GOOD}/forecast",
        "https://other.example/v1/forecast",
    ]
    assert "ada@example.org" not in marvin_http.requests[0].headers["user-agent"]
    assert marvin_http.requests[1].headers["user-agent"].endswith("(terminal assistant; ada@example.org)")


class _Redirecting(BaseHTTPRequestHandler):
    """Sends whoever asks to another port of this machine."""

    def do_GET(self) -> None:
        self.send_response(302)
        self.send_header("location", "http://127.0.0.1:9/secret")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


def test_the_address_guard_holds_but_for_what_the_user_named(marvin_home: Path, marvin_workdir: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Redirecting) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        with ToolRunner(marvin_home, marvin_workdir, env={"MARVIN_URL_OPEN_METEO": address}) as runner:
            outcome = runner.call("weather_forecast", **HERE)
        server.shutdown()
    assert outcome.is_error
    # The server was reached, and what it redirects to was not.
    assert "127.0.0.1:9" in outcome.text or "this machine" in outcome.text, outcome.text
    assert "allow_addresses" in outcome.text, outcome.text


@pytest.mark.parametrize("tool", ["browse_web", "read_rss", "download_file"])
def test_what_a_model_names_is_not_led_to_this_machine(marvin_home: Path, marvin_workdir: Path, tool: str) -> None:
    """The first address is allowed by its name; the one that it redirects to has none."""
    config = marvin_home / ".config/marvin/config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("allow_addresses: [localhost]\n")
    with ThreadingHTTPServer(("127.0.0.1", 0), _Redirecting) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with ToolRunner(marvin_home, marvin_workdir, origin="model", interactive=False) as runner:
            outcome = runner.call(tool, url=f"http://localhost:{server.server_port}/page")
        server.shutdown()
    assert outcome.is_error
    assert "127.0.0.1 is an address of this machine" in outcome.text
    assert not (marvin_home / "Downloads").exists()


def test_answers_are_kept_for_later_calls_and_sessions(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", URL, json=REPLY, times=1)
    marvin_http.on("GET", URL, status=500)
    first = marvin_tools.call("weather_forecast", **HERE)
    assert marvin_tools.call("weather_forecast", **HERE).text == first.text
    assert marvin_tools.session().call("weather_forecast", **HERE).text == first.text
    assert len(marvin_http.requests) == 1
    assert marvin_tools.call("weather_forecast", latitude=1, longitude=2).is_error, "another question"
    assert len(marvin_http.requests) == 2


def test_a_trial_asks_each_service_and_takes_nothing_that_was_kept(
    marvin_tools: ToolRunner, marvin_http: HttpReplay
) -> None:
    marvin_http.on("GET", SEARXNG, status=500)
    marvin_http.on("POST", DUCKDUCKGO, status=500)
    marvin_http.on("GET", BRAVE, json=BRAVE_REPLY)
    marvin_http.on("GET", MOJEEK, answer=MOJEEK_REPLY)
    env = {**BRAVE_KEY, "MARVIN_URL_SEARXNG": "https://searx.example"}
    outcome = marvin_tools.session(env=env, origin="trial").call("web_search", query="python")
    assert outcome.text.startswith("1. Python\n"), "what the first one says that answers"
    assert "[Source: Brave Search. Failed: SearXNG: " in outcome.text
    assert " Failed: DuckDuckGo: " in outcome.text
    kept = health(marvin_tools.home)
    assert {name for name, one in kept.items() if one["worked"]} == {"brave", "mojeek"}
    assert {name for name, one in kept.items() if one["failed"]} == {"searxng", "duckduckgo"}


def test_a_trial_takes_no_answer_that_was_kept(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", URL, json=REPLY, times=1)
    marvin_http.on("GET", URL, status=500)
    assert not marvin_tools.call("weather_forecast", **HERE).is_error
    assert not marvin_tools.call("weather_forecast", **HERE).is_error, "it was kept"
    assert marvin_tools.session(origin="trial").call("weather_forecast", **HERE).is_error


@pytest.mark.slow
def test_each_service_has_a_share_of_the_time(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    """The time of a call is that of two requests: four that are silent do not take the words from it."""
    for method, url in (("GET", SEARXNG), ("GET", BRAVE), ("POST", DUCKDUCKGO), ("GET", MOJEEK)):
        marvin_http.on(method, url, answer=hang())
    env = {**BRAVE_KEY, "MARVIN_URL_SEARXNG": "https://searx.example"}
    session = marvin_tools.session(env=env, timeouts={"http": 3.0, "tool": 6.0})
    outcome = session.call("web_search", query="python")
    assert outcome.text.startswith("Error: None of 4 services answered:\n- SearXNG: "), outcome.text
    assert outcome.text.count("did not answer in time") == 4
    assert {name for name, one in health(marvin_tools.home).items() if one["failed"]} == {
        "searxng",
        "brave",
        "duckduckgo",
        "mojeek",
    }


@pytest.mark.parametrize("before", [*range(200, 320, 7)])
def test_a_key_is_not_told_where_the_text_is_cut(
    marvin_tools: ToolRunner, marvin_http: HttpReplay, before: int
) -> None:
    """I24: services repeat a wrong key, and what they say is cut at some place."""
    key = BRAVE_KEY["BRAVE_API_KEY"]
    marvin_http.on("GET", BRAVE, status=401, json={"message": f"{'x' * before} {key} is wrong"})
    marvin_http.on("POST", DUCKDUCKGO, status=500)
    marvin_http.on("GET", MOJEEK, status=500)
    text = marvin_tools.session(env={**BRAVE_KEY, **ADDRESSES}).call("web_search", query="python").text
    assert key[:4] not in text
    assert key[:4] not in str(health(marvin_tools.home))


def test_an_answer_that_broke_off_is_not_kept(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    good = document(REPLY)
    marvin_http.on("GET", URL, answer=cut_after(100, good), times=1)
    marvin_http.on("GET", URL, answer=good)
    assert marvin_tools.call("weather_forecast", **HERE).is_error
    assert not marvin_tools.call("weather_forecast", **HERE).is_error
    assert len(marvin_http.requests) == 2


def test_a_damaged_cache_costs_only_the_cache(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", URL, json=REPLY)
    assert not marvin_tools.call("weather_forecast", **HERE).is_error
    kept = [*marvin_tools.home.rglob("answers.db*")]
    assert kept
    for path in kept:
        path.write_bytes(b"no database" * 1_000)
    assert not marvin_tools.session().call("weather_forecast", **HERE).is_error
    assert not marvin_tools.notices


@pytest.mark.parametrize("place", [".cache", ".local"])
def test_a_home_that_takes_nothing_costs_only_what_would_be_kept(
    marvin_tools: ToolRunner, marvin_http: HttpReplay, place: str
) -> None:
    (marvin_tools.home / place).write_text("no folder")
    marvin_http.on("GET", URL, json=REPLY)
    marvin_http.on("GET", NOMINATIM, json=FOUND)
    assert marvin_tools.call("weather_forecast", **HERE).text.startswith("Weather at 52.52")
    # How often a service may be asked is kept there, too, and what cannot be kept cannot be held to.
    outcome = marvin_tools.call("osm_search", query="x")
    assert outcome.is_error is (place == ".cache")
    assert "failed unexpectedly" not in outcome.text


def test_health_is_kept(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", URL, status=500, times=1)
    marvin_http.on("GET", URL, json={"no": "forecast"}, times=1)
    marvin_http.on("GET", URL, status=400, times=1)
    marvin_http.on("GET", URL, json=REPLY)
    marvin_tools.call("weather_forecast", **HERE)
    kept = health(marvin_tools.home)["open_meteo"]
    assert kept["title"] == "Open-Meteo"
    assert "500" in kept["why"]
    assert kept["failed"] > kept["worked"] == 0
    marvin_tools.call("weather_forecast", latitude=1, longitude=1)
    assert "unexpected form" in health(marvin_tools.home)["open_meteo"]["why"]
    before = health(marvin_tools.home)
    marvin_tools.call("weather_forecast", latitude=2, longitude=1)  # what was asked was wrong, not the service
    assert health(marvin_tools.home) == before
    marvin_tools.call("weather_forecast", latitude=3, longitude=1)
    kept = health(marvin_tools.home)["open_meteo"]
    assert kept["worked"] > kept["failed"] > 0


def test_health_never_fails(tmp_path: Path) -> None:
    (tmp_path / "services.json").write_text('{"a": 7, "b": {"worked": "x", "failed": -1, "why": ["\\u001b[31m"]}}')
    states = asyncio.run(ServiceHealth(tmp_path).states())
    assert [state.name for state in states] == ["a", "b"]
    assert not any(state.is_failing for state in states)
    assert "\x1b" not in states[1].why
    (tmp_path / "services.json").write_text("{")
    asyncio.run(ServiceHealth(tmp_path).worked("a"))
    asyncio.run(ServiceHealth(tmp_path).worked("a"))
    assert [state.name for state in asyncio.run(ServiceHealth(tmp_path).states())] == ["a"]
    asyncio.run(ServiceHealth(tmp_path / "a" / "b" / "services.json" / "c").worked("a"))
    (tmp_path / "file").write_text("")
    asyncio.run(ServiceHealth(tmp_path / "file").worked("a"))


async def _good() -> str:
    return "good"


async def _bad() -> str:
    raise ToolError("It is down. Wait.")


def test_the_next_service_is_asked_where_one_fails() -> None:
    answered = asyncio.run(first_answer("model", [Backend(catalog.OSRM, _bad), Backend(catalog.NOMINATIM, _good)]))
    assert answered.value == "good"
    assert answered.service is catalog.NOMINATIM
    assert answered.source == "[Source: Nominatim (© OpenStreetMap contributors). Failed: It is down. Wait.]"
    with pytest.raises(
        ToolError, match=r"None of 2 services answered:\n- It is down\. Wait\.\n- It is down\. Wait\.\nAsk\."
    ):
        asyncio.run(first_answer("model", [Backend(catalog.OSRM, _bad), Backend(catalog.NOMINATIM, _bad)], "Ask."))


def test_the_configuration_of_the_how_to_is_taken(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "web.md").read_text(encoding="utf-8")
    folder = marvin_tools.home / ".config" / "marvin"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(page.partition("```yaml")[2].partition("\n")[2].partition("```")[0])
    marvin_http.on("GET", "https://map.example/nominatim/search", json=[])
    assert not marvin_tools.session().call("osm_search", query="a").is_error
    assert "ada@example.org" in marvin_http.requests[0].headers["user-agent"]


def test_every_tool_that_asks_services_can_be_tried() -> None:
    """What `marvin tools health` calls is a call that the tool takes, and its services are declared in order."""
    ours = [spec for spec in installed_tools() if spec.source == "marvin-tools-web" and spec.labels]
    tried = {spec.name: spec for spec in ours if spec.probe is not None}
    # What asks an address that it is given, nobody, or writes something is not tried.
    asking = {spec.name for spec in ours if "net" in spec.access and "write" not in spec.access}
    assert asking - tried.keys() == {"browse_web", "scrape_page", "read_rss"}
    # What health is told of is found by these titles.
    titles = {service.title for service in catalog.SERVICES} | {"CoreLocation", "GeoClue", "WordNet"}
    assert {label for spec in tried.values() for label in spec.labels} <= titles
    for spec in tried.values():
        jsonschema.validate(dict(spec.probe or {}), dict(spec.parameters))


@pytest.mark.parametrize(
    ("tool", "parameter"),
    [
        ("search_games", "query"),
        ("steam_search", "query"),
        ("recipe_search", "query"),
        ("music_search", "query"),
        ("search_movies", "query"),
        ("get_movie_details", "title"),
        ("spotify_search", "query"),
        ("web_search", "query"),
        ("search_news", "query"),
        ("wiki_search", "query"),
        ("wiki_summary", "title"),
        ("wiki_full", "title"),
        ("search_papers", "query"),
        ("search_arxiv", "query"),
        ("places_text_search", "text_query"),
    ],
)
def test_what_is_looked_for_is_checked_before_anything_is_sent(
    marvin_tools: ToolRunner, marvin_http: HttpReplay, tool: str, parameter: str
) -> None:
    session = marvin_tools.session(env={"SPOTIFY_CLIENT_ID": "x"})
    for text, what in (("", " is empty. "), (" \n\t ", " is empty. "), ("x " * 1_000, "is longer than ")):
        outcome = session.call(tool, **{parameter: text})
        assert outcome.is_error
        assert what in outcome.text
        assert len(outcome.text) < 300
    assert not marvin_http.requests
