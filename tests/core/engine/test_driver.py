"""One prompt after the other: taken up, answered or failed, and the way free for the next."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from marvin_core import (
    BudgetExceeded,
    Hook,
    HookContext,
    MarvinError,
    ProviderError,
    StreamBroken,
    TextDelta,
    ToolSpec,
    Verdict,
)
from marvin_core.api.events import AgentEnd, AgentStart
from tests.support.engine import Hang, Made, calls, make, run, says, until


async def twice(made: Made, *prompts: str) -> list[Any]:
    try:
        return [await made.session.submit(prompt) for prompt in prompts]
    finally:
        await made.session.close()


@pytest.mark.parametrize(
    "failure", [StreamBroken("gone"), RuntimeError("a bug of ours"), BudgetExceeded("spent"), AssertionError()]
)
def test_a_failure_is_told_in_the_result_and_the_next_prompt_works(tmp_path: Path, failure: Exception) -> None:
    """I13: busy is reset whatever happens."""
    made = make(tmp_path, [TextDelta(text="Half"), failure], says("Fine."))
    first, second = run(twice(made, "one", "two"))
    assert first.text == "Half"
    assert failure in (first.error, first.error.__cause__)  # what is no error of a service is named with its provider
    assert (second.text, second.error) == ("Fine.", None)
    assert not made.session.busy
    ends = [(event.stop_reason, event.text, event.error) for event in made.seen(AgentEnd)]
    expected = "budget" if isinstance(failure, BudgetExceeded) else "error"
    assert ends == [(expected, "Half", str(first.error)), ("done", "Fine.", "")]


def test_only_one_submission_is_in_flight(tmp_path: Path) -> None:
    """I17: the second is refused, and the first goes on undisturbed."""
    made = make(tmp_path, calls(("a", "look", '{"name": "x", "seconds": 0.05}')), says("Fine."))

    async def go() -> None:
        first = asyncio.ensure_future(made.session.submit("one"))
        await until(lambda: made.session.busy)
        with pytest.raises(MarvinError, match="still running"):
            await made.session.submit("two")
        assert made.session.busy
        assert (await first).text == "Fine."
        await made.session.close()

    run(go())
    assert [event.prompt for event in made.seen(AgentStart)] == ["one"]


def test_after_a_cancel_the_way_is_free_at_once(tmp_path: Path) -> None:
    """I13, I17."""
    made = make(tmp_path, [TextDelta(text="Once"), Hang()], says("Fine."))

    async def go() -> None:
        first = asyncio.ensure_future(made.session.submit("one"))
        await until(lambda: made.provider is not None and len(made.provider.requests) == 1)
        busy = [made.session.busy]
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        busy.append(made.session.busy)
        assert busy == [True, False]
        assert (await made.session.submit("two")).text == "Fine."
        await made.session.close()

    run(go())


def test_busy_is_seen_by_who_listens_to_the_end(tmp_path: Path) -> None:
    """I13: an interface that reacts to the end of an answer may submit the next prompt."""
    made = make(tmp_path, says("Fine."))
    seen: list[tuple[str, bool]] = []
    made.session.subscribe(lambda event: seen.append((event.type, made.session.busy)))
    run(twice(made, "one"))
    assert ("agent_start", True) in seen
    assert ("agent_end", False) in seen


def test_hooks_may_reword_a_prompt_before_anything_else_sees_it(tmp_path: Path) -> None:
    class Rewords(Hook):
        async def on_prompt(self, context: HookContext, text: str) -> str | None:
            return text.replace("colour", "color")

    made = make(tmp_path, says("Fine."), hooks=[Rewords()])
    run(twice(made, "my colour"))
    assert made.seen(AgentStart)[0].prompt == "my color"
    assert made.parts.conversation.messages[0].text == "my color"


def test_a_hook_that_fails_on_a_prompt_does_not_stop_it(tmp_path: Path) -> None:
    class Fails(Hook):
        async def on_prompt(self, context: HookContext, text: str) -> str | None:
            raise RuntimeError("broken hook")

    made = make(tmp_path, says("Fine."), hooks=[Fails()])
    assert run(twice(made, "one"))[0].text == "Fine."


def test_the_result_holds_the_text_of_this_prompt_only(tmp_path: Path) -> None:
    made = make(tmp_path, says("First."), calls(("a", "look", '{"name": "x"}'), text="Second, "), says("in two."))
    assert [result.text for result in run(twice(made, "one", "two"))] == ["First.", "Second, \nin two."]


def test_what_is_queued_while_nothing_runs_goes_along_with_the_next_prompt(tmp_path: Path) -> None:
    made = make(tmp_path, says("Fine."))
    made.parts.inbox.send("The build is green.", "hook")
    run(twice(made, "and?"))
    assert [message.text for message in made.parts.conversation.messages] == ["and?", "The build is green.", "Fine."]
    assert not made.parts.inbox.waiting


@pytest.mark.parametrize("raised", [asyncio.CancelledError(), SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_a_cancellation_that_nobody_asked_for_is_an_error(tmp_path: Path, raised: BaseException) -> None:
    """I13: and no wish to leave the program is granted to a provider, either."""
    made = make(tmp_path, [raised], says("Fine."))
    first, second = run(twice(made, "one", "two"))
    assert f"The provider scripted failed: {type(raised).__name__}" in str(first.error)
    assert second.text == "Fine."
    assert not made.session.busy


class SpeechlessError(Exception):
    """Fails to say what is wrong."""

    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ([TextDelta(text="Half")], "The answer of scripted ended too early."),
        (["a text"], "scripted gave 'a text', which is not a part of an answer."),
        ([SpeechlessError()], "The provider scripted failed: SpeechlessError (its text cannot be shown)."),
    ],
)
def test_a_faulty_provider_is_named(tmp_path: Path, script: list[Any], why: str) -> None:
    made = make(tmp_path, script, says("Fine."))
    first, second = run(twice(made, "one", "two"))
    assert isinstance(first.error, ProviderError)
    assert str(first.error).startswith(why)
    assert isinstance(first.error, StreamBroken) == ("SpeechlessError" not in why)
    assert second.text == "Fine."
    assert made.seen(AgentEnd)[0].error == str(first.error)


def test_an_answer_that_was_cancelled_by_its_own_hook_is_free_again(tmp_path: Path) -> None:
    """I13."""

    class Cancels(Hook):
        async def before_tool(self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any]) -> Verdict:
            raise asyncio.CancelledError

    made = make(tmp_path, calls(("a", "mark", '{"name": "x"}')), says("Fine."), hooks=[Cancels()])
    assert run(twice(made, "one"))[0].text == "Fine."
    assert made.log == []
    assert not made.session.busy
