"""Code that blocks: `def` tools in threads of their own, what holds the event loop, and getting out of that."""

from __future__ import annotations

import asyncio
import re
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from marvin_core import Hook, HookContext, ToolContext, ToolError, ToolResult, ToolSpec, tool
from marvin_core.api.events import Event, ToolExecutionEnd, ToolExecutionUpdate
from marvin_core.api.timeouts import Timeouts
from marvin_core.testing import ToolRunner
from marvin_core.tools.schema import describe
from marvin_core.util.watchdog import Watchdog
from tests.support.engine import QUICK, Made, calls, make, run, says, until

QUICK_WATCH = QUICK.replace(stall=0.05, release=0.1)
LET_GO, DONE = threading.Event(), threading.Event()
HELD = "blocks the whole program: its code blocks the event loop"


@tool(access=["read"])
def plain(context: ToolContext, name: str) -> ToolResult:
    """Say where it runs."""
    context.progress(f"{name} is under way")
    context.state["thread"] = threading.current_thread() is threading.main_thread()
    return ToolResult(content=f"hello {name}", details={"in": "a thread"})


@tool(access=["read"])
def refuses() -> str:
    """Fail."""
    raise ToolError("The shelf is empty. Fill it first.")


@tool(access=["read"])
def stops() -> str:
    """Raise what no future can hold."""
    raise StopIteration("odd")


@tool(access=["read"], timeout=0.2)
def never_ends(context: ToolContext) -> str:
    """Take longer than it may."""
    LET_GO.wait(60)
    context.progress("too late")
    DONE.set()
    return "too late"


@tool(access=["read"])
def wrapped(name: str) -> Awaitable[str]:
    """Return what is to be awaited."""

    async def work() -> str:
        await asyncio.sleep(0)
        return f"awaited {name}"

    return work()


@tool(access=["read"])
async def nap(seconds: float) -> str:
    """Block the event loop, as no tool should."""
    time.sleep(seconds)  # noqa: ASYNC251  # the mistake that is to be noticed
    return "slept"


@tool(access=["read"])
async def spin() -> str:
    """Block the event loop without ever leaving Python."""
    while True:
        pass


OWN = (plain, refuses, stops, never_ends, wrapped, nap, spin)
SPECS = tuple(describe(one, source="marvin-dull", module=__name__) for one in OWN)


def call(made: Made, tool_name: str, /, **arguments: Any) -> tuple[str, bool]:
    output = made.call(tool_name, **arguments)
    return output.text, output.is_error


def test_a_plain_function_is_a_tool_and_runs_in_a_thread(tmp_path: Path) -> None:
    made = make(tmp_path, specs=SPECS)
    assert call(made, "plain", name="Ada") == ("hello Ada", False)
    assert made.parts.state["marvin-dull"] == {"thread": False}
    assert [event.text for event in made.seen(ToolExecutionUpdate)] == ["Ada is under way"]
    assert made.seen(ToolExecutionEnd)[0].details == {"in": "a thread"}


def test_what_a_plain_function_raises_is_an_error_to_act_on(tmp_path: Path) -> None:
    assert call(make(tmp_path, specs=SPECS), "refuses") == ("Error: The shelf is empty. Fill it first.", True)
    text, is_error = call(make(tmp_path, specs=SPECS), "stops")
    assert is_error
    assert "StopIteration" in text


def test_a_function_around_an_async_one_is_awaited(tmp_path: Path) -> None:
    assert call(make(tmp_path, specs=SPECS), "wrapped", name="x") == ("awaited x", False)


def test_a_plain_function_that_does_not_end_is_left_to_itself(tmp_path: Path) -> None:
    """I25: the call ends in time; what its thread tells later is of nobody's interest."""
    made = make(tmp_path, specs=SPECS)
    LET_GO.clear()
    DONE.clear()

    async def go() -> None:
        output = await made.session.call_tool("never_ends", {})
        assert "took longer than 0.2 s and was stopped" in output.text
        assert not DONE.is_set()
        LET_GO.set()
        await until(DONE.is_set)
        await asyncio.sleep(0)
        await made.session.close()

    run(go())
    assert made.seen(ToolExecutionUpdate) == []


def test_the_tools_of_the_tutorial_that_do_not_block(marvin_tools: ToolRunner) -> None:
    page = (Path(__file__).parents[3] / "docs" / "tutorial" / "your-first-pack.md").read_text("utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {"__name__": __name__}
    exec(block, names)
    assert marvin_tools.call(names["wait_for_the_dice"], seconds=0).text == "They lie still."
    assert marvin_tools.call(names["best_throw"], throws=500).text.startswith("The best throw is 1")


# --- what holds the loop -------------------------------------------------------------------------------------------


class Naps(Hook):
    """Blocks the loop in one of its methods."""

    def __init__(self, where: str) -> None:
        self._where = where

    def _nap(self, where: str) -> None:
        if where == self._where:
            self._where = ""  # once
            time.sleep(0.5)

    async def on_prompt(self, context: HookContext, text: str) -> str | None:
        self._nap("on_prompt")
        return None

    async def before_tool(self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any]) -> None:
        self._nap("before_tool")

    async def on_event(self, context: HookContext, event: Event) -> None:
        self._nap("on_event")


