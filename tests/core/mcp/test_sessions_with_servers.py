"""What servers bring is offered, called and told as tools are; what a server does wrong stays its own."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from tests.core.mcp.support_mcp import desk, images_of, text_of

pytestmark = pytest.mark.slow  # each test starts a server of its own


def is_gone(pid: int, limit: float = 20.0) -> bool:
    """Whether a process ends in time."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def test_a_servers_tools_are_offered_and_called(tmp_path: Path) -> None:
    with desk(tmp_path, "good") as made:
        assert "trial__add" not in {spec.name for spec in made.session.tools}
        made.learn()
        offered = {spec.name: spec for spec in made.session.tools}
        assert {"trial__add", "trial__act", "trial__look", "trial__read_resource"} <= set(offered)
        assert offered["trial__look"].changes, "what a server says of itself is no proof"
        assert text_of(made.call("trial__add", a=2, b=3)) == "5"
        assert text_of(made.call("trial__read_resource", uri="note://one")) == "the text of note://one"
        refused = made.call("trial__act")
        assert refused.is_error
        assert text_of(refused) == "refused"


def test_a_call_that_the_server_would_refuse_is_not_sent(tmp_path: Path) -> None:
    noted = tmp_path / "pids"
    with desk(tmp_path, "good", str(noted)) as made:
        made.learn()
        wrong = text_of(made.call("trial__add", a="two"))
        assert "trial__add was not run, because its arguments are wrong" in wrong
        assert "'two' is not of type 'integer'" in wrong
        assert "'b' is a required property" in wrong


def test_the_next_run_knows_the_tools_and_starts_nothing(tmp_path: Path) -> None:
    noted = tmp_path / "pids"
    with desk(tmp_path, "good", str(noted)) as made:
        made.learn()
    assert len(noted.read_text().split()) == 1
    with desk(tmp_path, "good", str(noted)) as made:
        assert "trial__add" in {spec.name for spec in made.session.tools}
        made.learn()
        assert len(noted.read_text().split()) == 1, "what is known is not asked for"
        assert text_of(made.call("trial__add", a=1, b=1)) == "2"
        assert text_of(made.call("trial__add", a=1, b=2)) == "3"
    pids = [int(pid) for pid in noted.read_text().split()]
    assert len(pids) == 2, "one connection serves all calls of a session"
    assert all(map(is_gone, pids))


def test_another_setup_is_asked_anew(tmp_path: Path) -> None:
    with desk(tmp_path, "good") as made:
        made.learn()
    with desk(tmp_path, "lies") as made:
        assert "trial__add" not in {spec.name for spec in made.session.tools}


def test_the_user_says_what_changes_nothing(tmp_path: Path) -> None:
    with desk(tmp_path, "good", read_only=["lo*"]) as made:
        made.learn()
        offered = {spec.name: spec for spec in made.session.tools}
        assert not offered["trial__look"].changes
        assert offered["trial__add"].changes


@pytest.mark.parametrize(
    ("way", "said"),
    [("exit-start", "it ended: there is no cheese"), ("hang-start", "it was not ready within 0.5 s")],
)
def test_a_server_that_does_not_start_is_named_and_nothing_else_suffers(tmp_path: Path, way: str, said: str) -> None:
    with desk(tmp_path, way, timeouts={"server": 0.5 if way == "hang-start" else 60}) as made:
        made.learn()
        assert f"The MCP server trial cannot be used: {said}" in made.notices
        assert text_of(made.call("get_working_dir")) == str(tmp_path / "work")
        before = made.notices
        made.learn()
        assert made.notices.count("cannot be used") == before.count("cannot be used"), "told once"


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("crash-call", "it ended: out of cheese"),
        ("one-line", "it sent a message of more than 16 MB"),
        pytest.param("flood", "it sent more than 64 MB that nobody asked for", marks=pytest.mark.slow),
        pytest.param("pings", "it sent more than 64 MB that nobody asked for", marks=pytest.mark.slow),
        pytest.param("garbage", "it sends what is no JSON-RPC", marks=pytest.mark.slow),
    ],
)
def test_a_server_that_breaks_off_in_a_call_is_started_again_for_the_next(tmp_path: Path, way: str, said: str) -> None:
    noted = tmp_path / "pids"
    with desk(tmp_path, way, str(noted)) as made:
        made.learn()
        broken = made.call("trial__act")
        assert broken.is_error
        assert f"The MCP server trial broke off in the call: {said}" in text_of(broken)
        assert text_of(made.call("trial__add", a=2, b=2)) == "4"
    pids = [int(pid) for pid in noted.read_text().split()]
    assert len(pids) == 2
    assert all(map(is_gone, pids))


@pytest.mark.slow
def test_a_call_that_hangs_is_ended_and_the_server_goes_on(tmp_path: Path) -> None:
    with desk(tmp_path, "hang-call", timeouts={"tool": 1}) as made:
        made.learn()
        assert "took longer than 1 s" in text_of(made.call("trial__act"))
        assert text_of(made.call("trial__add", a=2, b=2)) == "4"


def test_the_schema_of_a_servers_results_cannot_hold_the_program(tmp_path: Path) -> None:
    with desk(tmp_path, "outputs") as at:
        at.learn()
        assert text_of(at.call("trial__act")) == "done"
        assert text_of(at.call("trial__look")) == "done"  # whatever its schema says, this is what the server answered


