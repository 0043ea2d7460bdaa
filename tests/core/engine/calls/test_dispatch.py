"""One call, from what a model wrote to an output that it can act on, whatever the tool or the model does."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import Ask, Deny, Hook, HookContext, ToolError, ToolResult, ToolSpec, Verdict
from marvin_core.api.events import AgentStart, ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate
from marvin_core.api.messages import Image, Text, ToolCall, ToolOutput
from marvin_core.conversation.pairing import INTERRUPTED
from marvin_core.sessions.reader import load
from marvin_core.sessions.store import sessions
from tests.support.engine import QUICK, SPECS, Made, Script, batch_of, calls, do, make, run, says, until
from tests.support.examples import examples

SECRET = "sk-very-secret-12345"


def raw(made: Made, name: str, arguments: str, *, complete: bool = True) -> ToolOutput:
    call = ToolCall(id="c0", name=name, arguments=arguments, complete=complete)
    return run(made.session.dispatcher.call(call))


# --- I14: it never raises ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("tool", "Error: The shelf is empty. Fill it first."),
        ("value", "ValueError: bad value"),
        ("no text", "RuntimeError"),
        ("time", "TimeoutError: inner"),
        ("exit", "SystemExit: 3"),
        ("stop", "RuntimeError: coroutine raised StopIteration"),
        ("odd", "Oddity: odd"),
        ("keyboard", "KeyboardInterrupt"),
        ("generator", "GeneratorExit"),
        ("speechless", "SpeechlessError: <exception str() failed>"),
        ("speechless tool", "Error: SpeechlessToolError (its text cannot be shown)"),
        ("group", "many (2 sub-exceptions)"),
    ],
)
def test_whatever_a_tool_raises_becomes_an_error_to_act_on(tmp_path: Path, kind: str, told: str) -> None:
    """I14, I10: a failing tool, even one that wants to leave the program, ends as an output."""
    output = make(tmp_path).call("fails", kind=kind)
    assert output.is_error
    assert told in output.text
    assert output.text.startswith("Error: ")
    if not told.startswith("Error: "):
        assert "fails failed unexpectedly" in output.text
        assert "It may have done its work. Check, then try another way" in output.text


@pytest.mark.parametrize(
    ("kind", "details"),
    [
        ("keys", {"('a', 1)": {"None": 1, "2": 3}}),
        ("half a character", {"v": "a\\ud83d"}),
        ("no finite number", {"v": ["nan", "inf"]}),
        ("large number", {"v": f"{10**5_000:#x}"}),
        ("no text", {"v": "a _NoText"}),
        ("cycle", "it contains itself"),
        ("deep", "nested more than 100 deep"),
        ("doubled again and again", "more than 100,000 values"),
        ("no mapping", "'int' object is not iterable"),
    ],
)
def test_details_are_such_that_json_can_hold_them_or_an_error_of_that_call_alone(
    tmp_path: Path, kind: str, details: Any
) -> None:
    """I14, I15: and each call of the round has its one output in the session."""
    script = [calls(("1", "detailed", json.dumps({"kind": kind})), ("2", "look", '{"name": "a"}')), says("Seen.")]
    made = make(tmp_path, *script)

    async def go() -> None:
        assert (await made.session.submit("go")).text == "Seen."
        await made.session.close()

    run(go())
    first, second = made.seen(ToolExecutionEnd)
    if isinstance(details, str):
        assert first.is_error
        assert details in first.text
        assert "It may have done its work. Check, then try another way" in first.text
    else:
        assert (first.text, first.details) == ("seen", details)
    assert second.text == "a done"
    (path,) = sessions(made.config.data_folder / "sessions")
    outputs = [output for message in load(path).messages for output in message.outputs]
    assert [(output.call_id, output.text) for output in outputs] == [("1", first.text), ("2", "a done")]


def test_a_tool_that_cancels_itself_counts_as_interrupted(tmp_path: Path) -> None:
    """I14, I15: and the calls beside it go on."""
    outputs = do(make(tmp_path), ("fails", {"kind": "cancelled"}), ("look", {"name": "a", "seconds": 0.01}))
    assert [output.text for output in outputs] == [INTERRUPTED, "a done"]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("none", "(no output)"),
        ("number", "7"),
        ("bytes", "b'\\xff'"),
        ("surrogate", "broken \\ud83d"),
        ("content list", "x"),
    ],
)
def test_what_a_tool_returns_is_made_text_where_that_is_possible(tmp_path: Path, kind: str, text: str) -> None:
    """I14: and text that could not be sent is written so that it can."""
    output = make(tmp_path).call("junk", kind=kind)
    assert (output.text, output.is_error) == (text, False)
    json.dumps(output.text, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    "kind", ["no text", "content none", "content number", "content of strings", "text that is a number"]
)
def test_what_cannot_be_shown_is_an_error_that_says_so(tmp_path: Path, kind: str) -> None:
    """I14, I10."""
    output = make(tmp_path).call("junk", kind=kind)
    assert output.is_error
    assert output.text.startswith("Error: junk ")
    assert "It may have done its work. Check, then try another way" in output.text


BROKEN = st.text(max_size=20) | st.sampled_from(
    ['{"name": ', '{"name": 5}', "[1]", "{}", '{"kind": "odd"}', "\ud83d", "[" * 5_000]
)


@examples(60)
@given(
    st.sampled_from([*(tool.name for tool in SPECS if tool.name != "run_command"), "no_tool", "", "x" * 500]), BROKEN
)
def test_no_name_and_no_arguments_make_dispatch_raise(
    tmp_path_factory: pytest.TempPathFactory, name: str, arguments: str
) -> None:
    """I14, I10: every refusal says something."""
    made = make(tmp_path_factory.mktemp("any"), timeouts=QUICK.replace(tool=0.01))
    output = raw(made, name, arguments)
    assert output.call_id == "c0"
    assert output.text


# --- refusing ------------------------------------------------------------------------------------------------------


def test_an_unknown_tool_names_the_nearest(tmp_path: Path) -> None:
    """I10."""
    output = make(tmp_path).call("run_comand", command="ls")
    assert output.is_error
    assert "no tool 'run_comand'. Did you mean 'run_command'?" in output.text


def test_wrong_arguments_name_the_field_and_show_a_correct_call(tmp_path: Path) -> None:
    """I10."""
    output = make(tmp_path).call("big", size=0, colour="red")
    assert output.is_error
    for part in ("size", "colour", "Correct call: big({"):
        assert part in output.text


@pytest.mark.parametrize("arguments", ['{"command": "touch made', "", '{"command": "touch made"}'])
def test_a_call_that_was_cut_off_is_never_run(tmp_path: Path, arguments: str) -> None:
    """I26: not even where its arguments happen to be whole, and the model is told to write in sections."""
    made = make(tmp_path)
    output = raw(made, "run_command", arguments, complete=False)
    assert output.is_error
    assert "cut off" in output.text
    assert "in sections" in output.text
    assert not (tmp_path / "project" / "made").exists()


def test_unclosed_arguments_are_cut_off_even_if_the_answer_says_it_is_whole(tmp_path: Path) -> None:
    """I26."""
    output = raw(make(tmp_path), "run_command", '{"command": "touch made')
    assert "cut off" in output.text
    assert not (tmp_path / "project" / "made").exists()


# --- permission ----------------------------------------------------------------------------------------------------


class Judges(Hook):
    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        self.seen: list[tuple[str, dict[str, Any]]] = []

    async def before_tool(self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any]) -> Verdict:
        self.seen.append((spec.name, dict(arguments)))
        return self.verdict


class Person:
    """Somebody who always gives the same answer."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.questions: list[str] = []

    async def __call__(self, question: str, choices: Sequence[str], /) -> str:
        self.questions.append(question)
        assert self.answer in choices
        return self.answer


