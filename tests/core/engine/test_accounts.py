"""What prompts cost is written down beside them, counted once under a ceiling, and never the end of a chat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from marvin_core import Usage, UsageDelta
from marvin_core.api.events import Notice
from marvin_core.api.limits import Price
from marvin_core.sessions.reader import load
from tests.support.chat import Chat, chatting
from tests.support.engine import make, run, says

PRICES = {"scripted/scripted": Price(input=1000.0, output=1000.0)}
"""An answer of these scripts costs 0.11 USD."""


class FailingDisk(dict[str, Any]):
    """Prices that cannot be read."""

    def get(self, *_: Any) -> Any:
        raise OSError(5, "Input/output error")


def test_a_cost_that_cannot_be_written_down_is_told_and_ends_nothing(tmp_path: Path) -> None:
    made = make(tmp_path, says("Hello."), says("And again."), prices=FailingDisk(x=1))

    async def go() -> None:
        for _ in range(2):
            await made.session.submit("hello")
            await made.session.accounted()
        await made.session.close()

    run(go())
    told = [notice.text for notice in made.seen(Notice) if "could not be recorded" in notice.text]
    assert told == ["The cost of the last prompt could not be recorded: [Errno 5] Input/output error"] * 2


def left(chat: Chat) -> float:
    found = chat.session.usage().left
    assert found is not None
    return found


def test_going_back_and_forth_between_sessions_counts_each_once(tmp_path: Path) -> None:
    first = make(tmp_path, *[says("Hello.")] * 2, prices=PRICES)
    chatting(first, lambda chat: chat.session.submit("an earlier one"))

    async def work(chat: Chat) -> None:
        await chat.session.submit("one")
        await chat.session.accounted()
        assert left(chat) == pytest.approx(100 - 0.11)
        one = chat.session.id
        assert "Continuing " in await chat.do(f"/resume {first.session.id}")
        await chat.session.submit("go on")
        await chat.session.accounted()
        assert left(chat) == pytest.approx(100 - 0.33), "the earlier run counts, too"
        for session in (one, first.session.id, one):
            await chat.do(f"/resume {session}")
            await chat.do("/tree 1")
        await chat.session.submit("go on")
        await chat.session.accounted()
        assert left(chat) == pytest.approx(100 - 0.44)
        assert chat.made.parts.writer.cost == pytest.approx(0.22)

    chat = chatting(make(tmp_path, *[says("Hi.")] * 9, prices=PRICES, argv=("--max-cost", "100")), work)
    assert [load(path).header.spent for path in chat.files] == pytest.approx([0.22, 0.22])


@pytest.mark.parametrize("fork", [False, True])
def test_a_session_that_is_resumed_in_a_chat_may_have_spent_the_ceiling(tmp_path: Path, fork: bool) -> None:
    first = make(tmp_path, *[says("Hello.")] * 3, prices=PRICES)

    async def thrice(chat: Chat) -> None:
        for _ in range(3):
            await chat.session.submit("spend")

    chatting(first, thrice)
    made = make(tmp_path, says("Hi."), prices=PRICES, argv=("--max-cost", "0.3"))

    async def work(chat: Chat) -> None:
        await chat.do(f"/resume {first.session.id}")
        if fork:
            await chat.do("/fork")
        result = await chat.session.submit("more")
        assert "0.3300 of them by earlier runs of this session" in str(result.error)

    chatting(made, work)
    assert made.provider is not None
    assert not made.provider.requests


def test_what_is_still_counted_when_a_session_is_left_is_written_into_it(tmp_path: Path) -> None:
    made = make(tmp_path, *[says("Hello.")] * 2, prices=PRICES)

    async def work(chat: Chat) -> None:
        await chat.session.submit("one")
        await chat.do("/clear")
        await chat.session.submit("two")

    assert [load(path).header.spent for path in chatting(made, work).files] == pytest.approx([0.11, 0.11])


@pytest.mark.parametrize(
    ("ceiling", "budget", "expected"),
    [
        ("6", "20", "The cost ceiling of 6 USD is reached"),
        ("20", "6", "Its budget of 6 USD does not cover another request."),
    ],
)
def test_play_mode_says_which_money_is_spent(tmp_path: Path, ceiling: str, budget: str, expected: str) -> None:
    made = make(tmp_path, *[says("Hm.")] * 60, prices=PRICES, argv=("--max-cost", ceiling))
    said: list[str] = []

    async def work(chat: Chat) -> None:
        said.append(await chat.do(f"/play {budget}"))

    chatting(made, work)
    assert expected in said[0]
    assert ("Its budget" in said[0]) == (expected.startswith("Its"))
    assert made.meter.known_cost() <= min(float(ceiling), float(budget))


def test_what_is_left_is_that_of_the_nearer_ceiling(tmp_path: Path) -> None:
    prices = {"scripted": Price(input=1.0, output=1_000.0)}
    used = UsageDelta(usage=Usage(input_tokens=100, output_tokens=7_900))
    made = make(tmp_path, *[says("Hm.", usage=used)] * 9, prices=prices, argv=("--max-cost", "10"))

    async def work(chat: Chat) -> None:
        await chat.do("/play 1000")

    chatting(made, work)
    assert made.provider is not None
    assert "Of the cost ceiling at most 2.5 USD are left." in made.provider.requests[1].system
