"""The settings of editors on the page about them start the program as the command line takes it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from marvin_core.config.flags import SUBCOMMANDS

PAGE = Path(__file__).parents[3] / "docs/how-to/editors.md"


@pytest.mark.parametrize("block", re.findall(r"^```json\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL))
def test_an_editor_starts_marvin_acp(block: str) -> None:
    agent = json.loads(block)["agent_servers"]["Marvin"]
    assert Path(agent["command"]).name == "marvin"
    assert agent["args"] == ["acp"]
    assert "acp" in SUBCOMMANDS