def test_a_denied_call_is_not_run_and_the_model_hears_the_reason(tmp_path: Path) -> None:
    made = make(tmp_path, hooks=[Judges(Deny(reason="it is Sunday"))])
    output = made.call("run_command", command="touch made")
    assert (output.text, output.is_error) == ("Error: run_command was not run: it is Sunday.", True)
    assert not (tmp_path / "project" / "made").exists()


def test_a_rule_of_the_user_denies_one_part_of_a_compound_command(tmp_path: Path) -> None:
    made = make(tmp_path, yaml="permissions:\n  deny: ['run_command(touch *)']\n")
    output = made.call("run_command", command="true && touch made")
    assert "`deny: run_command(touch *)` in config.yaml forbids it" in output.text
    assert not (tmp_path / "project" / "made").exists()


def test_hooks_see_only_calls_that_are_valid(tmp_path: Path) -> None:
    hook = Judges(None)
    do(make(tmp_path, hooks=[hook]), ("big", {"size": "many"}), ("big", {"size": "3"}), ("no_tool", {}))
    assert hook.seen == [("big", {"size": 3})]


@pytest.mark.parametrize(("answer", "text"), [("yes", "sent to a@b.c and None"), ("no", "the user said no")])
def test_a_person_is_asked_and_the_answer_holds(tmp_path: Path, answer: str, text: str) -> None:
    person = Person(answer)
    output = make(tmp_path, argv=(), asker=person).call("send_mail", to="a@b.c")
    assert text in output.text
    assert len(person.questions) == 1
    assert "send_mail" in person.questions[0]
    assert "a@b.c" in person.questions[0]


