"""Timers go on when Marvin ends, and many Marvins may use them at once."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from marvin_core.api.errors import MarvinError
from marvin_core.testing import ToolRunner


def timers_file(tools: ToolRunner) -> Path:
    return tools.home / ".config/marvin/profiles/main/timers.json"


def set_back(tools: ToolRunner, name: str, seconds: float) -> None:
    """Let the timer have started earlier, as if time had passed."""
    path = timers_file(tools)
    timers = json.loads(path.read_text())
    timers[name]["started"] -= seconds
    path.write_text(json.dumps(timers))


def seconds_in(text: str) -> int:
    """The span of time in a text, in seconds."""
    length = {"second": 1, "minute": 60}
    return sum(int(number) * length[unit] for number, unit in re.findall(r"(\d+) (second|minute)", text))


class Passing:
    """The time that passes beside a test; a span is told in whole seconds, rounded."""

    def __init__(self) -> None:
        self._begin = time.time()

    def accounts_for(self, counted: int, since: float) -> bool:
        """Whether so many seconds, or so many less, have been counted since a time that was set."""
        return since - 0.5 <= counted <= since + 0.5 + time.time() - self._begin


def test_a_countdown_goes_on_in_the_next_session(marvin_tools: ToolRunner) -> None:
    passing = Passing()
    started = marvin_tools.call("timer_start", name="Green tea", duration_seconds=180)
    assert started.text == "Countdown 'Green tea' of 3 minutes started."
    set_back(marvin_tools, "green tea", 60)
    head, left = marvin_tools.session().call("timer_check").text.split(": ")
    assert (head, left[-5:]) == ("Countdown 'Green tea' of 3 minutes", " left")
    assert passing.accounts_for(180 - seconds_in(left), 60)
    set_back(marvin_tools, "green tea", 150)
    over = marvin_tools.session().call("timer_check", name="green  TEA").text
    assert passing.accounts_for(seconds_in(over.partition("ended ")[2].removesuffix(" ago")), 30)
    stopped = marvin_tools.call("timer_stop", name="Green tea").text
    assert passing.accounts_for(seconds_in(stopped.partition("It ended ")[2].removesuffix(" ago.")), 30)
    assert marvin_tools.call("timer_check").text.startswith("No timer is running")


def test_a_stopwatch_measures(marvin_tools: ToolRunner) -> None:
    passing = Passing()
    assert marvin_tools.call("timer_start", name="run").text == "Stopwatch 'run' started."
    time.sleep(1.1)
    head, ran = marvin_tools.call("timer_check", name="run").text.split(": ")
    assert head == "Stopwatch 'run'"
    assert passing.accounts_for(seconds_in(ran), 1)
    stopped = marvin_tools.call("timer_stop", name="run").text
    assert stopped.startswith("Stopwatch 'run' stopped after ")
    assert passing.accounts_for(seconds_in(stopped), 1)


def test_a_stopped_timer_comes_back_as_it_ran(marvin_tools: ToolRunner) -> None:
    for name, seconds in (("tea", 180), ("run", 0)):
        marvin_tools.call("timer_start", name=name, duration_seconds=seconds)
        set_back(marvin_tools, name, 60)
    before = json.loads(timers_file(marvin_tools).read_text())
    for name in ("tea", "run"):
        marvin_tools.call("timer_stop", name=name)
    marvin_tools.take_back(2)
    assert json.loads(timers_file(marvin_tools).read_text()) == before


def test_what_a_new_timer_took_the_place_of_comes_back_too(marvin_tools: ToolRunner) -> None:
    marvin_tools.call("timer_start", name="tea", duration_seconds=60)
    set_back(marvin_tools, "tea", 120)
    before = json.loads(timers_file(marvin_tools).read_text())
    marvin_tools.call("timer_start", name="Tea", duration_seconds=90)
    marvin_tools.session().take_back()
    assert json.loads(timers_file(marvin_tools).read_text()) == before


@pytest.mark.parametrize("elsewhere", ["another timer of that name", "another profile"])
def test_a_timer_of_somebody_else_is_left_alone(marvin_tools: ToolRunner, elsewhere: str) -> None:
    marvin_tools.call("timer_start", name="tea", duration_seconds=60)
    file = timers_file(marvin_tools)
    if elsewhere == "another profile":
        (file.parents[1] / "work").mkdir()
        (file.parents[1] / "work" / file.name).write_text(file.read_text())
        (file.parents[2] / "last_profile").write_text("work\n")
    else:
        set_back(marvin_tools, "tea", 1)
    with pytest.raises(MarvinError, match="It was changed since then" if "timer" in elsewhere else "work is active"):
        marvin_tools.session().take_back()
    assert all("tea" in json.loads(one.read_text()) for one in file.parents[1].glob("*/timers.json"))


def test_names_are_the_same_however_they_are_typed(marvin_tools: ToolRunner) -> None:
    """An accent is a letter's own or a sign behind it, as the keyboard has it."""
    marvin_tools.call("timer_start", name="Caf\u00e9 Stra\u00dfe")
    assert not marvin_tools.call("timer_check", name="CAFE\u0301  STRASSE").is_error
    assert marvin_tools.call("timer_start", name="cafe\u0301 strasse").is_error


