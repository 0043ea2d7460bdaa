"""The end of a prompt: what hooks have the model answer, what waits after it, and what a late interface sees."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from marvin_core import Event, Hook, HookContext, TextDelta
from marvin_core.api.events import AgentEnd, MessageEnd, Notice
from marvin_core.api.session import SessionSnapshot, TurnResult
from tests.support.engine import Hang, Made, calls, make, run, says, until


class Stops(Hook):
    """Returns, or sends, one text after the other when the model is done."""

    def __init__(self, *texts: str, sends: bool = False) -> None:
        self.answers: list[str] = []
        self._texts = list(texts)
        self._sends = sends

    async def on_stop(self, context: HookContext, answer: str) -> str | None:
        self.answers.append(answer)
        text = self._texts.pop(0) if self._texts else None
        if text and self._sends:
            context.send(text)
            return None
        return text


class SendsAtTheEnd(Hook):
    """Sends a message when it is too late."""

    async def on_event(self, context: HookContext, event: Event) -> None:
        if isinstance(event, AgentEnd):
            context.send("Too late.")


async def refuse(question: str, choices: Sequence[str]) -> str:
    return choices[-1]


def asked(made: Made, *prompts: str) -> list[TurnResult]:
    async def go() -> list[TurnResult]:
        try:
            return [await made.session.submit(prompt) for prompt in prompts or ("go",)]
        finally:
            await made.session.close()

    return run(go())


def said_by_hooks(made: Made) -> list[str]:
    return [event.message.text for event in made.seen(MessageEnd) if event.origin == "hook"]


@pytest.mark.parametrize("sends", [False, True])
def test_what_a_hook_says_before_the_end_is_answered_in_the_same_prompt(tmp_path: Path, sends: bool) -> None:
    hook = Stops("The tests fail.", sends=sends)
    made = make(tmp_path, says("Done."), says("Mended."), hooks=[hook])
    (result,) = asked(made)
    assert result.text == "Done.\nMended."
    assert hook.answers == ["Done.", "Mended."]
    assert said_by_hooks(made) == ["The tests fail."]
    assert len(made.seen(AgentEnd)) == 1


def test_that_is_done_three_times_at_most(tmp_path: Path) -> None:
    hook = Stops(*(f"Again {n}." for n in range(9)))
    made = make(tmp_path, *(says(f"Answer {n}.") for n in range(9)), hooks=[hook])
    (result,) = asked(made)
    assert result.text == "Answer 0.\nAnswer 1.\nAnswer 2.\nAnswer 3."
    assert said_by_hooks(made) == ["Again 0.", "Again 1.", "Again 2."]
    assert result.error is None


def test_a_prompt_that_failed_is_not_gone_on_with(tmp_path: Path) -> None:
    hook = Stops("Go on.")
    made = make(tmp_path, [RuntimeError("broken")], hooks=[hook])
    (result,) = asked(made)
    assert result.error is not None
    assert hook.answers == []


def test_a_run_says_which_message_was_not_delivered(tmp_path: Path) -> None:
    made = make(tmp_path, says("Done."), hooks=[SendsAtTheEnd()])
    asked(made)
    told = [notice.text for notice in made.seen(Notice)]
    assert told == ["A message of a hook was not delivered, because the run ended first: Too late."]


def test_a_chat_shows_a_message_that_waits_and_delivers_it(tmp_path: Path) -> None:
    made = make(tmp_path, says("Done."), says("Read."), argv=(), hooks=[SendsAtTheEnd()], asker=refuse)

    async def go() -> SessionSnapshot:
        await made.session.submit("one")
        await until(lambda: bool(made.session.snapshot().waiting))
        waiting = made.session.snapshot()
        await made.session.submit("two")
        await made.session.close()
        return waiting

    assert run(go()).waiting == ("Too late.",)
    assert "A message of a hook waits for the next request: Too late." in [n.text for n in made.seen(Notice)]
    assert said_by_hooks(made) == ["Too late."]


def test_who_comes_late_sees_the_answer_that_comes_in(tmp_path: Path) -> None:
    made = make(tmp_path, calls(("a", "look", '{"name": "x"}')), [TextDelta(text="Half of"), Hang()])

    async def go() -> SessionSnapshot:
        task = asyncio.ensure_future(made.session.submit("go"))
        await until(lambda: made.session.snapshot().answer is not None and "look" not in made.session.snapshot().calls)
        await until(lambda: getattr(made.session.snapshot().answer, "text", "") == "Half of")
        seen = made.session.snapshot()
        task.cancel()
        await asyncio.wait([task])
        await made.session.close()
        return seen

    seen = run(go())
    assert seen.busy
    assert seen.answer is not None
    assert (seen.answer.text, seen.answer.stop_reason) == ("Half of", None)
    assert [message.role for message in seen.messages] == ["user", "assistant", "tool"]
    assert made.session.snapshot().answer is None


def test_who_comes_late_sees_the_calls_that_run_and_the_last_error(tmp_path: Path) -> None:
    made = make(tmp_path, calls(("a", "reluctant", '{"name": "x", "cleanup": 0}')), [RuntimeError("broken")])

    async def go() -> SessionSnapshot:
        task = asyncio.ensure_future(made.session.submit("go"))
        await until(lambda: bool(made.log))
        seen = made.session.snapshot()
        task.cancel()
        await asyncio.wait([task])
        await made.session.submit("again")
        await made.session.close()
        return seen

    seen = run(go())
    assert [(call.call_id, call.name, call.origin) for call in seen.calls] == [("a", "reluctant", "model")]
    assert seen.error is None
    last = made.session.snapshot()
    assert last.calls == ()
    assert "broken" in str(last.error)
