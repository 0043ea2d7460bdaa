"""Hooks in Python, of packs and of the user: at every method and every event of the reference, failing in every way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from marvin_core import Hook, HookContext
from marvin_core.api.events import Event, Notice
from tests.support.engine import QUICK, Made, calls, do, make, run, says

HURRIED = QUICK.replace(hook=0.3, hook_decision=0.3)
METHODS = ("on_prompt", "system_prompt", "before_request", "before_tool", "after_tool", "on_stop")
EVENTS = tuple(kind.type for kind in get_args(Event))
RARE = {"session_resume", "session_clear", "tool_execution_update", "notice", "model_cycle"}
"""Events that a prompt with one call has no part in."""


class Garbage:
    """A value of a class whose every text fails."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


async def raises(context: HookContext) -> object:
    raise ValueError("broken")


async def exits(context: HookContext) -> object:
    raise SystemExit(5)


async def killed(context: HookContext) -> object:
    """What a Ctrl+C or a cancellation from nowhere would do in there; a signal to the process ends all of Marvin."""
    raise KeyboardInterrupt


async def cancelled(context: HookContext) -> object:
    raise asyncio.CancelledError


async def slow(context: HookContext) -> object:
    await asyncio.sleep(60)
    return None


async def garbage(context: HookContext) -> object:
    return Garbage()


async def flood(context: HookContext) -> object:
    for _ in range(2_000):
        context.notify("flood " * 100)
    raise ValueError("x" * 10_000_000)


FAILURES: dict[str, Callable[[HookContext], Awaitable[object]]] = {
    one.__name__: one for one in (raises, exits, killed, cancelled, slow, garbage, flood)
}


class Failing(Hook):
    """Fails at one method or at one event; `times` counts how often it came to that."""

    def __init__(self, at: str, failure: Callable[[HookContext], Awaitable[object]]) -> None:
        self.times = 0
        self._at = at
        self._failure = failure
        if at in METHODS:
            setattr(self, at, self._fail)
        else:
            setattr(self, "on_event", self._watch)  # noqa: B010  # as above

    async def _fail(self, context: HookContext, *given: Any) -> Any:
        self.times += 1
        return await self._failure(context)

    async def _watch(self, context: HookContext, event: Event) -> Any:
        return await self._fail(context) if event.type == self._at else None


class Following(Hook):
    """Comes behind it, and gets its turn whatever that one does."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def on_event(self, context: HookContext, event: Event) -> None:
        self.seen.append(event.type)

    async def on_stop(self, context: HookContext, answer: str) -> None:
        self.seen.append("on_stop")


def made_with(tmp_path: Path, *hooks: Hook) -> Made:
    script = (calls(("c0", "mark", '{"name": "x"}')), says("done"))
    return make(tmp_path, *script, hooks=hooks, timeouts=HURRIED)


def prompt(made: Made) -> str:
    async def go() -> str:
        try:
            return (await made.session.submit("go")).text
        finally:
            await made.session.close()

    return run(go())


def warnings(made: Made) -> str:
    return "\n".join(event.text for event in made.seen(Notice) if event.level == "warning")


@pytest.mark.slow
@pytest.mark.parametrize("at", [name for name in (*METHODS, *EVENTS) if name not in {"before_tool", *RARE}])
@pytest.mark.parametrize("failure", FAILURES)
def test_what_fails_is_told_of_and_the_prompt_and_the_others_go_on(tmp_path: Path, at: str, failure: str) -> None:
    failing, following = Failing(at, FAILURES[failure]), Following()
    made = made_with(tmp_path, failing, following)
    begin = time.monotonic()
    assert prompt(made) == "done"
    assert time.monotonic() - begin < 20
    assert failing.times
    assert made.log
    if failure == "garbage" and at not in METHODS:
        assert warnings(made) == ""  # nobody reads what an on_event returns
    elif (failure, at) != ("garbage", "before_request"):
        assert "Failing" in warnings(made)
    assert len(warnings(made)) < 100_000
    if failure != "slow":
        assert {"session_start", "agent_start", "on_stop"} <= set(following.seen)


@pytest.mark.parametrize("failure", FAILURES)
def test_a_guard_that_fails_denies(tmp_path: Path, failure: str) -> None:
    made = made_with(tmp_path, Failing("before_tool", FAILURES[failure]))
    output = do(made, ("mark", {"name": "x"}))[0]
    assert output.is_error
    assert "mark was not run" in output.text
    assert len(output.text) < 20_000
    assert made.log == []


@pytest.mark.slow
@pytest.mark.parametrize("event", sorted(RARE - {"session_resume", "model_cycle"}))
@pytest.mark.parametrize("failure", FAILURES)
def test_the_rare_events_fail_as_harmlessly(tmp_path: Path, event: str, failure: str) -> None:
    failing = Failing(event, FAILURES[failure])
    made = made_with(tmp_path, failing)

    async def go() -> None:
        made.session.sessions.clear()
        made.parts.bus.warn("look out")
        (await made.session.submit("go")).check()
        await made.session.close()

    run(go())
    assert failing.times or event == "tool_execution_update"
    assert made.log