def test_of_very_many_timers_some_are_told(marvin_tools: ToolRunner) -> None:
    marvin_tools.call("timer_start", name="tea")
    timers = {f"t{number}": {"name": f"t{number}", "started": number, "duration": 0} for number in range(10_000)}
    timers_file(marvin_tools).write_text(json.dumps(timers))
    lines = marvin_tools.call("timer_check").text.splitlines()
    assert len(lines) == 101
    assert lines[-2].startswith("Stopwatch 't9999'")
    assert lines[-1].startswith("9,900 older ones")
    assert len(marvin_tools.call("timer_stop", name="nope").text) < 1_000
    assert not marvin_tools.call("timer_start", name="one more", duration_seconds=5).is_error


def test_all_timers_are_listed_oldest_first(marvin_tools: ToolRunner) -> None:
    for name in ("b", "a"):
        marvin_tools.call("timer_start", name=name)
    assert [line[:13] for line in marvin_tools.call("timer_check").text.splitlines()] == [
        "Stopwatch 'b'",
        "Stopwatch 'a'",
    ]


def test_a_running_timer_is_not_replaced_but_one_that_is_over_is(marvin_tools: ToolRunner) -> None:
    marvin_tools.call("timer_start", name="tea", duration_seconds=60)
    second = marvin_tools.call("timer_start", name="TEA", duration_seconds=90)
    assert second.is_error
    assert "Countdown 'tea' of 1 minute: " in second.text
    assert "timer_stop" in second.text
    set_back(marvin_tools, "tea", 61)
    assert not marvin_tools.call("timer_start", name="TEA", duration_seconds=90).is_error


@pytest.mark.parametrize(("tool", "arguments"), [("timer_check", {"name": "tae"}), ("timer_stop", {"name": "tae"})])
def test_an_unknown_name_tells_the_known_ones(marvin_tools: ToolRunner, tool: str, arguments: dict[str, str]) -> None:
    marvin_tools.call("timer_start", name="tea")
    outcome = marvin_tools.call(tool, **arguments)
    assert outcome.is_error
    assert "Running: 'tea'" in outcome.text


def test_wrong_arguments_are_refused(marvin_tools: ToolRunner) -> None:
    assert "needs a name" in marvin_tools.call("timer_start", name="  ").text
    assert "1 to 100 characters" in marvin_tools.call("timer_start", name="x" * 1_000_000).text
    assert marvin_tools.call("timer_start", name="tea", duration_seconds=-1).is_error
    taken_back = {"before": None, "after": None}
    assert "for /undo only" in marvin_tools.call("timer_start", name="tea", taken_back=taken_back).text
    assert not timers_file(marvin_tools).exists()


def test_a_clock_that_was_set_back_does_not_confuse_it(marvin_tools: ToolRunner) -> None:
    marvin_tools.call("timer_start", name="tea", duration_seconds=60)
    set_back(marvin_tools, "tea", -3600)
    assert "1 minute left" in marvin_tools.call("timer_check").text


@pytest.mark.parametrize(
    "content",
    [
        '{"tea": ',
        '{"tea": 3}',
        '{"tea": {}}',
        '{"tea": {"name": "tea", "started": "now", "duration": 5}}',
        '{"tea": {"name": "tea", "started": 5, "duration": 1e300}}',
        '{"tea": {"name": "tea", "started": -1e300, "duration": 5}}',
        '{"tea": {"name": "tea", "started": 1e300, "duration": 5}}',
    ],
)
@pytest.mark.parametrize("tool", ["timer_check", "timer_start", "timer_stop"])
def test_a_damaged_file_is_named_and_moved_aside(marvin_tools: ToolRunner, tool: str, content: str) -> None:
    marvin_tools.call("timer_start", name="tea")
    timers_file(marvin_tools).write_text(content)
    outcome = marvin_tools.call(tool, name="tea")
    assert outcome.is_error
    assert "timers.json is damaged" in outcome.text
    (moved,) = timers_file(marvin_tools).parent.glob("timers.json.damaged-*")
    assert moved.name in outcome.text
    assert moved.read_text() == content
    assert marvin_tools.call("timer_check").text == "No timer is running. Use timer_start to start one."


def test_a_countdown_that_nobody_lives_to_see_is_refused(marvin_tools: ToolRunner) -> None:
    refused = marvin_tools.call("timer_start", name="big", duration_seconds=10**20)
    assert refused.is_error
    assert "Use a shorter countdown" in refused.text
    assert marvin_tools.call("timer_check").text.startswith("No timer is running")


STARTER = """
import sys
from pathlib import Path
from marvin_core.testing import ToolRunner

with ToolRunner(Path(sys.argv[1]), Path(sys.argv[2])) as tools:
    for number in range(5):
        outcome = tools.call("timer_start", name=f"{sys.argv[3]}-{number}")
        assert not outcome.is_error, outcome.text
"""


@pytest.mark.slow
def test_eight_processes_lose_nothing(marvin_tools: ToolRunner) -> None:
    places = [str(marvin_tools.home), str(marvin_tools.working_dir)]
    children = [subprocess.Popen([sys.executable, "-P", "-c", STARTER, *places, str(n)]) for n in range(8)]
    assert [child.wait(200) for child in children] == [0] * 8
    assert len(marvin_tools.call("timer_check").text.splitlines()) == 40
    assert not list(timers_file(marvin_tools).parent.glob(".timers*"))


def test_a_read_only_agent_may_look_but_not_start(marvin_tools: ToolRunner) -> None:
    tools = marvin_tools.session(read_only=True)
    assert tools.call("timer_start", name="tea").is_error
    assert not tools.call("timer_check").is_error
