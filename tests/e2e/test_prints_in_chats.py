"""What tools print in a chat is shown as theirs, and spoils nothing that is drawn."""

from __future__ import annotations

import shutil

import pytest

from tests.e2e.support_e2e import Marvin
from tests.e2e.support_screen import Screen

pytestmark = pytest.mark.slow

TOOLS = '''
from marvin_core import tool

@tool(access=["read"])
async def talk() -> str:
    """Print in the event loop."""
    print("by print")
    print("half a line", end="")
    return "done talking"

@tool(access=["read"])
def murmur() -> str:
    """Print in a thread."""
    print("from a thread")
    return "done murmuring"
'''
TOLD = (
    "(the tool talk of your configuration printed: by print)",
    "(the tool talk of your configuration printed: half a line)",
    "(the tool murmur of your configuration printed: from a thread)",
)


@pytest.fixture
def talkative(marvin: Marvin) -> Marvin:
    (marvin.config_folder / "tools").mkdir()
    (marvin.config_folder / "tools" / "talkative.py").write_text(TOOLS)
    return marvin


def test_in_a_chat_without_a_terminal(talkative: Marvin) -> None:
    result = talkative.run("--plain", stdin=b"/talk\n/murmur\n")
    assert result.code == 0
    rows = result.text.splitlines()
    assert [row for row in rows if "printed" in row] == list(TOLD)
    assert {"done talking", "done murmuring"} <= set(rows)


@pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")
def test_in_a_chat_on_a_terminal(talkative: Marvin) -> None:
    with Screen(talkative, columns=100) as screen:
        for name in ("talk", "murmur"):
            screen.type(f"/{name}")
            screen.press("Enter")
            screen.until(f"done {name}ing")
        rows = screen.at_prompt("")
    assert [row for row in rows if "printed" in row] == list(TOLD)
