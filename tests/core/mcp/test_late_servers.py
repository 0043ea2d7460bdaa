"""A server that was waited for in vain is not waited for to the end again, and is taken as soon as it is there."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.core.mcp.support_mcp import SERVER, Desk, desk_at, text_of

SOON = 30.0


def waiting_for(file: Path) -> Mapping[str, Any]:
    """The setup of a server that hangs at its start while a file is missing."""
    serve = shlex.join([sys.executable, "-S", "-P", str(SERVER), "good"])
    return {"command": "sh", "args": ["-c", f"test -e {shlex.quote(str(file))} || exec sleep 600; exec {serve}"]}


@pytest.mark.slow
def test_one_that_hung_at_an_earlier_start_delays_the_next_by_seconds_alone(tmp_path: Path) -> None:
    there = tmp_path / "there"
    entry = waiting_for(there)
    with desk_at(tmp_path, entry, timeouts={"server": 4}) as made:
        made.learn()
        assert "it was not ready within 4 s" in made.notices
    begun = time.monotonic()
    with desk_at(tmp_path, entry, timeouts={"server": 120}) as made:
        made.learn()
        made.learn()
        assert made.notices.count("The MCP server trial is not ready yet") == 1
    assert time.monotonic() - begun < SOON, "neither the prompt nor the end waited for it"
    assert "While closing" not in made.notices
    there.touch()
    with desk_at(tmp_path, entry, timeouts={"server": 120}) as made:
        end = time.monotonic() + SOON
        while "trial__add" not in {spec.name for spec in made.session.tools} and time.monotonic() < end:
            made.learn()
        assert text_of(made.call("trial__add", a=2, b=3)) == "5"
    with desk_at(tmp_path, entry) as made:
        assert "trial__add" in {spec.name for spec in made.session.tools}, "what it brings is known from then on"


@pytest.mark.slow
def test_one_that_the_end_of_a_chat_cut_off_has_not_failed(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    config = {"mcp_servers": {"trial": waiting_for(tmp_path / "there")}, "timeouts": {"server": 120}}
    chat = Desk(tmp_path / "home", work, config, ["nobody asks"])
    try:
        chat.learn()
    finally:
        chat.close()
    later = Desk(tmp_path / "home", work, config)
    try:
        assert not later.source.servers.was_late("trial")
    finally:
        later.close()
