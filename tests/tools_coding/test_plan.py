"""The tool plan: what it shows and refuses, and how a plan outlives summaries, restarts, forks and going back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.messages import Message, Table, ToolOutput, tool, user
from marvin_core.conversation.plan import composed, plan_turns
from marvin_core.conversation.plan import plan as planned
from marvin_core.sessions.reader import load
from marvin_core.testing import Outcome, ToolRunner
from marvin_core.tools.schema import describe
from marvin_tools_coding.agents.plan import plan
from tests.support.chat import Chat, chatting
from tests.support.conversations import answer, assert_accepted, call, rounds
from tests.support.engine import Made, calls, make, says
from tests.support.examples import examples

SPEC = describe(plan, source="marvin-tools-coding", group="agents")
STEPS = ["Read the code", "Write a test", "Mend it"]
LASTS = "The state of plan, verbatim:\nPlan: 1 of 3 done\n[x] Read the code\n[ ] Write a test\n[ ] Mend it"


def shown(outcome: Outcome) -> list[tuple[Any, ...]]:
    """The rows of what people see."""
    (table,) = outcome.show
    assert isinstance(table, Table)
    return [tuple(row) for row in table.rows]


class TestCalls:
    def test_the_steps_are_shown_ticked_and_the_model_reads_what_comes_next(self, marvin_tools: ToolRunner) -> None:
        outcome = marvin_tools.call("plan", steps=STEPS, done=1)
        assert outcome.text == "1 of 3 done. Next: Write a test"
        assert shown(outcome) == [("[x]", "Read the code"), ("[ ]", "Write a test"), ("[ ]", "Mend it")]
        assert outcome.details == {"steps": STEPS, "done": 1}
        assert outcome.show[0].as_dict()["title"] == "Plan: 1 of 3 done"
        assert marvin_tools.call("plan", steps=STEPS).text == "0 of 3 done. Next: Read the code"
        assert marvin_tools.call("plan", steps=STEPS, done=3).text == "3 of 3 done. All steps are done."

    def test_no_steps_are_no_plan(self, marvin_tools: ToolRunner) -> None:
        outcome = marvin_tools.call("plan", steps=[])
        assert (outcome.text, outcome.show, outcome.is_error) == ("The plan is empty now.", (), False)

    @pytest.mark.parametrize(
        ("given", "says"),
        [
            ({"steps": STEPS, "done": 4}, "done is 4, but there are 3 steps. Give all steps, finished ones first"),
            ({"steps": STEPS, "done": -1}, "the number of finished steps: 0 to 3."),
            ({"steps": [], "done": 2}, "done is 2, but there are 0 steps"),
            ({"steps": ["a", " \n\t", "c"]}, "step 2 is empty"),
            ({"steps": [f"Step {n}" for n in range(500)]}, "500 steps are too many. Give at most 50"),
            ({"steps": [{"no": "text"}]}, "steps"),
            ({"steps": [["a"]]}, "steps"),
            ({"steps": 7}, "steps"),
            ({"done": 1}, "steps"),
        ],
    )
    def test_nonsense_is_answered_with_what_to_send(
        self, marvin_tools: ToolRunner, given: dict[str, Any], says: str
    ) -> None:
        """I10: and the plan stays as it was."""
        outcome = marvin_tools.call("plan", **given)
        assert outcome.is_error
        assert says in outcome.text
        assert outcome.show == ()

    def test_long_steps_are_cut_and_controls_reach_nobody(self, marvin_tools: ToolRunner) -> None:
        outcome = marvin_tools.call("plan", steps=["x" * 10_000, "a\x1b[31mred\x07\r\nb\u202ec"])
        assert [len(step) for _, step in shown(outcome)] == [150, 8]
        assert shown(outcome)[1][1] == "ared b c"
        assert "(Steps were cut to 150 characters.)" in outcome.text
        assert len(outcome.text) < 400

    @pytest.mark.parametrize(
        "given",
        [
            {
                "todos": [
                    {"content": "Write a test", "status": "in_progress", "activeForm": "Writing"},
                    {"content": "Mend it", "status": "pending", "id": "3", "priority": "high"},
                    {"content": "Read the code", "status": "completed"},
                ]
            },
            {
                "explanation": "Why.",
                "plan": [
                    {"step": "Read the code", "status": "completed"},
                    {"step": "Write a test", "status": "in_progress"},
                    {"step": "Mend it", "status": "pending"},
                ],
            },
            {"task_list": None, "todo_list": [{"title": "Read the code", "done": True}, "Write a test", "Mend it"]},
            {"items": "- [x] Read the code\n- [ ] Write a test\n- [ ] Mend it\n"},
            {"steps": "1. [x] Read the code\n2. [ ] Write a test\n3. [-] Mend it"},
            {"steps": "Read the code, Write a test, Mend it", "done": 1},
            {"steps": ["1. Read the code", "2. Write a test", "3. Mend it"], "completed": [1]},
            {"steps": json.dumps(STEPS), "done": "1"},
        ],
    )
    def test_it_is_called_as_other_programs_call_theirs(self, marvin_tools: ToolRunner, given: dict[str, Any]) -> None:
        given.pop("task_list", None)
        outcome = marvin_tools.call("plan", **given)
        assert outcome.details == {"steps": STEPS, "done": 1}, outcome.text

    def test_lines_of_a_list_keep_their_commas(self, marvin_tools: ToolRunner) -> None:
        outcome = marvin_tools.call("plan", steps="1. Read a, b and c\n2. Mend it,\n")
        assert outcome.details == {"steps": ["Read a, b and c", "Mend it"], "done": 0}

    def test_an_agent_that_may_only_read_has_it_too(self, marvin_tools: ToolRunner) -> None:
        assert not marvin_tools.session(read_only=True).call("plan", steps=STEPS).is_error

    def test_undo_takes_back_files_and_leaves_the_plan_alone(self, marvin_tools: ToolRunner) -> None:
        marvin_tools.call("create_file", path="a.txt", content="x")
        marvin_tools.call("plan", steps=STEPS, done=1)
        (line,) = marvin_tools.take_back()
        assert "a.txt" in line
        assert not (marvin_tools.working_dir / "a.txt").exists()

    def test_its_schema_is_small(self) -> None:
        sent = {"name": SPEC.name, "description": SPEC.description, "parameters": dict(SPEC.parameters)}
        assert len(json.dumps(sent, separators=(",", ":"))) <= 300


def update(identity: str, steps: list[str], done: int, *, is_error: bool = False) -> list[Message]:
    """A call of plan in a conversation, and its output."""
    lasting = "" if is_error or done == len(steps) else f"{done} of {','.join(steps)}"
    output = ToolOutput(call_id=identity, name="plan", content=(), is_error=is_error, lasting=lasting)
    return [answer("", call(identity, "plan", steps=steps, done=done)), tool([output])]


def compacted(messages: list[Message], limit: int = 20_000) -> list[Message]:
    found = planned(messages, limit, "backup.jsonl")
    return [*composed(found, "What was done.", "backup.jsonl")]


def summary_of(messages: list[Message]) -> str:
    return next((message.text for message in messages if message.is_summary), "")


class TestSummaries:
    def test_the_newest_plan_stands_in_the_summary_through_any_number_of_them(self) -> None:
        found = [user("go"), *update("p1", STEPS, 0), *rounds(3), *update("p2", STEPS, 1), *rounds(9, start=3)]
        for number in range(4):
            found = compacted([*found, *rounds(9, start=20 + 10 * number)])
            assert summary_of(found).count("The state of plan, verbatim:") == 1
            assert "1 of Read the code" in summary_of(found)
            assert_accepted(found)

    def test_a_call_that_stays_needs_no_place_in_it(self) -> None:
        found = compacted([user("go"), *update("p1", STEPS, 0), *rounds(9), *update("p2", STEPS, 1)])
        assert "The state of" not in summary_of(found)

    def test_a_newer_one_takes_its_place_and_a_failed_one_does_not(self) -> None:
        first = compacted([user("go"), *update("p1", STEPS, 0), *rounds(9)])
        second = compacted([*first, *update("p2", STEPS, 2), *update("p3", [], 9, is_error=True), *rounds(9, start=9)])
        assert "2 of Read the code" in summary_of(second)
        assert "0 of Read the code" not in summary_of(second)

    def test_a_finished_one_is_left_behind(self) -> None:
        first = compacted([user("go"), *update("p1", STEPS, 0), *rounds(9)])
        assert "The state of" not in summary_of(compacted([*first, *update("p2", STEPS, 3), *rounds(9, start=9)]))

    def test_the_newest_request_still_ends_the_summary(self) -> None:
        asked = [user("go"), *update("p1", STEPS, 0), user("And now the PARSER"), *rounds(20)]
        for _ in range(3):
            asked = [*compacted(asked), *rounds(20, start=30)]
            text = summary_of(asked)
            assert text.endswith("The newest request of the user, verbatim:\nAnd now the PARSER")
            assert "0 of Read the code" in text
            assert text.index("The state of plan") < text.index("The newest request")

    def test_the_oldest_turns_that_go_leave_it_as_well(self) -> None:
        turns = [m for n in range(60) for m in (user(f"Request {n}"), answer(f"Answer {n}"))]
        found = plan_turns([user("go"), *update("p1", STEPS, 0), answer("Well."), *turns], 40)
        assert found is not None
        assert "0 of Read the code" in composed(found, "Before.", "b")[1].text

    @examples(60)
    @given(
        st.lists(
            st.one_of(
                st.tuples(st.just("plan"), st.integers(0, 3)),
                st.tuples(st.just("fail"), st.integers(0, 3)),
                st.tuples(st.just("work"), st.integers(1, 6)),
                st.tuples(st.just("ask"), st.just(0)),
                st.tuples(st.just("compact"), st.sampled_from([3_000, 20_000])),
                st.tuples(st.just("cap"), st.just(20)),
            ),
            max_size=25,
        )
    )
    def test_whatever_happens_the_model_knows_the_newest_plan(self, happens: list[tuple[str, int]]) -> None:
        """Either its call is there, or the summary tells it; one that failed or is finished is told by none."""
        found: list[Message] = [user("go")]
        newest = ""
        for number, (what, value) in enumerate(happens):
            if what == "plan":
                steps = [f"{name} {number}" for name in STEPS]
                found += update(f"p{number}", steps, value)
                newest = "" if value == 3 else f"{value} of {','.join(steps)}"
            elif what == "fail":
                found += update(f"p{number}", ["wrong"], value, is_error=True)
            elif what == "work":
                found += rounds(value, start=100 * number)
            elif what == "ask":
                found += [user(f"Request {number}"), answer(f"Answer {number}")]
            elif what == "compact":
                found = compacted(found, value)
            elif (parts := plan_turns(found, value)) is not None:
                found = [*composed(parts, "Before.", "b")]
            there = [
                one.lasting for message in found for one in message.outputs if one.name == "plan" and not one.is_error
            ]
            summary = summary_of(found)
            if there:
                assert there[-1] == newest
                assert "The state of plan" not in summary or not newest or newest not in summary
            else:
                assert (newest in summary) if newest else "The state of plan" not in summary
            assert_accepted(found)

    def test_the_largest_plan_fits_into_a_summary_as_it_is(self, marvin_tools: ToolRunner) -> None:
        lasting = marvin_tools.call("plan", steps=["x" * 150] * 50, done=49).lasting
        output = ToolOutput(call_id="p", name="plan", content=(), lasting=lasting)
        found = compacted([user("go"), answer("", call("p", "plan")), tool([output]), *rounds(20)], 400_000)
        assert lasting in summary_of(found)

    @examples(60)
    @given(st.integers(2_000, 40_000), st.integers(0, 60), st.text(max_size=5_000))
    def test_a_summary_is_never_longer_than_it_may_be(self, limit: int, names: int, text: str) -> None:
        outputs = [
            ToolOutput(call_id=f"c{n}", name=f"tool{n}", content=(), lasting=f"{n} {text}") for n in range(names)
        ]
        given_calls = answer("", *(call(f"c{n}", f"tool{n}") for n in range(names)))
        found = planned([user("go"), *([given_calls, tool(outputs)] if names else []), *rounds(20)], limit, "b")
        made = composed(found, "x" * 90_000, "b")
        text = summary_of([*made])
        head = text.partition("\n\n")[0]
        assert len(text) <= max(found.summary_limit, len(head))


def planning(tmp_path: Path, *script: Any) -> Made:
    return make(tmp_path, *script, argv=(), specs=(SPEC,), asker=nobody)


async def nobody(question: str, choices: Any) -> str:
    raise AssertionError(question)


def planned_call(done: int) -> Any:
    return calls((f"p{done}", "plan", json.dumps({"steps": STEPS, "done": done})))


LONG = "Here is a long text. " * 400


async def fill(chat: Chat, count: int = 6) -> None:
    """Say so much that a plan is no longer among the newest messages."""
    for number in range(count):
        await chat.session.submit(f"More {number}")


def in_file(path: Path) -> list[str]:
    """What a file that a session is gone on with holds of the plan: summaries and outputs."""
    messages = load(path).messages
    kept = [output.lasting for message in messages for output in message.outputs if output.lasting]
    return kept + [message.text for message in messages if message.is_summary]


def test_it_survives_compaction_resume_and_fork(tmp_path: Path) -> None:
    script = [planned_call(1), says("Planned."), *[says(LONG) for _ in range(6)], says("A summary."), says("Well.")]
    made = planning(tmp_path, *script)

    async def work(chat: Chat) -> None:
        await chat.session.submit("Plan it")
        assert in_file(chat.files[0]) == [LASTS.partition("\n")[2]], "a run that is killed here goes on with it"
        await fill(chat)
        await chat.session.compact(5_000)
        assert LASTS in summary_of([*made.parts.conversation.messages])
        await chat.do("/fork")
        await chat.session.submit("Go on")

    chat = chatting(made, work)
    assert [LASTS in "".join(in_file(path)) for path in chat.files] == [True, True]
    assert made.provider is not None
    sent = made.provider.requests[-1].messages
    assert LASTS in summary_of([*sent]), "the model is sent it"


def test_going_back_to_before_a_prompt_brings_back_the_plan_of_then(tmp_path: Path) -> None:
    script = [planned_call(0), says("One."), planned_call(2), says("Two."), says("Three."), *[says(LONG)] * 6]
    made = planning(tmp_path, *script, says("A summary."))

    async def work(chat: Chat) -> None:
        for prompt in ("Plan it", "Go on", "And on"):
            await chat.session.submit(prompt)
        before = chat.session.sessions.prompts()[1]
        assert before.text == "Go on"
        await chat.session.sessions.rewind(before)
        await fill(chat)
        await chat.session.compact(5_000)

    chatting(made, work)
    assert "Plan: 0 of 3 done" in summary_of([*made.parts.conversation.messages])
