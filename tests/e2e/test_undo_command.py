"""`marvin undo`: what an unattended run did is taken back from the shell."""

from __future__ import annotations

import pytest

from marvin_core.testing import ModelServer, calls, text
from tests.e2e.support_e2e import Marvin

pytestmark = pytest.mark.slow


def test_what_a_run_did_is_listed_and_taken_back(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    (marvin.project / "a.txt").write_text("mine\n")
    edits: list[tuple[str, dict[str, str]]] = [
        ("read_file", {"path": "a.txt"}),
        ("write_file", {"path": "a.txt", "content": "theirs\n"}),
        ("create_file", {"path": "sub/b.txt", "content": "b\n"}),
        ("apply_patch", {"path": "sub/b.txt", "old_str": "b", "new_str": "c"}),
    ]
    marvin_model_server.script(calls(*edits), text("Done."))
    assert marvin.ask().code == 0
    lines = marvin.run("undo", "--list").text.splitlines()
    assert [line.split("  ")[-1] for line in lines[:3]] == [
        "apply_patch: changed sub/b.txt",
        "create_file: created sub/b.txt",
        "write_file: changed a.txt",
    ]
    assert lines[3] == "`marvin undo N` undoes the newest N."
    assert marvin.run("undo").text == "Undone: apply_patch: changed sub/b.txt\n"
    assert (marvin.project / "sub" / "b.txt").read_text() == "b\n"
    (marvin.project / "a.txt").write_text("edited\n")
    refused = marvin.run("undo", "2")
    assert refused.code == 1
    assert "Undone: create_file: created sub/b.txt" in refused.said
    assert "-theirs\n+edited\n" in refused.said
    assert (marvin.project / "a.txt").read_text() == "edited\n"


def test_a_call_that_a_tool_takes_back_itself(unconfigured: Marvin) -> None:
    assert unconfigured.run("tools", "call", "timer_start", "name=tea").code == 0
    assert unconfigured.run("undo").text == "Undone: timer_start: name=tea\n"
    assert "No timer is running" in unconfigured.run("tools", "call", "timer_check").text
    assert unconfigured.run("undo").text == "There is nothing to undo in this folder.\n"


def test_wrong_numbers_are_refused(unconfigured: Marvin) -> None:
    for wrong in ("0", "-1", "x", "101"):
        assert unconfigured.run("undo", wrong).code == 2
