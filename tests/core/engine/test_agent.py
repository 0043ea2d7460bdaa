"""The loop: ask, run the calls, ask again; and what is left in the conversation however it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from marvin_core import (
    CallDelta,
    Delta,
    Hook,
    HookContext,
    Message,
    Overloaded,
    Stop,
    StreamBroken,
    Text,
    TextDelta,
    ThinkingDelta,
    ToolSpec,
    TurnResult,
    Usage,
    UsageDelta,
    Verdict,
)
from marvin_core.api.errors import OutputLimit, Refused
from marvin_core.api.events import (
    AgentEnd,
    Event,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    Notice,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnEnd,
    TurnStart,
    UsageReport,
)
from marvin_core.api.limits import Price
from marvin_core.api.providers import Retrying
from marvin_core.conversation.pairing import INTERRUPTED, heal
from marvin_core.engine.agent import OUT_OF_ROUNDS
from tests.support.engine import USED, Hang, Made, Script, calls, make, run, says, spec, until


async def submitted(made: Made, prompt: str = "go") -> TurnResult:
    try:
        return await made.session.submit(prompt)
    finally:
        await made.session.close()


def ask(made: Made, prompt: str = "go") -> TurnResult:
    return run(submitted(made, prompt))


def roles(made: Made) -> list[str]:
    return [message.role for message in made.parts.conversation.messages]


def outputs(made: Made) -> list[str]:
    return [output.text for message in made.parts.conversation.messages for output in message.outputs]


def asked(made: Made, number: int) -> Any:
    assert made.provider is not None
    return made.provider.requests[number]


# --- the way it goes -----------------------------------------------------------------------------------------------


def test_an_answer_of_text_ends_the_prompt(tmp_path: Path) -> None:
    made = make(tmp_path, says("Hel", "lo."))
    result = ask(made, "hi")
    assert (result.text, result.error) == ("Hello.", None)
    assert roles(made) == ["user", "assistant"]
    assert asked(made, 0).messages[-1].text == "hi"
    assert asked(made, 0).tool_choice == "auto"
    kinds = [type(event) for event in made.events if not isinstance(event, Notice)][2:]
    assert [kind.__name__ for kind in kinds] == [
        "AgentStart",
        *("MessageStart", "MessageEnd"),
        "TurnStart",
        "MessageStart",
        "MessageUpdate",
        "MessageUpdate",
        "MessageEnd",
        "UsageReport",
        "TurnEnd",
        "AgentEnd",
    ]


def test_calls_are_run_and_their_outputs_go_back_in_order(tmp_path: Path) -> None:
    made = make(
        tmp_path,
        calls(("a", "look", '{"name": "x", "seconds": 0.02}'), ("b", "look", '{"name": "y"}'), text="Looking. "),
        calls(("c", "mark", '{"name": "z"}')),
        says("Done."),
    )
    result = ask(made)
    assert result.text == "Looking. \nDone."
    assert roles(made) == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert outputs(made) == ["x done", "y done", "z done"]
    assert [output.call_id for output in asked(made, 1).messages[-1].outputs] == ["a", "b"]
    assert [event.round for event in made.seen(TurnStart)] == [event.round for event in made.seen(TurnEnd)] == [1, 2, 3]
    assert [update.delta for update in made.seen(MessageUpdate) if update.kind == "text"] == ["Looking. ", "Done."]


def test_a_failing_call_goes_back_to_the_model_and_the_loop_goes_on(tmp_path: Path) -> None:
    """I10, I14."""
    made = make(tmp_path, calls(("a", "fails", '{"kind": "tool"}'), ("b", "nope", "{}")), says("I see."))
    assert ask(made).error is None
    assert asked(made, 1).messages[-1].outputs[0].is_error
    assert "no tool 'nope'" in asked(made, 1).messages[-1].outputs[1].text


def test_when_the_rounds_are_used_up_the_model_is_asked_for_a_last_word(tmp_path: Path) -> None:
    """I22: a loop of calls ends."""
    again = [calls((f"c{n}", "look", '{"name": "x"}')) for n in range(10)]
    made = make(tmp_path, *again, says("That is what I have."), argv=())
    result = ask(made)
    assert (result.text, result.error) == ("That is what I have.", None)
    assert [request.tool_choice for request in made.provider.requests] == ["auto"] * 10 + ["none"]  # type: ignore[union-attr]
    assert asked(made, 10).system.endswith(OUT_OF_ROUNDS)
    assert OUT_OF_ROUNDS not in asked(made, 9).system
    assert made.seen(AgentEnd)[0].stop_reason == "rounds"


def test_a_non_interactive_run_has_fifty_rounds(tmp_path: Path) -> None:
    again = [calls((f"c{n}", "look", '{"name": "x"}')) for n in range(50)]
    made = make(tmp_path, *again, says("End."))
    assert ask(made).text == "End."


def test_calls_in_the_last_word_are_not_run_and_still_have_an_output(tmp_path: Path) -> None:
    """I15: some models call although they were told that they cannot."""
    again = [calls((f"c{n}", "look", '{"name": "x"}')) for n in range(11)]
    made = make(tmp_path, *again, argv=())
    ask(made)
    assert len(made.seen(ToolExecutionStart)) == 10
    assert "not run" in outputs(made)[-1]
    assert heal(made.parts.conversation.messages)[1] == 0


def test_queued_messages_are_delivered_with_the_next_request(tmp_path: Path) -> None:
    class Sends(Hook):
        async def before_tool(self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any]) -> Verdict:
            context.send("By the way.")
            context.send("And this.")
            return None

    made = make(tmp_path, calls(("a", "look", '{"name": "x"}')), says("Fine."), hooks=[Sends()])
    ask(made)
    assert roles(made) == ["user", "assistant", "tool", "user", "user", "assistant"]
    assert [m.text for m in asked(made, 1).messages[-2:]] == ["By the way.", "And this."]


def test_hooks_see_what_is_about_to_be_sent(tmp_path: Path) -> None:
    class Sees(Hook):
        def __init__(self) -> None:
            self.counts: list[int] = []

        async def before_request(self, context: HookContext, messages: Sequence[Message]) -> None:
            self.counts.append(len(messages))

    hook = Sees()
    ask(make(tmp_path, calls(("a", "look", '{"name": "x"}')), says("Fine."), hooks=[hook]))
    assert hook.counts == [1, 3]


@pytest.mark.parametrize(("most", "offered"), [(None, 200), (128, 128), (1, 1)])
def test_a_provider_never_gets_more_tools_than_it_takes(tmp_path: Path, most: int | None, offered: int) -> None:
    specs = [spec(f"tool_{number:03}") for number in range(200)]
    made = make(tmp_path, specs=specs, provider=Script(says("Fine."), max_tools=most))
    ask(made)
    assert [tool.name for tool in asked(made, 0).tools] == [f"tool_{number:03}" for number in range(offered)]


@pytest.mark.parametrize("ids", [("", ""), ("same", "same"), ("a", "")])
def test_calls_without_an_id_of_their_own_are_given_one(tmp_path: Path, ids: tuple[str, str]) -> None:
    """I15: each output finds its call, and what interfaces saw of a call has the id that it is run with."""
    given_calls = calls((ids[0], "look", '{"name": "x"}'), (ids[1], "look", '{"name": "y"}'))
    made = make(tmp_path, given_calls, says("Fine."))
    ask(made)
    answer, results = asked(made, 1).messages[-2:]
    given_ids = [call.id for call in answer.calls]
    assert all(given_ids)
    assert len(set(given_ids)) == 2
    assert [(output.call_id, output.text) for output in results.outputs] == list(
        zip(given_ids, ["x done", "y done"], strict=True)
    )
    assert [update.call_id for update in made.seen(MessageUpdate) if update.name] == given_ids
    assert sorted(event.call_id for event in made.seen(ToolExecutionStart)) == sorted(given_ids)


def test_thinking_is_shown_apart_and_is_no_part_of_the_answer(tmp_path: Path) -> None:
    made = make(tmp_path, [ThinkingDelta(text="hm"), *says("Yes.")])
    assert ask(made).text == "Yes."
    assert [(u.kind, u.delta) for u in made.seen(MessageUpdate)] == [("thinking", "hm"), ("text", "Yes.")]


# --- counting ------------------------------------------------------------------------------------------------------


def test_an_answer_that_the_safety_system_stopped_is_told(tmp_path: Path) -> None:
    made = make(tmp_path, [TextDelta(text="Half of it"), Stop(reason="refused")])
    assert ask(made).text == "Half of it"
    assert any("safety system" in notice.text for notice in made.seen(Notice))


PRICES = {"scripted": Price(input=10_000.0, output=100_000.0)}
"""A cent for each token in, ten for each token out."""


def test_every_request_is_counted_and_its_cost_told(tmp_path: Path) -> None:
    """I11."""
    made = make(tmp_path, calls(("a", "look", '{"name": "x"}')), says("Fine."), prices=PRICES)
    ask(made)
    assert [(report.usage, report.cost) for report in made.seen(UsageReport)] == [(USED.usage, 2.0)] * 2
    assert made.meter.summary()["model_cost"] == {"scripted": 4.0}


def test_what_came_empty_was_paid_for_as_well(tmp_path: Path) -> None:
    """I11."""
    scripts: list[list[Delta | BaseException]] = [
        [USED, Stop(reason="stop")],
        [USED, StreamBroken("gone")],
    ]
    for script in scripts:
        made = make(tmp_path, script, prices=PRICES)
        ask(made)
        assert made.meter.summary()["model_cost"] == {"scripted": 2.0}


@pytest.mark.parametrize("counted", [[], [USED], [UsageDelta(usage=Usage(cost=0.01))]], ids=str)
def test_what_broke_off_has_an_unknown_cost(tmp_path: Path, counted: list[Delta]) -> None:
    """I11: and not none; a count at the beginning of an answer is not that of its end."""
    made = make(tmp_path, [*counted, TextDelta(text="Half"), StreamBroken("gone")], prices=PRICES)
    ask(made)
    assert made.meter.summary()["session_cost"] is None
    refused = make(tmp_path, [Overloaded("busy")], prices=PRICES)
    ask(refused)
    assert refused.meter.summary()["llm_turns"] == 0


def test_the_estimate_of_tokens_learns_from_the_count_of_the_service(tmp_path: Path) -> None:
    made = make(tmp_path)
    estimate = made.parts.model.window.tokens(8_000)
    counted = made.parts.model.window
    assert made.provider is not None
    made.provider.script(says("Fine.", usage=UsageDelta(usage=Usage(input_tokens=1_000_000))))
    ask(made)
    assert counted.tokens(8_000) == 2 * estimate


# --- the way it ends badly -----------------------------------------------------------------------------------------


def test_a_notice_of_a_retry_discards_what_had_come(tmp_path: Path) -> None:
    script: list[Delta] = [
        CallDelta(key=0, id="a", name="mark", arguments='{"name": '),
        Retrying(text="Overloaded, trying again in 1 s"),
        *says("Fine."),
    ]
    made = make(tmp_path, script)
    assert ask(made).text == "Fine."
    assert made.parts.conversation.messages[-1].calls == ()
    assert "trying again" in made.seen(Notice)[0].text
    assert made.log == []


EMPTY: dict[str, tuple[list[Delta], type[Exception], str]] = {
    "nothing": ([Stop(reason="stop")], StreamBroken, "The model returned an empty answer"),
    "blanks": ([TextDelta(text=" \n"), Stop(reason="stop")], StreamBroken, "empty answer"),
    "thoughts only": ([ThinkingDelta(text="hm"), Stop(reason="stop")], StreamBroken, "empty answer"),
    "cut off in its thoughts": ([ThinkingDelta(text="hm"), Stop(reason="length")], OutputLimit, "output limit"),
    "refused": ([Stop(reason="refused")], Refused, "refused to answer"),
}


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_answer_is_an_error_and_leaves_nothing(tmp_path: Path, name: str) -> None:
    script, kind, text = EMPTY[name]
    made = make(tmp_path, script)
    result = ask(made)
    assert isinstance(result.error, kind)
    assert text in str(result.error)
    assert roles(made) == ["user"]
    assert made.parts.conversation.messages[-1].role == "user"


def test_an_empty_answer_after_calls_keeps_the_calls(tmp_path: Path) -> None:
    made = make(tmp_path, calls(("a", "look", '{"name": "x"}')), [Stop(reason="stop")])
    assert isinstance(ask(made).error, StreamBroken)
    assert roles(made) == ["user", "assistant", "tool"]


def test_a_stream_that_breaks_in_the_text_keeps_the_text(tmp_path: Path) -> None:
    made = make(tmp_path, [TextDelta(text="Half a "), StreamBroken("The connection was lost. Try again.")])
    result = ask(made)
    assert (result.text, str(result.error)) == ("Half a ", "The connection was lost. Try again.")
    assert made.parts.conversation.messages[-1].stop_reason == "broken"


@pytest.mark.parametrize("arguments", ['{"name": "x"}', '{"na'])
def test_a_stream_that_breaks_in_a_call_runs_nothing_and_gives_each_call_its_output(
    tmp_path: Path, arguments: str
) -> None:
    """I15, I26: not even calls that were whole, since more was to come."""
    script: list[Delta | BaseException] = [
        TextDelta(text="I'll write."),
        CallDelta(key=0, id="a", name="mark", arguments='{"name": "whole"}'),
        CallDelta(key=1, id="b", name="mark", arguments=arguments),
        StreamBroken("gone"),
    ]
    made = make(tmp_path, script)
    assert isinstance(ask(made).error, StreamBroken)
    assert (made.log, outputs(made)) == ([], [INTERRUPTED] * 2)
    assert roles(made) == ["user", "assistant", "tool"]
    assert [call.complete for call in made.parts.conversation.messages[1].calls] == [True, False]


def test_a_call_that_was_cut_off_at_the_output_limit_is_not_run_and_the_model_told_what_to_do(tmp_path: Path) -> None:
    """I26: the call before it was whole and is run."""
    script: list[Delta] = [
        CallDelta(key=0, id="a", name="mark", arguments='{"name": "whole"}'),
        CallDelta(key=1, id="b", name="mark", arguments='{"name": "cut'),
        USED,
        Stop(reason="length"),
    ]
    made = make(tmp_path, script, says("In sections, then."))
    assert ask(made).error is None
    assert made.log == ["+whole", "-whole"]
    cut = asked(made, 1).messages[-1].outputs[1]
    assert cut.is_error
    assert "cut off" in cut.text
    assert "in sections" in cut.text
    assert any("output limit" in notice.text for notice in made.seen(Notice))


def test_a_refusal_of_the_service_leaves_the_prompt_and_nothing_else(tmp_path: Path) -> None:
    made = make(tmp_path, [Overloaded("Busy. Try again later.")])
    result = ask(made)
    assert isinstance(result.error, Overloaded)
    assert roles(made) == ["user"]


# --- cancelling ----------------------------------------------------------------------------------------------------


def cancelled(made: Made, when: Callable[[Made], bool], after: Sequence[Delta] = ()) -> None:
    """Submit a prompt, cancel it when something is so, and then, with `after`, submit another one."""

    async def go() -> None:
        await made.import_tools()
        task = asyncio.ensure_future(made.session.submit("go"))
        await until(lambda: when(made))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not made.session.busy
        if after:
            assert made.provider is not None
            made.provider.script(after)
            await made.session.submit("and now?")
        await made.session.close()

    run(go())


def has_text(made: Made) -> bool:
    return bool(made.seen(MessageUpdate))


def test_cancelling_in_the_text_keeps_the_text_and_marks_it(tmp_path: Path) -> None:
    made = make(tmp_path, [TextDelta(text="Once upon"), Hang()])
    cancelled(made, has_text, says("Fine."))
    first = made.parts.conversation.messages[1]
    assert first.content == (Text(text="Once upon"), Text(text="\n[Cancelled]"))
    assert [message.text for message in asked(made, 1).messages] == ["go", "Once upon\n[Cancelled]", "and now?"]
    assert [event.stop_reason for event in made.seen(AgentEnd)] == ["cancelled", "done"]


def test_cancelling_before_anything_came_leaves_only_the_prompt(tmp_path: Path) -> None:
    made = make(tmp_path, [ThinkingDelta(text="hm"), Hang()])
    cancelled(made, has_text)
    assert roles(made) == ["user"]


def test_cancelling_while_a_call_streams_in_gives_it_an_output(tmp_path: Path) -> None:
    """I15, I26."""
    made = make(tmp_path, [CallDelta(key=0, id="a", name="mark", arguments='{"name": "x"}'), Hang()])
    cancelled(made, has_text, says("Fine."))
    assert (outputs(made), made.log) == ([INTERRUPTED], [])
    assert heal(asked(made, 1).messages) == (asked(made, 1).messages, 0)


def test_cancelling_in_a_tool_keeps_what_was_done_and_says_what_was_not(tmp_path: Path) -> None:
    """I15: the next request is one that every provider accepts."""
    made = make(
        tmp_path,
        calls(
            ("a", "mark", '{"name": "x"}'),
            ("b", "look", '{"name": "y", "seconds": 300}'),
            ("c", "mark", '{"name": "z"}'),
        ),
    )
    cancelled(made, lambda m: "+y" in m.log, says("Fine."))
    assert outputs(made) == ["x done", INTERRUPTED, INTERRUPTED]
    assert made.log == ["+x", "-x", "+y"]
    assert heal(asked(made, 1).messages) == (asked(made, 1).messages, 0)
    assert len(made.seen(ToolExecutionEnd)) == 2


def test_one_call_can_be_cancelled_and_the_model_goes_on(tmp_path: Path) -> None:
    made = make(
        tmp_path, calls(("a", "look", '{"name": "x", "seconds": 300}'), ("b", "look", '{"name": "y"}')), says("Fine.")
    )

    def stop(event: Event) -> None:
        if isinstance(event, ToolExecutionEnd) and event.call_id == "b":
            made.session.dispatcher.cancel("a")

    made.session.subscribe(stop)
    assert ask(made).text == "Fine."
    assert outputs(made) == [INTERRUPTED, "y done"]


def test_the_answer_is_begun_when_its_first_piece_comes(tmp_path: Path) -> None:
    made = make(tmp_path, [USED, *calls(("a", "look", '{"name": "x"}'))], [USED, *says("Fine", ".")])
    ask(made)
    begun = [event.origin for event in made.seen(MessageStart)]
    assert begun == [event.origin for event in made.seen(MessageEnd)] == ["typed", "model", "model"]