def test_a_hook_may_ask_about_what_a_rule_allows_but_never_the_other_way_round(tmp_path: Path) -> None:
    person = Person("no")
    allowing = "permissions:\n  allow: ['mark']\n"
    made = make(tmp_path, hooks=[Judges(Ask(reason="really?"))], yaml=allowing, argv=(), asker=person)
    assert "really?, and the user said no" in made.call("mark", name="a").text
    denying = make(tmp_path, hooks=[Judges(None)], yaml="permissions:\n  deny: ['mark(a)']\n")
    assert denying.call("mark", name="a").is_error


@pytest.mark.parametrize(
    ("argv", "is_error"), [((), False), (("--on-ask", "deny"), True), (("--on-ask", "allow-all"), False)]
)
def test_where_nobody_is_there_what_would_ask_runs_unless_the_user_said_no(
    tmp_path: Path, argv: tuple[str, ...], is_error: bool
) -> None:
    output = make(tmp_path, argv=("--non-interactive", *argv)).call("send_mail", to="a@b.c")
    assert output.is_error is is_error
    assert ("and nobody can give it in this run (--on-ask deny)" in output.text) is is_error


@pytest.mark.parametrize(
    ("argv", "is_gone"), [((), False), (("--on-ask", "deny"), False), (("--on-ask", "allow-all"), True)]
)
def test_where_nobody_is_there_a_dangerous_command_needs_allow_all(
    tmp_path: Path, argv: tuple[str, ...], is_gone: bool
) -> None:
    victim = tmp_path / "beside"
    victim.mkdir()
    output = make(tmp_path, argv=("--non-interactive", *argv)).call("run_command", command="rm -rf ../beside")
    assert victim.exists() is not is_gone
    assert output.is_error is not is_gone


def test_a_tool_can_ask_a_person_and_is_told_where_there_is_none(tmp_path: Path) -> None:
    assert make(tmp_path, argv=(), asker=Person("left")).call("question").text == "left"
    assert "Nobody can answer 'Which way?'" in make(tmp_path).call("question").text


def test_the_time_that_a_person_takes_is_not_the_tools(tmp_path: Path) -> None:
    """Two questions at once stop the clock once; after the last answer what was left of the time goes on."""

    async def slow(question: str, choices: Sequence[str]) -> str:
        await asyncio.sleep(0.5 if "0" in question else 1.0)  # the tool has 0.3 s
        return choices[0]

    made = make(tmp_path, argv=(), asker=slow)
    assert made.call("questions", stuck=False).text == "left left"
    stuck = make(tmp_path, argv=(), asker=slow).call("questions", stuck=True)
    assert "took longer than 0.3 s and was stopped" in stuck.text


# --- time ----------------------------------------------------------------------------------------------------------


def test_a_tool_that_does_not_return_is_stopped_when_its_time_is_up(tmp_path: Path) -> None:
    """I10: the model learns that part of the work may be done."""
    output = make(tmp_path).call("stuck")
    assert output.is_error
    assert "took longer than 0.05 s and was stopped" in output.text
    assert "Check, then try a smaller step" in output.text


def test_a_tool_without_a_time_of_its_own_gets_the_configured_one(tmp_path: Path) -> None:
    made = make(tmp_path, timeouts=QUICK.replace(tool=0.03))
    assert "longer than 0.03 s" in made.call("look", name="a", seconds=300).text