def watched(work: Callable[[], Awaitable[object]], timeouts: Timeouts = QUICK_WATCH) -> list[str]:
    """What the watchdog tells while some work is done."""
    told: list[str] = []

    async def go() -> None:
        dog = Watchdog(timeouts, told.append, lambda held: told.append(f"left: {held}"))
        with dog.watching(asyncio.get_running_loop()):
            await work()

    run(go())
    return told


def prompt(made: Made) -> Callable[[], Awaitable[object]]:
    async def work() -> None:
        await made.session.submit("go")
        await made.session.close()

    return work


def test_a_tool_that_holds_the_loop_is_named_once(tmp_path: Path) -> None:
    nap_call = calls(("a", "nap", '{"seconds": 0.4}'))
    made = make(tmp_path, nap_call, nap_call, says("Done."), specs=SPECS)
    (told,) = watched(prompt(made))
    assert told.startswith(f"the tool nap of marvin-dull ({__file__}, line ")
    assert HELD in told


@pytest.mark.parametrize("where", ["on_prompt", "before_tool", "on_event"])
def test_a_hook_that_holds_the_loop_is_named(tmp_path: Path, where: str) -> None:
    made = make(tmp_path, calls(("a", "plain", '{"name": "x"}')), says("Done."), specs=SPECS, hooks=[Naps(where)])
    (told,) = watched(prompt(made))
    assert told.startswith(f"the hook Naps.{where} of tests ({__file__}, line ")


def test_who_waits_is_not_named(tmp_path: Path) -> None:
    async def work() -> None:
        await asyncio.sleep(0.4)

    assert watched(work) == []


def test_a_listener_that_holds_the_loop_is_not_taken_for_the_provider(tmp_path: Path) -> None:
    made = make(tmp_path, says("Done."))
    made.session.subscribe(lambda event: time.sleep(0.3) if event.type == "message_update" else None)
    assert watched(prompt(made)) == []


def test_what_holds_the_loop_for_too_long_is_ended_without_anybody(tmp_path: Path) -> None:
    """I22: no time-out works meanwhile, and nobody may be there to press Ctrl+C."""
    made = make(tmp_path, calls(("a", "nap", '{"seconds": 600}')), says("Done."), specs=SPECS)
    (told,) = watched(prompt(made), QUICK_WATCH.replace(held=0.2))
    assert told.startswith("the tool nap of marvin-dull")
    assert made.seen(ToolExecutionEnd)[0].text.startswith("This call was interrupted")
    assert made.parts.conversation.messages[-1].text == "Done."


@pytest.mark.parametrize("name", ["nap", "spin"])
def test_a_signal_gets_out_of_a_tool_that_holds_the_loop(tmp_path: Path, name: str) -> None:
    """The call has its output, and the cancellation takes its usual way."""
    arguments = '{"seconds": 60}' if name == "nap" else "{}"
    made = make(tmp_path, calls(("a", name, arguments)), specs=SPECS, listening=False)
    told: list[str] = []

    async def go() -> None:
        loop = asyncio.get_running_loop()
        dog = Watchdog(QUICK_WATCH, told.append, lambda held: told.append(f"left: {held}"))
        task = asyncio.ensure_future(made.session.submit("go"))

        def asked_to_end(*_: object) -> None:
            loop.call_soon_threadsafe(task.cancel)
            dog.interrupted()

        before = signal.signal(signal.SIGUSR1, asked_to_end)
        made.session.subscribe(made.events.append)
        made.session.subscribe(_later)
        try:
            with dog.watching(loop):
                await asyncio.wait([task])
                await made.session.close()
        finally:
            signal.signal(signal.SIGUSR1, before)
        assert task.cancelled()

    run(go())
    assert [text.partition(" (")[0] for text in told] == [f"the tool {name} of marvin-dull"]
    assert [message.role for message in made.parts.conversation.messages] == ["user", "assistant", "tool"]
    assert made.seen(ToolExecutionEnd)[0].is_error
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def _later(event: Event) -> None:
    """Ask to end, in a moment, once a call begins."""
    if event.type == "tool_execution_start":
        main = threading.main_thread().ident
        assert main is not None
        threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGUSR1)).start()
