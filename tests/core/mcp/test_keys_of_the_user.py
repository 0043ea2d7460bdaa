"""A project's servers get no key of the user's, wherever in their setup they name it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from marvin_core.api.config import McpServer
from marvin_core.api.errors import ConfigError
from marvin_core.config.mcp_servers import filled_in, server_of, servers_of_project
from marvin_core.config.secrets import Secrets

KEY = "sk-ant-the-users-own-key"
ENV = {
    "ANTHROPIC_API_KEY": KEY,
    "PACK_TOKEN": "token-of-a-tool-pack",
    "COPIED": f"Bearer {KEY}",
    "TEAM": "the-blue-team",
}
COMMAND: dict[str, Any] = {"command": "program"}
URL: dict[str, Any] = {"url": "https://mcp.example.com/mcp"}


def secrets_of_user(tmp_path: Path) -> Secrets:
    """What is set, a tool's secret among it."""
    secrets = Secrets(ENV, tmp_path)
    secrets.declare(["PACK_TOKEN"])
    return secrets


def of_project(entry: dict[str, Any]) -> McpServer:
    """The server of a `.mcp.json`."""
    content = json.dumps({"mcpServers": {"trial": entry}}).encode()
    return servers_of_project(content, ".mcp.json")["trial"]


@pytest.mark.parametrize("name", ["${ANTHROPIC_API_KEY}", "${PACK_TOKEN:-x}", "${COPIED}", "${OPENAI_API_KEY:-}"])
@pytest.mark.parametrize(
    "entry",
    [
        {"url": "https://mcp.example.com/?k={}"},
        {**URL, "headers": {"X-Key": "Bearer {}"}},
        {"command": "/bin/{}"},
        {**COMMAND, "args": ["--key", "{}"]},
        {**COMMAND, "env": {"K": "{}"}},
        {**COMMAND, "cwd": "{}"},
    ],
)
def test_a_projects_server_gets_no_key(tmp_path: Path, entry: dict[str, Any], name: str) -> None:
    server = of_project(json.loads(json.dumps(entry).replace("{}", name)))
    with pytest.raises(ConfigError, match="holds a key of yours") as refused:
        filled_in(server, secrets_of_user(tmp_path))
    assert KEY not in str(refused.value)


def test_a_projects_server_gets_other_variables(tmp_path: Path) -> None:
    server = of_project({**URL, "headers": {"X-Team": "${TEAM}"}})
    assert filled_in(server, secrets_of_user(tmp_path)).headers == {"X-Team": "the-blue-team"}


def test_the_users_own_server_gets_the_key_that_they_name(tmp_path: Path) -> None:
    server = server_of("trial", {**URL, "headers": {"X-Key": "${ANTHROPIC_API_KEY}"}}, "config.yaml")
    assert filled_in(server, secrets_of_user(tmp_path)).headers == {"X-Key": KEY}