def test_a_time_that_depends_on_the_arguments_counts_from_the_validated_ones(tmp_path: Path) -> None:
    assert "longer than 0.03 s" in make(tmp_path).call("patient", seconds="0.03", work=300).text
    graced = make(tmp_path, timeouts=QUICK.replace(command_grace=30.0, tool=0.01))
    assert graced.call("patient", seconds=0.01, work=0.05).text == "worked"


def test_a_timed_out_command_leaves_no_process(tmp_path: Path) -> None:
    """I25: not the shell, and not what it started in a session of its own."""
    made = make(tmp_path, timeouts=QUICK.replace(tool=3.0, terminate=0.05))
    command = "setsid sleep 60 & echo $! > pid; sleep 60"
    assert made.call("run_command", command=command).is_error
    pid = (tmp_path / "project" / "pid").read_text().strip()
    assert not Path("/proc", pid).exists() or "zombie" in Path("/proc", pid, "status").read_text()


# --- several calls -------------------------------------------------------------------------------------------------


def test_calls_that_only_read_run_side_by_side_and_keep_their_order(tmp_path: Path) -> None:
    made = make(tmp_path)
    outputs = do(
        made,
        ("look", {"name": "a", "after": "-b"}),
        ("fetch", {"name": "b", "after": "-c"}),
        ("look", {"name": "c"}),
    )
    assert made.log == ["+a", "+b", "+c", "-c", "-b", "-a"]
    assert [(output.call_id, output.text) for output in outputs] == [
        ("c0", "a done"),
        ("c1", "b done"),
        ("c2", "c done"),
    ]


@pytest.mark.parametrize(("given_limit", "most"), [(None, 8), (3, 3)])
def test_only_so_many_calls_run_at_a_time(tmp_path: Path, given_limit: int | None, most: int) -> None:
    """As many as config allows; the others begin in their order as soon as there is room."""
    made = make(tmp_path, yaml=f"limits: {{parallel_calls: {given_limit}}}" if given_limit else "")
    many = [("look", {"name": str(number), "seconds": 0.001 * (number % 4)}) for number in range(100)]
    outputs = do(made, *many)
    assert [output.text for output in outputs] == [f"{number} done" for number in range(100)]
    running = peak = 0
    for entry in made.log:
        running += 1 if entry[0] == "+" else -1
        peak = max(peak, running)
    assert peak == most
    assert [entry[1:] for entry in made.log if entry[0] == "+"] == list(map(str, range(100)))


def test_calls_that_wait_for_room_are_interrupted_with_the_others(tmp_path: Path) -> None:
    """I15: those that run, those that wait, and those behind a barrier."""
    made = make(tmp_path)
    given_calls: list[tuple[str, dict[str, Any]]] = [("look", {"name": str(n), "after": "never"}) for n in range(20)]
    outputs: list[ToolOutput] = []

    async def go() -> None:
        await made.import_tools()
        work = asyncio.ensure_future(
            made.session.dispatcher.batch(batch_of(*given_calls, ("mark", {"name": "x"})), outputs)
        )
        await until(lambda: len(made.log) == 8)
        work.cancel()
        await asyncio.wait([work])
        await made.session.close()

    run(go())
    assert [output.call_id for output in outputs] == [f"c{n}" for n in range(21)]
    assert {output.text for output in outputs} == {INTERRUPTED}


@pytest.mark.parametrize("barrier", ["mark", "remember"])
def test_a_call_that_writes_or_changes_the_session_runs_alone(tmp_path: Path, barrier: str) -> None:
    made = make(tmp_path)
    names = "abcdef"
    tools = ["look", "look", barrier, barrier, "fetch", "look"]
    after = {"a": "+b", "b": "-a", "e": "+f", "f": "-e"}  # these begin before the one beside them has ended
    given_calls = [
        (tool, {"name": name, **({"after": after[name]} if name in after else {"seconds": 0.01})})
        for tool, name in zip(tools, names, strict=True)
    ]
    outputs = do(made, *given_calls)
    assert made.log == ["+a", "+b", "-a", "-b", "+c", "-c", "+d", "-d", "+e", "+f", "-e", "-f"]
    assert [output.text for output in outputs] == [f"{name} done" for name in names]


