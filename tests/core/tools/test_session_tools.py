"""The tools get_usage and exit_app, called as a session calls them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from marvin_core import ToolSpec, UsageDelta
from marvin_core.api.limits import Price
from marvin_core.api.messages import Usage
from marvin_core.api.tools import Tool
from marvin_core.tools import session_tools as tools
from marvin_core.tools.schema import describe
from marvin_core.usage.text import usage_text
from tests.support.engine import SPECS, Made, calls, make, run, says

FOUND = [value for value in vars(tools).values() if isinstance(value, Tool)]
WITH_SESSION = (*SPECS, *(describe(one, source="marvin-core", module=tools.__name__, group="session") for one in FOUND))


async def left(question: str, choices: Sequence[str]) -> str:
    return choices[0]


def prompted(made: Made, *prompts: str) -> None:
    async def go() -> None:
        for prompt in prompts:
            result = await made.session.submit(prompt)
            assert result.error is None
        await made.session.close()

    run(go())


def output(made: Made, name: str) -> str:
    found = [o for message in made.parts.conversation.messages for o in message.outputs if o.name == name]
    return found[-1].text


def test_usage_has_tokens_cost_and_tool_calls_of_the_session(tmp_path: Path) -> None:
    """I11: priced by model."""
    script = [calls(("a", "look", '{"name": "x"}'), ("b", "look", '{"name": "y"}')), calls(("c", "get_usage", "{}"))]
    prices = {"scripted": Price(input=1000.0, output=10000.0)}
    made = make(tmp_path, *script, says("Fine."), specs=WITH_SESSION, prices=prices)
    prompted(made, "go")
    told = output(made, "get_usage")
    assert "2 model requests, cost 0.4000 USD" in told
    assert "Input tokens: 200" in told
    assert "Output tokens: 20" in told
    assert "Tool calls: 2" in told
    assert "look: 2" in told
    assert "All sessions" not in told


def test_an_unknown_cost_is_shown_as_unknown(tmp_path: Path) -> None:
    """I11: never as nothing."""
    made = make(
        tmp_path,
        calls(("c", "get_usage", "{}")),
        says("Fine."),
        specs=WITH_SESSION,
        prices={"other": Price(input=1.0, output=1.0)},
    )
    prompted(made, "go")
    assert "cost unknown" in output(made, "get_usage")
    assert "USD" not in output(made, "get_usage")


def test_lifetime_adds_this_session_to_what_is_on_disk(tmp_path: Path) -> None:
    asks = calls(("c", "get_usage", '{"include_lifetime": true}'))
    made = make(tmp_path, asks, says("Fine."), specs=WITH_SESSION)
    totals = made.config.config_folder / "usage.json"
    totals.write_text('{"turns": {"scripted": 9, "new": 2}, "cost": {"scripted": 2.5, "new": null}}')
    prompted(made, "go")
    told = output(made, "get_usage")
    assert "All sessions: 12 model requests, cost 2.5000 USD without 1 model whose price is unknown" in told
    assert "  scripted: 1 request, cost 0.0000 USD" in told
    assert "  counted before providers were recorded: 11 requests, cost 2.5000 USD without 1 model" in told
    assert "    scripted: 9 requests, cost 2.5000 USD" in told
    assert "new: 2 requests, cost unknown" in told
    assert '"scripted": 11,' in totals.read_text(), "asking changes nothing; the prompt itself is counted"


def test_a_damaged_total_is_told_and_left_alone(tmp_path: Path) -> None:
    """I10."""
    made = make(tmp_path, specs=WITH_SESSION)
    totals = made.config.config_folder / "usage.json"
    totals.write_text("[1]")
    told = made.call("get_usage", include_lifetime=True)
    assert told.is_error
    assert "without include_lifetime" in told.text
    assert totals.read_text() == "[1]"


def test_cached_and_reasoning_tokens_are_named(tmp_path: Path) -> None:
    usage = Usage(input_tokens=5000, output_tokens=70, cache_read_tokens=4000, cache_write_tokens=6, reasoning_tokens=9)
    made = make(tmp_path, says("One.", usage=UsageDelta(usage=usage)), specs=WITH_SESSION)
    prompted(made, "go")
    told = usage_text(made.session.usage())
    assert "Input tokens: 5,000 (4,000 read from a cache, 6 written to one)" in told
    assert "Output tokens: 70 (9 of them reasoning)" in told


def test_exit_app_has_the_chat_end_after_the_turn(tmp_path: Path) -> None:
    script = [calls(("a", "exit_app", '{"message": "See you!"}')), says("Done.")]
    made = make(tmp_path, *script, argv=(), specs=WITH_SESSION, asker=left)
    prompted(made, "bye")
    assert made.session.farewell == "See you!"
    assert made.parts.conversation.messages[-1].text == "Done."


def test_exit_app_has_a_farewell_of_its_own(tmp_path: Path) -> None:
    made = make(tmp_path, argv=(), specs=WITH_SESSION, asker=left)
    assert not made.call("exit_app").is_error
    assert made.session.farewell == "Goodbye!"


def test_where_there_is_no_chat_there_is_nothing_to_leave(tmp_path: Path) -> None:
    made = make(tmp_path, argv=(), specs=WITH_SESSION)
    assert made.call("exit_app").is_error
    assert made.session.farewell is None


@pytest.mark.parametrize(("argv", "env"), [(["--non-interactive"], {}), ([], {"MARVIN_DEPTH": "1"})])
def test_a_run_without_a_user_is_not_offered_exit_app(tmp_path: Path, argv: list[str], env: dict[str, str]) -> None:
    made = make(tmp_path, argv=argv, env=env, specs=WITH_SESSION)
    offered = {spec.name for spec in made.session.tools}
    assert "get_usage" in offered or made.config.depth
    assert "exit_app" not in offered
    run(made.session.close())


def test_the_coding_set_has_usage_and_history_and_nothing_for_chats(tmp_path: Path) -> None:
    made = make(tmp_path, argv=("--tools", "coding"), specs=WITH_SESSION)
    names: list[ToolSpec] = [spec for spec in made.session.tools if spec.group == "session"]
    assert sorted(spec.name for spec in names) == [
        "compact_history",
        "get_usage",
        "search_history_backups",
        "tool_search",
    ]
    run(made.session.close())
