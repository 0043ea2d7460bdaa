"""Ctrl+C, SIGTERM and kill -9 while a long conversation is being compacted: nothing of it is lost."""

from __future__ import annotations

from signal import SIGINT, SIGKILL, SIGTERM, Signals

import pytest

from marvin_core.testing import ModelServer, calls, error, hang, text
from tests.e2e.support_e2e import Marvin, Running, assert_loadable, block_texts, conversation, posts

ROUNDS = 6
TOO_LONG = error(400, {"error": {"message": "Too many tokens.", "code": "context_length_exceeded"}})
LOOK = {"command": "seq 1 1000"}


def summarising(marvin: Marvin, server: ModelServer) -> Running:
    """A run whose conversation the service finds too long, and whose summary does not come."""
    server.script(*(calls(("run_command", LOOK)) for _ in range(ROUNDS)), TOO_LONG, hang())
    running = marvin.ask_in_background(prompt="Count well.")
    running.until(lambda: posts(server) == ROUNDS + 2, "the request for a summary")
    assert "tools" not in server.requests[-1].body
    return running


@pytest.mark.slow
@pytest.mark.parametrize("number", [SIGINT, SIGTERM, SIGKILL], ids=["ctrl-c", "sigterm", "kill-9"])
def test_the_conversation_stays_whole_and_the_backup_is_there(
    marvin: Marvin, marvin_model_server: ModelServer, number: Signals
) -> None:
    """I16, I15, I22: the session goes on from what was said."""
    running = summarising(marvin, marvin_model_server)
    running.send(number)
    result = running.finish()
    assert result.code == (-SIGKILL if number == SIGKILL else 130)
    if number != SIGKILL:
        result.cost()
    assert len(marvin.messages()) == 1 + 2 * ROUNDS
    assert_loadable(marvin.messages())
    assert [record["type"] for record in marvin.session()].count("compaction") == 0
    (backup,) = marvin.project.glob(".marvin/logs/context-backup-*.jsonl")
    assert len(backup.read_text().splitlines()) == 1 + 2 * ROUNDS
    marvin_model_server.script(text("Going on."))
    assert marvin.ask("--continue", prompt="Go on.").text == "Going on.\n"
    assert len(conversation(marvin_model_server)) == 2 + 2 * ROUNDS


@pytest.mark.slow
def test_left_alone_it_goes_on_with_the_summary(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    """I16: and the session file holds both, so that a later run goes on from the summary."""
    script = [*(calls(("run_command", LOOK)) for _ in range(ROUNDS)), TOO_LONG, text("It counted."), text("Done.")]
    marvin_model_server.script(*script, text("Going on."))
    result = marvin.ask(prompt="Count well.")
    assert result.text.endswith("Done.\n")
    assert "The conversation was compacted" in result.said
    assert result.cost()["llm_turns"] == ROUNDS + 2
    assert marvin.ask("--continue", prompt="Go on.").text == "Going on.\n"
    sent = conversation(marvin_model_server)
    assert sent[0]["content"] == "Count well."
    assert "It counted." in sent[1]["content"]
    assert len(sent) < 2 + 2 * ROUNDS
    assert block_texts(marvin.messages()[0]) == "Count well."