def test_calls_of_a_tool_that_says_so_run_side_by_side_though_it_runs_programs(tmp_path: Path) -> None:
    """With each other and with those that read; what writes waits for all of them."""
    made = make(tmp_path)
    after = {"a": "+c", "b": "-a", "c": "-b"}
    tools = zip(["delegate", "delegate", "look", "mark"], "abcd", strict=True)
    do(made, *[(tool, {"name": name, **({"after": after[name]} if name in after else {})}) for tool, name in tools])
    assert made.log == ["+a", "+b", "+c", "-a", "-b", "-c", "+d", "-d"]


def test_calls_that_give_a_certain_argument_run_side_by_side_and_the_others_of_the_tool_do_not(tmp_path: Path) -> None:
    """What cannot be read, or is empty, gives nothing."""
    made = make(tmp_path)
    outputs = do(
        made,
        ("assign", {"name": "a", "apart": "yes", "after": "+b"}),
        ("assign", {"name": "b", "apart": "yes", "after": "-a"}),
        ("assign", {"name": "c", "apart": ""}),
        ("assign", {"name": "d"}),
        ("assign", {"name": "e", "apart": "yes"}),
    )
    assert made.log == ["+a", "+b", "-a", "-b", "+c", "-c", "+d", "-d", "+e", "-e"]
    assert [output.is_error for output in outputs] == [False] * 5


def test_a_program_runs_alone(tmp_path: Path) -> None:
    made = make(tmp_path)
    outputs = do(
        made,
        ("run_command", {"command": "echo one > file"}),
        ("run_command", {"command": "cat file"}),
        ("run_command", {"command": "echo two > file"}),
        ("run_command", {"command": "cat file"}),
    )
    assert [output.text for output in outputs] == ["(no output)", "one\n", "(no output)", "two\n"]


def test_an_unknown_tool_among_readers_holds_nobody_up(tmp_path: Path) -> None:
    made = make(tmp_path)
    outputs = do(made, ("look", {"name": "a", "after": "+b"}), ("no_tool", {}), ("look", {"name": "b", "after": "-a"}))
    assert made.log == ["+a", "+b", "-a", "-b"]
    assert [output.is_error for output in outputs] == [False, True, False]


def test_one_call_can_be_cancelled_while_the_others_go_on(tmp_path: Path) -> None:
    """I15: it still has its one output, and its end is published."""
    made = make(tmp_path)

    async def go() -> list[ToolOutput]:
        work = asyncio.ensure_future(
            made.batch(
                ("look", {"name": "a", "after": "cancelled"}),
                ("reluctant", {"name": "x", "cleanup": 0}),
                ("look", {"name": "b", "after": "cancelled"}),
            )
        )
        await until(lambda: made.log == ["+a", "+x", "+b"])
        assert made.session.dispatcher.cancel("c1")
        made.log.append("cancelled")
        outputs = await work
        assert not made.session.dispatcher.cancel("c1")
        return outputs

    assert [output.text for output in run(go())] == ["a done", INTERRUPTED, "b done"]
    assert {event.call_id for event in made.seen(ToolExecutionEnd)} == {"c0", "c1", "c2"}


@pytest.mark.parametrize("first", [["c0", "c1"], ["c1"], ["c0"]])
def test_a_call_that_is_cancelled_before_it_begins_holds_up_nobody(tmp_path: Path, first: Sequence[str]) -> None:
    made = make(tmp_path)

    async def go() -> list[ToolOutput]:
        await made.import_tools()
        outputs: list[ToolOutput] = []
        given_calls = batch_of(("look", {"name": "a"}), ("look", {"name": "b"}))
        work = asyncio.ensure_future(made.session.dispatcher.batch(given_calls, outputs))
        await asyncio.sleep(0)  # the calls have tasks now, which begin with the next turn of the event loop
        assert all([made.session.dispatcher.cancel(call_id) for call_id in first])
        await asyncio.wait_for(work, 20)
        return outputs

    told = {"c0": "a done", "c1": "b done", **dict.fromkeys(first, INTERRUPTED)}
    assert [output.text for output in run(go())] == [told["c0"], told["c1"]]


