"""Hooks of packs: they watch, and may tighten; none can loosen anything, stop a prompt or hold it up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from marvin_core import Ask, Deny, Event, Hook, HookContext, Message, ToolResult, ToolSpec, Verdict
from marvin_core.api.events import MessageUpdate, Notice
from marvin_core.api.messages import user
from marvin_core.api.processes import ProcessResult
from marvin_core.api.timeouts import Timeouts
from marvin_core.api.tools import Mode
from marvin_core.engine.hook_runner import HookRunner
from marvin_core.util.bus import Bus
from tests.support.counting import times_called
from tests.support.engine import run, spec, until

TIMEOUTS = Timeouts(hook=30.0, hook_decision=30.0)
HURRIED = Timeouts(hook=0.2, hook_decision=0.2)
"""For hooks that hang; those of these tests that do not are done before time is looked at."""
SPEC = spec("look")


class Surroundings:
    """What hooks get."""

    cwd = Path("/w")
    config_folder = Path("/c")
    mode: Mode = "coding"

    def send(self, text: str) -> None:
        raise AssertionError(text)

    async def run(self, argv: Sequence[str]) -> ProcessResult:
        raise AssertionError(argv)


def surroundings(hook: Hook) -> HookContext:
    return cast("HookContext", Surroundings())


class Says(Hook):
    """Gives each question the answer it was made with: a value, an error to raise, or None to hang."""

    def __init__(self, answer: object, log: list[str] | None = None) -> None:
        self.answer = answer
        self.log = [] if log is None else log

    async def _answer(self) -> Any:
        self.log.append(f"asked {self.answer}" if self.answer is None else "asked")
        if self.answer == "hang":
            await asyncio.Event().wait()
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    async def on_prompt(self, context: HookContext, text: str) -> str | None:
        found: str | None = await self._answer()
        return found

    async def system_prompt(self, context: HookContext) -> str | None:
        found: str | None = await self._answer()
        return found

    async def before_request(self, context: HookContext, messages: Sequence[Message]) -> None:
        await self._answer()

    async def before_tool(self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any]) -> Verdict:
        found: Verdict = await self._answer()
        return found

    async def after_tool(
        self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any], result: ToolResult
    ) -> ToolResult | None:
        found: ToolResult | None = await self._answer()
        return found

    async def on_event(self, context: HookContext, event: Event) -> None:
        await self._answer()


class SpeechlessError(Exception):
    """An error that fails to say what is wrong."""

    def __str__(self) -> str:
        raise ValueError("no words")

    __repr__ = __str__


class OldSignatures(Hook):
    """Written against another version: plain functions, of other parameters."""

    def on_prompt(self) -> str:  # type: ignore[override]
        return "x"

    def system_prompt(self) -> str:  # type: ignore[override]
        return "x"

    def before_request(self) -> None:  # type: ignore[override]
        raise KeyError("x")

    def before_tool(self) -> None:  # type: ignore[override]
        return None

    def after_tool(self) -> None:  # type: ignore[override]
        return None

    def on_event(self, context: HookContext, event: Event) -> None:  # type: ignore[override]
        raise KeyError("x")


def runner(*hooks: Hook, told: list[str] | None = None, timeouts: Timeouts = TIMEOUTS) -> HookRunner:
    told = [] if told is None else told
    return HookRunner(hooks, surroundings, timeouts, bus_to(told.append))


def bus_to(warn: Callable[[str], None]) -> Bus:
    """A bus whose warnings go there."""
    bus = Bus()
    bus.subscribe(lambda event: warn(event.text) if isinstance(event, Notice) else None)
    return bus


def in_time_for(*answers: object) -> Timeouts:
    return HURRIED if "hang" in answers else TIMEOUTS


def verdict(*answers: object) -> Verdict:
    return run(runner(*map(Says, answers), timeouts=in_time_for(*answers)).before_tool(SPEC, {}))


DENY, ASK = Deny(reason="no"), Ask(reason="sure?")


# --- deciding ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "holds"),
    [
        ([], None),
        ([None], None),
        ([ASK], ASK),
        ([None, ASK, None], ASK),
        ([DENY, ASK], DENY),
        ([ASK, DENY], DENY),
        ([None, DENY], DENY),
    ],
)
def test_the_strongest_verdict_of_all_hooks_holds_in_any_order(answers: list[object], holds: Verdict) -> None:
    assert verdict(*answers) == holds


def test_every_hook_is_asked_even_after_a_denial() -> None:
    log: list[str] = []
    run(runner(Says(DENY), Says(None, log)).before_tool(SPEC, {}))
    assert log == ["asked None"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (ValueError("broken"), "the hook Says failed: ValueError: broken"),
        (TimeoutError("inner"), "the hook Says did not decide within 30 s"),
        ("hang", "the hook Says did not decide within 0.2 s"),
        (True, "the hook Says returned True instead of Deny, Ask or None"),
        ("yes", "the hook Says returned 'yes' instead of Deny, Ask or None"),
        (DENY.as_dict(), "instead of Deny, Ask or None"),
    ],
)
def test_a_hook_that_cannot_decide_denies(answer: object, reason: str) -> None:
    """A hook that guards something must fail closed."""
    found = verdict(None, answer, ASK)
    assert isinstance(found, Deny)
    assert reason in found.reason


def test_what_a_hook_does_to_arguments_is_neither_judged_nor_run() -> None:
    class Alters(Hook):
        async def before_tool(self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any]) -> Verdict:
            cast("dict[str, Any]", arguments)["paths"][0] = "harmless"
            cast("dict[str, Any]", arguments)["command"] = "ls"
            return None

    class Guards(Hook):
        async def before_tool(self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any]) -> Verdict:
            return Deny(reason=f"{arguments['command']} {arguments['paths']}")

    arguments = {"command": "rm", "paths": ["/"]}
    assert run(runner(Alters(), Guards()).before_tool(SPEC, arguments)) == Deny(reason="rm ['/']")
    assert arguments == {"command": "rm", "paths": ["/"]}


def test_a_hook_of_another_signature_denies_too() -> None:
    found = run(runner(OldSignatures()).before_tool(SPEC, {}))
    assert isinstance(found, Deny)
    assert "OldSignatures failed: TypeError" in found.reason


def test_hooks_that_hang_cost_no_more_than_their_time() -> None:
    began = time.monotonic()
    assert isinstance(verdict("hang", "hang"), Deny)
    assert time.monotonic() - began + 0.01 >= 0.4


# --- changing and adding -------------------------------------------------------------------------------------------


def test_prompts_prompt_texts_and_results_pass_through_the_hooks_in_order() -> None:
    class Adds(Says):
        async def on_prompt(self, context: HookContext, text: str) -> str | None:
            return f"{text}{self.answer}"

        async def after_tool(
            self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any], result: ToolResult
        ) -> ToolResult | None:
            return result.replace(content=f"{result.content}{self.answer}")

    found = runner(Adds("1"), Hook(), Adds("2"))
    assert run(found.on_prompt("p")) == "p12"
    assert run(found.after_tool(SPEC, {}, ToolResult(content="r"))).content == "r12"
    assert run(found.system_prompt()) == ["1", "2"]


def test_an_empty_prompt_is_a_change_and_none_is_not() -> None:
    assert run(runner(Says("")).on_prompt("p")) == ""
    assert run(runner(Says(None)).on_prompt("p")) == "p"


CALLS: dict[str, Callable[[HookRunner], Coroutine[Any, Any, Any]]] = {
    "on_prompt": lambda hooks: hooks.on_prompt("p"),
    "system_prompt": lambda hooks: hooks.system_prompt(),
    "before_request": lambda hooks: hooks.before_request([user("p")]),
    "after_tool": lambda hooks: hooks.after_tool(SPEC, {}, ToolResult(content="p")),
}
UNTOUCHED: dict[str, Any] = {
    "on_prompt": "p",
    "system_prompt": [],
    "before_request": None,
    "after_tool": ToolResult(content="p"),
}


@pytest.mark.parametrize("what", CALLS)
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (ValueError("broken"), "failed: ValueError: broken"),
        (asyncio.CancelledError("bye"), "failed: CancelledError: bye"),
        (SystemExit("bye"), "failed: SystemExit: bye"),
        (KeyboardInterrupt(), "failed: KeyboardInterrupt"),
        (GeneratorExit(), "failed: GeneratorExit"),
        (SpeechlessError(), "failed: SpeechlessError (its text cannot be shown)"),
        ("hang", "took longer than 0.2 s"),
        (5, "returned 5"),
    ],
)
def test_a_hook_that_fails_hangs_or_returns_junk_is_skipped_and_named(what: str, answer: object, why: str) -> None:
    told: list[str] = []
    log: list[str] = []
    got = run(CALLS[what](runner(Says(answer), Says(None, log), told=told, timeouts=in_time_for(answer))))
    assert got == UNTOUCHED[what]
    assert log == ["asked None"]
    if (what, answer) != ("before_request", 5):  # whose answer nobody looks at
        assert told == [f"The hook Says.{what} {why}; skipped."]


@pytest.mark.parametrize("what", CALLS)
def test_a_hook_of_another_signature_is_skipped_and_named(what: str) -> None:
    told: list[str] = []
    assert run(CALLS[what](runner(OldSignatures(), told=told))) == UNTOUCHED[what]
    assert len(told) == 1
    assert f"OldSignatures.{what} failed: TypeError" in told[0]


def test_cancelling_a_prompt_is_not_taken_for_a_failing_hook() -> None:
    told: list[str] = []
    log: list[str] = []

    async def go() -> None:
        task = asyncio.ensure_future(runner(Says("hang", log), told=told).on_prompt("p"))
        await until(lambda: bool(log))
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        run(go())
    assert told == []


# --- events --------------------------------------------------------------------------------------------------------


class Watches(Hook):
    def __init__(self, seconds: float = 0.0) -> None:
        self.seen: list[str] = []
        self.seconds = seconds

    async def on_event(self, context: HookContext, event: Event) -> None:
        await asyncio.sleep(self.seconds)
        assert isinstance(event, Notice)
        self.seen.append(event.text)


def note(text: str) -> Event:
    return Notice(level="info", text=text)


def test_feeding_never_waits_and_every_hook_sees_every_event_in_order() -> None:
    first, second = Watches(0.002), Watches()
    found = runner(first, second)

    async def go() -> None:
        for number in range(10):
            found.feed(note(str(number)))
        assert first.seen == second.seen == []
        await until(lambda: len(second.seen) == 10)
        await found.close()

    run(go())
    assert first.seen == second.seen == [str(number) for number in range(10)]


def test_closing_lets_the_hooks_see_what_still_waits() -> None:
    watcher = Watches(0.001)
    found = runner(watcher)

    async def go() -> None:
        for number in range(5):
            found.feed(note(str(number)))
        await found.close()

    run(go())
    assert len(watcher.seen) == 5


def test_closing_waits_no_longer_than_a_hook_may_take() -> None:
    told: list[str] = []
    found = runner(Watches(0.2), told=told, timeouts=Timeouts(hook=1.0))

    async def go() -> None:
        for number in range(1_000):
            found.feed(note(str(number)))
        await found.close()

    run(go())
    held = (
        "The hook Watches.on_event of tests held up the end by 1 s; the hooks did not receive the last events in time."
    )
    assert told == [held]


def test_events_before_the_loop_runs_are_seen_once_it_does() -> None:
    """A session is resumed before the interface starts its loop."""
    watcher = Watches()
    found = runner(watcher)
    found.feed(note("early"))

    async def go() -> None:
        found.feed(note("late"))
        await found.close()

    run(go())
    assert watcher.seen == ["early", "late"]


@pytest.mark.parametrize("hook", [Says(ValueError("broken")), Says("hang"), OldSignatures()])
def test_a_hook_that_fails_on_events_is_named_once_even_though_that_is_an_event_itself(hook: Hook) -> None:
    watcher = Watches()
    told: list[str] = []

    def warn(text: str) -> None:
        told.append(text)
        found.feed(note("told"))

    timeouts = in_time_for(hook.answer) if isinstance(hook, Says) else TIMEOUTS
    found = HookRunner([hook, watcher], surroundings, timeouts, bus_to(warn))

    async def go() -> None:
        found.feed(note("one"))
        await until(lambda: "told" in watcher.seen)
        found.feed(note("two"))
        await until(lambda: "two" in watcher.seen)
        await found.close()

    run(go())
    assert watcher.seen == ["one", "told", "two"]
    assert len(told) == 1


def test_hooks_that_are_slower_than_what_happens_cost_a_bounded_memory_and_are_told_once() -> None:
    told: list[str] = []
    watcher = Watches(300)
    found = runner(watcher, told=told, timeouts=TIMEOUTS.replace(hook=0.05))

    async def go() -> int:
        piece = MessageUpdate(kind="text", delta="x")
        for _ in range(30_000):
            found.feed(piece)
        pieces = found.waiting
        for number in range(30_000):
            found.feed(note(str(number)))
        await found.close()
        return pieces

    assert run(go()) == 5_000
    assert found.waiting <= 10_000
    assert [text for text in told if "too slow, so some events" in text] == [
        "Hooks of packs are too slow, so some events were not delivered to them."
    ]


def test_without_hooks_nothing_is_queued() -> None:
    found = runner()
    found.feed(note("x"))
    run(found.close())


def test_hooks_without_a_method_of_their_own_cost_nothing_there() -> None:
    """Twenty packs that look at prompts alone are not called for each event, request and call."""

    class Prompts(Hook):
        async def on_prompt(self, context: HookContext, text: str) -> str:
            return text + "."

    found = runner(*(Prompts() for _ in range(20)))
    found.feed(note("x"))
    assert found.waiting == 0
    assert not found.judges
    for number, work in enumerate([*CALLS.values(), lambda hooks: hooks.before_tool(SPEC, {})]):
        assert times_called("_guarded", lambda work=work: run(work(found))) == (0 if number else 20)  # type: ignore[misc]


def test_a_method_that_only_the_object_has_is_one_of_its_own() -> None:
    class Late(Hook):
        pass

    async def denies(*arguments: object) -> Verdict:
        return DENY

    hook = Late()
    vars(hook)["before_tool"] = denies
    found = runner(Hook(), hook)
    assert found.judges
    assert run(found.before_tool(SPEC, {})) == DENY


class Adds(Hook):
    """Adds its letter to prompts and results, and denies with it."""

    def __init__(self, letter: str) -> None:
        self.letter = letter

    async def on_prompt(self, context: HookContext, text: str) -> str:
        return text + self.letter

    async def after_tool(
        self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any], result: ToolResult
    ) -> ToolResult:
        return result.replace(content=f"{result.content}{self.letter}")

    async def before_tool(self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any]) -> Verdict:
        return Deny(reason=self.letter)


class First(Adds):
    """Comes before the others."""

    tryfirst = True


class Last(Adds):
    """Comes after the others."""

    trylast = True


def test_hooks_come_in_the_order_that_they_ask_for_and_else_in_that_of_their_packs() -> None:
    async def use() -> None:
        hooks = [Last("y"), Adds("c"), First("b"), Last("z"), Adds("d"), First("a")]
        runner = HookRunner(hooks, surroundings, TIMEOUTS, Bus())
        assert await runner.on_prompt("") == "bacdyz"
        assert (await runner.after_tool(SPEC, {}, ToolResult(content=""))).content == "bacdyz"
        assert await runner.before_tool(SPEC, {}) == Deny(reason="b")

    run(use())


def test_a_hook_cannot_be_first_and_last() -> None:
    with pytest.raises(TypeError, match="choose one"):
        type("Both", (First,), {"trylast": True})
