"""How hard models think: where that is said, what counts, what a session keeps of it, and what is sent for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from marvin_core.api.errors import ConfigError, UsageError
from tests.support.engine import Script, make, run, says, settled

FILE = "thinking: low\ntier_thinking: {high: high, codex: medium}\n"


@pytest.mark.parametrize(
    ("argv", "env", "yaml", "expected"),
    [
        ((), {}, "", ("off", "")),
        (("--thinking", "low"), {}, "", ("low", "flag")),
        (("--thinking", "off"), {"MARVIN_THINKING": "high"}, FILE, ("off", "flag")),
        (("--thinking", "low", "--thinking", "high"), {}, "", ("high", "flag")),
        ((), {"MARVIN_THINKING": "high"}, FILE, ("high", "environment")),
        ((), {"MARVIN_THINKING": ""}, FILE, ("low", "file")),
        (("--model", "high"), {}, FILE, ("high", "file")),
        (("--model", "low"), {}, FILE, ("medium", "file")),
        (("--model", "high"), {"MARVIN_THINKING": "off"}, FILE, ("off", "environment")),
        (("--model", "high", "--thinking", "opus=medium"), {"MARVIN_THINKING": "off"}, FILE, ("medium", "flag")),
        (("--model", "high", "--thinking", "low=medium"), {}, FILE, ("high", "file")),
        (("--model", "some-model", "--thinking", "high=medium"), {}, "", ("off", "")),
    ],
)
def test_what_counts(
    tmp_path: Path, argv: Sequence[str], env: Mapping[str, str], yaml: str, expected: tuple[str, str]
) -> None:
    """A flag before the variable before the file; and what is said of a tier before what is said of all, of each."""
    config, _ = settled(tmp_path, *argv, env=env, yaml=yaml)
    assert (config.thinking, config.thinking_from) == expected


def test_tiers_of_flags_and_of_the_file_are_known_by_one_name(tmp_path: Path) -> None:
    config, _ = settled(tmp_path, "--thinking", "low=off", "--thinking", "plan=high", yaml=FILE)
    assert config.tier_thinking == {"opus": "high", "codex": "off", "plan": "high"}


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--thinking", "much"], "--thinking: unknown thinking level 'much'. Use one of: off, low, medium, high."),
        (["--thinking", "high="], "unknown thinking level ''"),
        (["--thinking", "best=high"], "unknown tier 'best'"),
        (["--thinking", "=high"], "unknown tier ''"),
    ],
)
def test_a_wrong_flag(tmp_path: Path, argv: Sequence[str], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        settled(tmp_path, *argv)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("yaml", "env", "said"),
    [
        ("thinking: hard\n", {}, 'line 1: thinking: must be one of "off", "low", "medium", "high"; found "hard".'),
        ("tier_thinking: {best: high}\n", {}, "line 1: tier_thinking.best: there is no tier 'best'"),
        ("tier_thinking: {high: best}\n", {}, 'line 1: tier_thinking.high: must be one of "off"'),
        ("cache: 2h\n", {}, 'line 1: cache: must be one of "5m", "1h"; found "2h".'),
        ("", {"MARVIN_THINKING": "on"}, "MARVIN_THINKING: unknown thinking level 'on'"),
    ],
)
def test_a_wrong_value(tmp_path: Path, yaml: str, env: Mapping[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        settled(tmp_path, yaml=yaml, env=env)
    assert said in str(raised.value)


# In a session


def levels(script: Script) -> list[str]:
    return [request.thinking for request in script.requests]


def test_a_non_interactive_run_thinks_as_it_is_told(tmp_path: Path) -> None:
    made = make(tmp_path, says("Yes."), argv=("--non-interactive", "--thinking", "high"))
    assert made.provider is not None

    async def go() -> None:
        (await made.session.submit("Well?")).check()
        await made.session.close()

    run(go())
    assert levels(made.provider) == ["high"]


def test_a_prompt_for_the_best_model_thinks_as_its_tier_does_and_only_that_one(tmp_path: Path) -> None:
    coder = Script(says("b"), says("d"), model="low")
    made = make(tmp_path, says("a"), says("c"), argv=(), yaml=FILE, others=[coder])
    assert made.provider is not None

    async def go() -> None:
        (await made.session.submit("one")).check()
        with made.session.models.pro():
            (await made.session.submit("two")).check()
        (await made.session.submit("three")).check()
        made.session.models.use("low")
        (await made.session.submit("four")).check()
        await made.session.close()

    run(go())
    assert (levels(made.provider), levels(coder)) == (["low", "low"], ["high", "medium"])


@pytest.mark.parametrize(
    ("argv", "yaml", "expected"),
    [((), "", "high"), ((), "thinking: low\n", "high"), (("--thinking", "off"), "", "off")],
)
def test_a_resumed_session_thinks_as_it_did_unless_it_is_told_otherwise_now(
    tmp_path: Path, argv: Sequence[str], yaml: str, expected: str
) -> None:
    first = make(tmp_path, says("a"), argv=("--thinking", "high"))

    async def begin() -> Path:
        (await first.session.submit("one")).check()
        position = first.parts.writer.position
        assert position is not None
        await first.session.close()
        return position[0]

    path = run(begin())
    second = make(tmp_path, says("b"), argv=argv, yaml=yaml)
    assert second.provider is not None

    async def go_on() -> None:
        second.session.resume(path)
        (await second.session.submit("two")).check()
        await second.session.close()

    run(go_on())
    assert levels(second.provider) == [expected]
    third = make(tmp_path, says("c"), argv=())
    third.session.resume(path)
    assert third.session.models.thinking == expected, "and it is kept"