def cancelled(
    made: Made, *given_calls: tuple[str, Mapping[str, Any]], when: Sequence[str], times: int = 1
) -> list[ToolOutput]:
    """The outputs of a batch that is cancelled as soon as the log says what `when` says."""
    outputs: list[ToolOutput] = []

    async def go() -> None:
        await made.import_tools()
        work = asyncio.ensure_future(made.session.dispatcher.batch(batch_of(*given_calls), outputs))
        await until(lambda: made.log == list(when))
        for _ in range(times):
            work.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await work

    run(go())
    return outputs


def test_a_cancelled_round_keeps_what_is_done_and_says_of_the_rest_that_it_was_interrupted(tmp_path: Path) -> None:
    """I15: exactly one output each, in order; what had not begun does not begin."""
    made = make(tmp_path)
    outputs = cancelled(
        made,
        ("mark", {"name": "a"}),
        ("look", {"name": "b"}),
        ("look", {"name": "c", "seconds": 300}),
        ("mark", {"name": "d"}),
        when=["+a", "-a", "+b", "+c", "-b"],
    )
    assert [output.text for output in outputs] == ["a done", "b done", INTERRUPTED, INTERRUPTED]
    assert [output.call_id for output in outputs] == ["c0", "c1", "c2", "c3"]
    assert [output.is_error for output in outputs] == [False, False, True, True]
    assert "+d" not in made.log


def test_who_cancels_twice_is_not_held_up_by_a_tool_that_is_slow_to_stop(tmp_path: Path) -> None:
    """I15: and every call has its output all the same."""
    outputs = cancelled(
        make(tmp_path),
        ("reluctant", {"name": "a", "cleanup": 300}),
        ("look", {"name": "b"}),
        when=["+a", "+b", "-b"],
        times=2,
    )
    assert [output.text for output in outputs] == [INTERRUPTED, "b done"]


def test_every_call_that_begins_ends_for_the_interface_too(tmp_path: Path) -> None:
    made = make(tmp_path)
    cancelled(made, ("look", {"name": "a"}), ("look", {"name": "b", "seconds": 300}), when=["+a", "+b", "-a"])
    begun = [event.call_id for event in made.seen(ToolExecutionStart)]
    assert sorted(begun) == sorted(event.call_id for event in made.seen(ToolExecutionEnd)) == ["c0", "c1"]


# --- results -------------------------------------------------------------------------------------------------------


def test_results_of_one_round_share_what_room_there_is(tmp_path: Path) -> None:
    """I9: and the second knows what the first took; near the warning a quarter of it is left for each."""
    made = make(tmp_path)
    window = made.parts.model.window
    room, quarter = window.warn * 4, window.warn // 4 * 4
    sizes = [{"size": room - 2_000}, {"size": quarter + 3_000}]
    first, second, third = do(made, ("big", sizes[0]), ("big", sizes[1]), ("picture", {}))
    assert len(first.text) == room - 2_000
    assert second.text.startswith("x" * quarter + "\n[Result truncated: 3,000 characters left out")
    assert third.content == (Text(text="a dot"), Image(media_type="image/png", data="aGk="))


@pytest.mark.parametrize(("window", "is_cut"), [(1_000_000, False), (8_000, True)])
def test_a_tool_gives_all_that_it_has_and_the_model_gets_what_its_window_has_room_for(
    window: int, is_cut: bool, tmp_path: Path
) -> None:
    """I30: the same call of the same tool; interfaces are shown all of it."""
    size = 100_000
    provider = Script(calls(("a", "big", f'{{"size": {size}}}')), says("Done."), context_window=window)
    made = make(tmp_path, provider=provider)

    async def work() -> None:
        try:
            assert (await made.session.submit("Fetch it")).text == "Done."
        finally:
            await made.session.close()

    run(work())
    assert [event.text for event in made.seen(ToolExecutionEnd)] == ["x" * size]
    (output,) = provider.requests[1].messages[-1].outputs
    kept, _, note = output.text.partition("\n[Result truncated: ")
    assert set(kept) == {"x"}
    assert bool(note) == is_cut
    assert len(kept) + (int(note.split()[0].replace(",", "")) if is_cut else 0) == size


class Rewrites(Hook):
    async def after_tool(
        self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any], result: ToolResult
    ) -> ToolResult | None:
        if spec.name == "look":
            return result.replace(content=f"{result.content}, seen", is_error=True)
        return ToolResult(content=None) if spec.name == "fetch" else None  # type: ignore[arg-type]


