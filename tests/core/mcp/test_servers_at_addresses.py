"""Servers at addresses: reached as the settings say, and whatever one of them does stays its own."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.core.mcp.support_mcp import desk_at, text_of
from tests.support.mcp_http import http_server

pytestmark = pytest.mark.slow  # each test starts a server of its own


def test_a_tool_is_called_with_the_users_headers_which_nobody_sees(tmp_path: Path) -> None:
    env = {"DOCS_TOKEN": "token-of-the-docs"}
    with http_server("good") as server:
        entry = {"url": server.url, "headers": {"Authorization": "Bearer ${DOCS_TOKEN}", "X-Team": "the-blue-team"}}
        with desk_at(tmp_path, entry, env=env) as made:
            made.learn()
            assert text_of(made.call("trial__act")) == "done"
            known = made.session.parts.setup.secrets.known()
            assert "token-of-the-docs" in known
            assert "the-blue-team" in known
        assert {seen[2]["authorization"] for seen in server.seen} == {"Bearer token-of-the-docs"}
        assert server.seen[-1][0] == "DELETE", "the server is told of the end"


def test_the_proxy_of_the_settings_is_used(tmp_path: Path) -> None:
    with http_server("good") as proxy:
        env = {"HTTP_PROXY": f"http://127.0.0.1:{proxy.server_port}"}
        with desk_at(tmp_path, {"url": "http://mcp.example.com/mcp"}, env=env) as made:
            made.learn()
            assert text_of(made.call("trial__act")) == "done"
        assert {seen[1] for seen in proxy.seen} == {"http://mcp.example.com/mcp"}


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("hang-start", "it was not ready within 0.5 s"),
        ("refuses", "HTTP 403"),
    ],
)
def test_a_server_that_cannot_be_used_is_named(tmp_path: Path, way: str, said: str) -> None:
    with http_server(way) as server:
        timeouts = {"server": 0.5 if way == "hang-start" else 60}
        with desk_at(tmp_path, {"url": server.url}, timeouts=timeouts) as made:
            made.learn()
            assert "The MCP server trial cannot be used" in made.notices
            assert said in made.notices
            assert text_of(made.call("get_working_dir")) == str(tmp_path / "work")


def test_an_address_where_nobody_listens_is_named(tmp_path: Path) -> None:
    with http_server("good") as server:
        url = server.url
    with desk_at(tmp_path, {"url": url}) as made:
        made.learn()
        assert "The MCP server trial cannot be used" in made.notices
        assert "Connect" in made.notices


@pytest.mark.slow
@pytest.mark.parametrize("way", ["large", "garbage", "redirects", "hang-call"])
def test_what_a_server_does_in_a_call_ends_that_call(tmp_path: Path, way: str) -> None:
    with http_server(way) as server:
        with desk_at(tmp_path, {"url": server.url}, timeouts={"tool": 2}) as made:
            made.learn()
            broken = made.call("trial__act")
            assert broken.is_error, text_of(broken)
            assert len(text_of(broken)) < 3_000
            server.way = "good"
            assert text_of(made.call("trial__act")) == "done"
        assert not any("stolen" in seen[1] for seen in server.seen)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["hang-close", "slow-close"])
def test_a_server_that_hangs_at_the_end_holds_nobody_up(tmp_path: Path, way: str) -> None:
    with http_server(way) as server:
        with desk_at(tmp_path, {"url": server.url}) as made:
            made.learn()
            begun = time.monotonic()
        assert time.monotonic() - begun < 15