@pytest.mark.slow
def test_a_server_that_does_not_end_is_ended(tmp_path: Path) -> None:
    noted = tmp_path / "pids"
    with desk(tmp_path, "hang-close", str(noted)) as made:
        made.learn()
    assert all(is_gone(int(pid)) for pid in noted.read_text().split())


@pytest.mark.parametrize("way", ["unknown", "banner"])
def test_what_is_unknown_is_passed_over(tmp_path: Path, way: str) -> None:
    with desk(tmp_path, way) as made:
        made.learn()
        assert text_of(made.call("trial__act")) == ("fine" if way == "unknown" else "refused")


def test_what_a_server_says_of_its_tools_is_bounded_and_steers_no_terminal(tmp_path: Path) -> None:
    with desk(tmp_path, "lies") as made:
        made.learn()
        offered = {spec.name: spec for spec in made.session.tools if spec.group == "mcp"}
        description = offered["trial__add"].description
        assert "\x1b" not in description
        assert len(description) <= 4_001
        assert any(name.startswith("trial__n_me_with_blanks_nnn") and len(name) == 64 for name in offered)
        assert not any("endless" in name or "large" in name for name in offered)
        assert len(made.source.servers.known["trial"].left_out) == 2


@pytest.mark.slow
def test_of_very_many_tools_the_first_are_offered(tmp_path: Path) -> None:
    with desk(tmp_path, "many") as made:
        made.learn()
        assert len(made.source.servers.known["trial"].tools) == 1_000


@pytest.mark.slow
def test_definitions_that_grow_without_end_are_not_written_out(tmp_path: Path) -> None:
    with desk(tmp_path, "bombs") as made:
        begun = time.process_time()
        made.learn()
        assert time.process_time() - begun < 10
        listing = made.source.servers.known["trial"]
        assert [tool.called for tool in listing.tools] == ["add", "act", "look"]
        assert "take too many characters, written out" in listing.left_out[0]
        assert "more tools: the server brings too much" in listing.left_out[-1]


@pytest.mark.slow
def test_all_that_a_server_brings_is_bounded(tmp_path: Path) -> None:
    with desk(tmp_path, "heavy") as made:
        made.learn()
        listing = made.source.servers.known["trial"]
        assert "more tools: the server brings too much" in listing.left_out[-1]
        assert {prompt.name for prompt in listing.prompts} == {"greet"}
    (kept,) = (tmp_path / "home").rglob("mcp-servers.json")
    assert kept.stat().st_size < 5_000_000


def test_how_far_a_call_is_is_told(tmp_path: Path) -> None:
    with desk(tmp_path, "progress") as made:
        made.learn()
        assert text_of(made.call("trial__act")) == "done"
        updates = [event for event in made.events if event.type == "tool_execution_update"]
        assert updates
        assert {getattr(update, "total", None) for update in updates} == {3.0}


def test_a_list_that_changed_is_asked_for_before_the_next_prompt(tmp_path: Path) -> None:
    with desk(tmp_path, "changes") as made:
        made.learn()
        assert text_of(made.call("trial__act")) == "changed"
        made.learn()
        assert "trial__other" in {spec.name for spec in made.session.tools}
        assert "no longer has it" in text_of(made.call("trial__add", a=1, b=1))


def test_blocks_of_all_kinds_become_what_models_read(tmp_path: Path) -> None:
    with desk(tmp_path, "blocks") as made:
        made.learn()
        result = made.call("trial__act")
        assert images_of(result) == 1
        assert (
            "a note\n(a resource: file:///b, b)\n(audio, audio/wav, 6 bytes; it is not given to the model)"
            in text_of(result)
        )


def test_a_server_may_not_ask_the_model(tmp_path: Path) -> None:
    with desk(tmp_path, "samples") as made:
        made.learn()
        assert '"error"' in text_of(made.call("trial__act"))


def test_where_nobody_is_there_a_servers_question_is_not_answered(tmp_path: Path) -> None:
    with desk(tmp_path, "elicits") as made:
        made.learn()
        assert '"action": "cancel"' in text_of(made.call("trial__act"))


def test_a_server_asks_so_often_in_a_call_and_no_more(tmp_path: Path) -> None:
    answers = ["nan", "inf", "1e999", "7", *["me"] * 29]
    with desk(tmp_path, "asks-on", answers=answers) as made:
        made.learn()
        said = json.loads(text_of(made.run(made.session.call_tool("trial__act", {}))))
        assert said[0]["result"]["content"] == {"name": 7.0}
        assert [one.get("result", {}).get("action") for one in said] == ["accept"] * 10 + [None] * 20
        assert said[10]["error"]["message"] == "Only 10 questions are asked in one call."
        assert len(made.asked.questions) == 13


def test_a_form_that_nobody_can_be_shown_is_refused_and_no_field_is_asked_for_without_end(tmp_path: Path) -> None:
    with desk(tmp_path, "asks-badly", answers=["words"] * 50) as made:
        made.learn()
        said = json.loads(text_of(made.run(made.session.call_tool("trial__act", {}))))
        assert ["form" in one.get("error", {}).get("message", "") for one in said] == [True] * 5 + [False] * 2
        assert [one["result"] for one in said[5:]] == [{"action": "accept", "content": {}}] * 2
        assert len(made.asked.questions) == 10
