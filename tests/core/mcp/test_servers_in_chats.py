"""Servers as a chat shows them: `/mcp`, the prompts as commands, and resources behind `@`."""

from __future__ import annotations

from pathlib import Path

import pytest

from marvin_core.api.errors import UsageError
from marvin_core.mcp.prompts import labelled
from marvin_core.ui.attach.attaching import with_attached
from marvin_core.ui.completion import candidates
from tests.core.mcp.support_mcp import Desk, desk


def said(made: Desk, words: str = "") -> str:
    """What `/mcp` says."""
    text = made.run(made.session.commands["mcp"].run(made.session, words))
    assert isinstance(text, str)
    return text


def test_the_servers_are_listed_with_their_state(tmp_path: Path) -> None:
    with desk(tmp_path, "good", answers=["yes"]) as made:
        assert said(made) == "trial: not started; not asked yet what it brings"
        made.learn()
        assert said(made) == "trial: running; 3 tools, 1 prompt, 1 resource"
        brought = said(made, "trial")
        for line in ("  trial__add  Add two numbers.", "  /trial:greet  Greet.", "  @trial:note://one  one"):
            assert line in brought
        with pytest.raises(UsageError):
            said(made, "trail")


def test_a_server_that_failed_is_listed_with_the_reason(tmp_path: Path) -> None:
    with desk(tmp_path, "exit-start", answers=["yes"]) as made:
        made.learn()
        assert "it ended: there is no cheese" in said(made)


def test_prompts_are_commands_as_soon_as_they_are_known(tmp_path: Path) -> None:
    with desk(tmp_path, "good", answers=["yes"]) as made:
        assert "trial:greet" not in made.session.commands
        made.learn()
        assert made.session.commands["trial:greet"].takes == "WHO [HOW]"
        assert "exit" not in made.session.commands
        assert "clear" in made.session.commands


def test_a_resource_is_completed_and_attached_behind_at(tmp_path: Path) -> None:
    with desk(tmp_path, "good", answers=["yes"]) as made:
        made.learn()
        (found,) = [one for one in candidates("look at @tri", made.session) if "note" in one.text]
        assert (found.text, found.help) == ("@trial:note://one ", "resource: one")
        message = made.run(with_attached("look at @trial:note://one", made.session))
        assert "[Attached: trial:note://one]\nthe text of note://one\n" in message.text
        (reader,) = [spec for spec in made.session.tools if spec.name == "trial__read_resource"]
        assert "note://one: one" in reader.description


def test_the_model_is_told_that_a_prompt_is_a_servers() -> None:
    head, _, rest = labelled("trial", "greet", "Say hello.\nThen go.").partition("\n")
    assert "the prompt greet of the MCP server trial. The server wrote all that follows" in head
    assert rest == "Say hello.\nThen go."