def test_a_hook_may_replace_a_result_and_its_junk_is_an_error(tmp_path: Path) -> None:
    """I14: what a hook makes of a result is checked as what a tool returns."""
    outputs = do(
        make(tmp_path, hooks=[Rewrites()]), ("look", {"name": "a"}), ("fetch", {"name": "b"}), ("mark", {"name": "c"})
    )
    assert [(output.text, output.is_error) for output in outputs][::2] == [("a done, seen", True), ("c done", False)]
    assert outputs[1].text.startswith("Error: fetch returned None")


def test_details_reach_the_interface_and_not_the_model(tmp_path: Path) -> None:
    made = make(tmp_path)
    output = made.call("change")
    assert output.text == "changed"
    end = made.seen(ToolExecutionEnd)[0]
    assert (end.name, end.text, end.is_error, end.details) == ("change", "changed", False, {"diff": "-a\n+b"})
    assert made.seen(ToolExecutionStart)[0].arguments == {}


def test_what_is_done_to_the_arguments_of_an_event_is_not_run(tmp_path: Path) -> None:
    """Rules, hooks and people judged what the model wrote."""
    made = make(tmp_path)

    def add(event: object) -> None:
        if isinstance(event, ToolExecutionStart):
            event.arguments["also"].append("eve")

    made.session.subscribe(add)
    output = made.call("send_mail", to="ada", also=["bob"])
    assert output.text == "sent to ada and ['bob']"


def test_known_secrets_are_nowhere_in_what_leaves_dispatch(tmp_path: Path) -> None:
    """I24: not in the output, the progress, the details or the log of calls."""
    log = tmp_path / "audit.jsonl"
    made = make(tmp_path, env={"DECLARED_KEY": SECRET, "MARVIN_SUBAGENT_LOG": str(log)})
    output = made.call("tells", name="DECLARED_KEY")
    assert output.text == "the key is [redacted]!"
    assert made.seen(ToolExecutionUpdate)[0].text == "key [redacted]"
    assert made.seen(ToolExecutionEnd)[0].details == {"lines": ["key=[redacted]"], "n": 1}
    assert "[redacted]" in log.read_text()
    assert SECRET not in repr((made.events, output)) + log.read_text()


def test_a_secret_is_redacted_from_errors_and_from_the_log_of_arguments(tmp_path: Path) -> None:
    """I24: however it got there."""
    log = tmp_path / "audit.jsonl"
    made = make(tmp_path, env={"OPENAI_API_KEY": SECRET, "MARVIN_SUBAGENT_LOG": str(log)})
    output = made.call("fails", kind=SECRET)
    assert "KeyError: '[redacted]'" in output.text
    assert SECRET not in repr((made.events, output)) + log.read_text()


@pytest.mark.parametrize("sign", ["{}", "\\u{:04X}"])
def test_a_tool_gets_no_secret_however_the_model_writes_it(tmp_path: Path, sign: str) -> None:
    """I24: services write the same text as JSON in several ways; what a tool keeps or sends on has no secret."""
    made = make(tmp_path, env={"OPENAI_API_KEY": SECRET})
    written = "".join(sign.format(one if sign == "{}" else ord(one)) for one in SECRET)

    async def go() -> ToolOutput:
        call = ToolCall(id="a", name="look", arguments='{"name": "' + written + '"}')
        output = await made.session.dispatcher.call(call)
        await made.session.close()
        return output

    assert run(go()).text == "[redacted] done"


def test_no_secret_is_among_the_choices_of_a_question(tmp_path: Path) -> None:
    """I24: the tool learns which one it was all the same."""
    seen: list[str] = []

    async def second(question: str, choices: Sequence[str]) -> str:
        seen.extend(choices)
        return choices[1]

    made = make(tmp_path, argv=(), asker=second, env={"DECLARED_KEY": SECRET})
    assert made.call("chooses_a_secret").text == "it was the secret"
    assert seen == ["left", "[redacted]"]


