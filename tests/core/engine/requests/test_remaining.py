"""What is left of the window and of the money is told to the model, in time and in few words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from marvin_core import CallDelta, Delta, Message, Stop, TextDelta, Usage, UsageDelta
from marvin_core.api.limits import Price
from marvin_core.api.messages import Image, Text, ToolOutput, tool, user
from marvin_core.conversation.window import characters
from marvin_core.engine.requests.remaining import Remaining
from tests.support.engine import Made, Script, make, run, says

WINDOW = 10_000
"""Older messages become a summary at 8,000 tokens; 7,200 are near that."""


def call(tokens: int, out: int = 10) -> list[Delta]:
    used = UsageDelta(usage=Usage(input_tokens=tokens, output_tokens=out))
    return [CallDelta(key=0, id=f"c{tokens}", name="look", arguments='{"name": "x"}'), used, Stop(reason="tool_calls")]


def made_with(tmp_path: Path, *script: Any, **options: Any) -> Made:
    return make(tmp_path, provider=Script(*script, context_window=WINDOW), **options)


def prompted(made: Made, *texts: str) -> None:
    async def go() -> None:
        for text in texts:
            await made.session.submit(text)
        await made.session.close()

    run(go())


def outputs(messages: tuple[Message, ...]) -> list[str]:
    return [output.text for message in messages for output in message.outputs]


def test_nothing_is_said_while_there_is_enough(tmp_path: Path) -> None:
    made = made_with(tmp_path, call(100), says("Done."))
    prompted(made, "go")
    assert made.provider
    assert all("are left" not in request.system for request in made.provider.requests)
    assert "are left" not in "".join(outputs(made.provider.requests[-1].messages))


def test_from_the_threshold_on_the_last_result_and_the_end_of_the_prompt_say_what_is_left(tmp_path: Path) -> None:
    """The rest of the prompt stays as it is, and what was added to a result is never written again."""
    made = made_with(tmp_path, call(7_500), call(7_510), call(7_520), says("Done."))
    prompted(made, "x" * 28_000)
    assert made.provider
    first, *_, last = made.provider.requests
    told = outputs(last.messages)
    assert all("tokens are left before older messages are replaced by a summary.]" in text for text in told)
    assert len({text.partition("[About")[2] for text in told}) == 3
    for earlier, later in zip(made.provider.requests, made.provider.requests[1:], strict=False):
        assert later.messages[: len(earlier.messages)] == earlier.messages
    assert last.system[: last.stable] == first.system[: first.stable]
    assert "tokens are left" in last.system[last.stable :]
    assert len({request.system for request in made.provider.requests[1:]}) == 1  # a change costs the whole cache


def test_under_a_ceiling_the_dollars_are_told(tmp_path: Path) -> None:
    prices = {"scripted": Price(input=1.0, output=1_000.0)}
    flags = ("--non-interactive", "--max-cost", "10")
    made = made_with(tmp_path, call(100, 100), call(100, 7_800), says("Done."), prices=prices, argv=flags)
    assert made.provider
    budget = made.parts.setup.budgets.of(10.0)
    made.parts.model.ceiling = budget

    async def go() -> None:
        await made.session.submit("go")
        await budget.aclose()
        await made.session.close()

    run(go())
    first, last = outputs(made.provider.requests[-1].messages)
    assert "USD" not in first
    assert "Of the cost ceiling of 10 USD 2.0998 are left.]" in last
    assert "Of the cost ceiling at most 2.5 USD are left." in made.provider.requests[-1].system


def test_only_the_last_output_of_a_round_says_it(tmp_path: Path) -> None:
    made = made_with(tmp_path, says("."))
    made.parts.conversation.append(user("x" * 31_000))
    remaining = Remaining(made.parts, made.session.compactor)
    picture = ToolOutput(call_id="b", name="b", content=(Image(media_type="image/png", data=""),))
    empty = ToolOutput(call_id="a", name="a", content=())
    full = ToolOutput(call_id="c", name="c", content=(Text(text="found"),))
    for last in (picture, empty, full):
        one, two = remaining.added([full, last], None)
        assert one == full
        assert two.text.removeprefix("found\n").startswith("[About ")
        assert two.content[: len(last.content) - 1] == last.content[:-1]
        assert characters([tool([two])]) < characters([tool([last])]) + 120
    assert remaining.added([], None) == []


def test_text_after_all(tmp_path: Path) -> None:
    """A chat that is far from both limits pays for none of it."""
    made = made_with(tmp_path, [TextDelta(text="Hello."), Stop(reason="stop")])
    assert Remaining(made.parts, made.session.compactor).roughly(None) == ""