def test_what_a_hook_makes_of_a_prompt_has_no_secret(tmp_path: Path) -> None:
    class Adds(Hook):
        async def on_prompt(self, context: HookContext, text: str) -> str | None:
            return f"{text} with {SECRET}"

    made = make(tmp_path, says("Yes."), hooks=[Adds()], env={"OPENAI_API_KEY": SECRET})

    async def go() -> None:
        await made.session.submit("Go")
        await made.session.close()

    run(go())
    assert [event.prompt for event in made.seen(AgentStart)] == ["Go with [redacted]"]
    assert SECRET not in repr(made.events)


def test_a_tool_gets_only_the_secrets_that_it_declares(tmp_path: Path) -> None:
    """I20, I24."""
    made = make(tmp_path, env={"OPENAI_API_KEY": SECRET})
    output = made.call("tells", name="OPENAI_API_KEY")
    assert output.is_error
    assert "tells asked for OPENAI_API_KEY, which it does not declare" in output.text


def test_a_command_does_not_see_the_secrets_of_the_environment(tmp_path: Path) -> None:
    """I24."""
    made = make(tmp_path, env={"OPENAI_API_KEY": SECRET, "PLAIN": "plain", "COPIED": SECRET})
    text = made.call("run_command", command="echo ${OPENAI_API_KEY-unset} ${COPIED-unset} $PLAIN").text
    assert text == "unset unset plain\n"


def test_what_a_pack_keeps_in_the_session_is_there_for_its_next_call(tmp_path: Path) -> None:
    """I20: state comes with the context; each session has its own."""
    made = make(tmp_path)
    outputs = do(made, ("keep", {"value": "1"}), ("keep", {"value": "2"}))
    assert [output.text for output in outputs] == ["before: nothing", "before: 1"]
    assert make(tmp_path).call("keep", value="3").text == "before: nothing"


def test_a_resource_lives_from_call_to_call_and_ends_with_the_session(tmp_path: Path) -> None:
    """I20."""
    outputs = do(make(tmp_path), ("serve", {}), ("serve", {}))
    assert [output.text for output in outputs] == ["up,used", "up,used,used"]


# --- the audit log -------------------------------------------------------------------------------------------------


def audited(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_call_of_a_sub_agent_is_one_line_of_its_log(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    made = make(tmp_path, env={"MARVIN_SUBAGENT_LOG": str(log)})
    do(
        made,
        ("mark", {"name": "a", "seconds": 0.02}),
        ("big", {"size": 1_000}),
        ("look", {"name": "n" * 500}),
        ("no_tool", {"x": 1}),
        ("stuck", {}),
    )
    lines = audited(log)
    assert all(list(line) == ["ts", "tool", "args", "result", "elapsed_ms"] for line in lines)
    first = lines[0]
    assert time.strptime(first["ts"], "%Y-%m-%dT%H:%M:%SZ")
    assert (first["tool"], first["args"], first["result"]) == ("mark", "name=a, seconds=0.02", "a done")
    assert 20 <= first["elapsed_ms"] < 30_000
    by_tool = {line["tool"]: line for line in lines}
    assert by_tool["big"]["result"] == "x" * 400
    assert by_tool["look"]["args"] == ("name=" + "n" * 500)[:200]
    assert "no tool 'no_tool'" in by_tool["no_tool"]["result"]
    assert "took longer" in by_tool["stuck"]["result"]
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_call_that_was_interrupted_is_in_the_log_as_well(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    made = make(tmp_path, env={"MARVIN_SUBAGENT_LOG": str(log)})
    cancelled(made, ("mark", {"name": "a", "seconds": 300}), when=["+a"])
    assert [(line["tool"], line["result"]) for line in audited(log)] == [("mark", INTERRUPTED[:400])]


def test_without_the_variable_there_is_no_log(tmp_path: Path) -> None:
    make(tmp_path).call("mark", name="a")
    assert not list(tmp_path.rglob("*.jsonl"))


def test_names_and_paths_of_any_length_do_not_fill_the_context(tmp_path: Path) -> None:
    """What a model repeats without end does not come back to it as a whole."""
    made = make(tmp_path)
    outputs = do(made, ("x" * 1_000_000, {}))
    assert "There is no tool 'xxx" in outputs[0].text
    assert len(outputs[0].text) < 2_000
    with pytest.raises(ToolError, match="1,000,000 characters") as failed:
        made.parts.workspace.paths.open("y" * 1_000_000)
    assert len(str(failed.value)) < 2_000
