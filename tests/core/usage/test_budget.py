"""The cost ceiling: what is reserved for a request, what it is settled with, and what happens when it is reached."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import math
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import CallDelta, Delta, Request, Stop, TextDelta, ToolSpec, Usage, UsageDelta
from marvin_core.api.errors import (
    BudgetExceeded,
    ConfigError,
    Overloaded,
    ProviderError,
    RateLimited,
    StreamBroken,
    Unreachable,
    UsageError,
)
from marvin_core.api.limits import Price
from marvin_core.api.messages import Block, Image, Message, ProviderData, Text, Thinking, ToolCall, user
from marvin_core.api.models import Reservation
from marvin_core.app import App
from marvin_core.providers.budgeted import BudgetedProvider
from marvin_core.providers.codex.provider import Codex
from marvin_core.providers.copilot.provider import Copilot
from marvin_core.usage.budget import Budget, budget_of
from marvin_core.usage.estimates import InputEstimate
from marvin_core.usage.prices import Prices
from tests.support.engine import Hang, Script, run, settled, spec, until
from tests.support.examples import examples

PRICES = {
    "m": Price(input=1.0, output=10.0),
    "dear-cache": Price(input=1.0, output=10.0, cache_write=2.0),
    "free-output": Price(input=1.0, output=0.0),
}
ASKED = Request(system="", messages=(user("x" * 1_980),))
"""A thousand tokens at two bytes each, the wire's own among them: a tenth of a cent."""


class Desk:
    """Budgets of agents below one home."""

    def __init__(self, folder: Path, prices: Mapping[str, Price] = PRICES, longest: int | None = 50_000) -> None:
        self._folder = folder
        self._prices = prices
        self._longest = longest
        self.warnings: list[str] = []

    def under(self, *argv: str, env: Mapping[str, str] | None = None, **timeouts: Any) -> Budget:
        config, _ = settled(self._folder, *argv, env=env)
        prices = Prices(self._prices, config.cache_folder / "prices.json")
        prices.add("local", "", free=True)
        config = config.replace(timeouts=config.timeouts.replace(ceiling_poll=0.005, **timeouts))
        return budget_of(config, prices, lambda provider, model: self._longest, self.warnings.append)

    def budget(self, ceiling: str, env: Mapping[str, str] | None = None, **timeouts: Any) -> Budget:
        return self.under("--max-cost", ceiling, env=env, **timeouts)

    def child(self, parent: Budget, *argv: str, **timeouts: Any) -> Budget:
        return self.under(*argv, env=parent.child_environment(), **timeouts)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def reserve(
    budget: Budget, request: Request = ASKED, model: str = "m", provider: str = "p"
) -> tuple[Request, Reservation]:
    return run(budget.reserve(provider, model, request))


def settle(budget: Budget, hold: Reservation, usage: Usage | None, came: int, **how: bool) -> None:
    run(budget.settle(hold, usage, came, **{"complete": True, **how}))


def refused(budget: Budget, hold: Reservation) -> None:
    run(budget.refused(hold))


def last(budget: Budget) -> tuple[Request, Reservation]:
    """What an agent does that is refused a request."""
    with pytest.raises(BudgetExceeded, match="higher --max-cost"):
        reserve(budget)
    run(budget.begin_last())
    try:
        return reserve(budget)
    finally:
        budget.end_last()


def left(budget: Budget) -> float:
    return budget.left()[1]


@pytest.mark.slow
def test_without_a_ceiling_there_is_no_budget_and_no_ledger(desk: Desk, tmp_path: Path) -> None:
    assert App(*settled(tmp_path), warn=pytest.fail).budget is None
    run(desk.budget("1").aclose())  # nothing was asked
    assert not list(tmp_path.rglob("ledgers"))


@pytest.mark.parametrize("value", ["", "much", "-1", "nan", "inf", "1e300", "1,5"])
def test_a_ceiling_that_is_no_amount_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(UsageError, match=r"--max-cost is .* as in 2\.50"):
        settled(tmp_path, f"--max-cost={value}")
    if value:
        with pytest.raises(ConfigError, match=r"MARVIN_MAX_COST is .* as in 2\.50"):
            settled(tmp_path, env={"MARVIN_MAX_COST": value})


def test_the_flag_goes_before_the_variable(tmp_path: Path) -> None:
    def ceiling(*argv: str, variable: str) -> float | None:
        return settled(tmp_path, *argv, env={"MARVIN_MAX_COST": variable})[0].max_cost

    assert ceiling("--max-cost", "0.5", variable="2") == 0.5
    assert ceiling(variable="2") == 2.0
    assert ceiling(variable="") is None


def test_a_request_is_given_an_output_limit_and_its_worst_case_is_reserved(desk: Desk) -> None:
    """1,000 tokens in at 1 USD, the longest answer at 10 USD a million, and 5,000 in and 1,000 out held back."""
    budget = desk.budget("10")
    request, hold = reserve(budget)
    assert request.max_output_tokens == 50_000
    assert hold.input_tokens == 1_000
    assert left(budget) == pytest.approx(10 - 0.001 - 0.5)  # what is held back for this agent is left to it
    assert left(desk.child(budget)) == pytest.approx(10 - 0.001 - 0.5 - 0.015)


def test_what_the_service_says_was_used_is_what_is_charged(desk: Desk) -> None:
    budget = desk.budget("10")
    _, hold = reserve(budget)
    settle(budget, hold, Usage(input_tokens=900, output_tokens=100), 5_000, complete=True)
    assert left(budget) == pytest.approx(10 - 0.0009 - 0.001)
    _, hold = reserve(budget)
    settle(budget, hold, Usage(input_tokens=900, output_tokens=100, cost=0.25), 5_000, complete=True)
    assert left(budget) == pytest.approx(10 - 0.0019 - 0.25)


def test_a_service_that_does_not_say_what_was_used_is_charged_by_what_came(desk: Desk) -> None:
    """Nothing corrects these estimates, so 2,000 bytes in and 4,000 out are taken as 1.2 a token."""
    budget = desk.budget("10")
    for usage in (None, Usage()):
        before = left(budget)
        _, hold = reserve(budget)
        settle(budget, hold, usage, 4_000, complete=True)
        assert before - left(budget) == pytest.approx(0.001667 + 0.03334)
    assert reserve(budget)[1].input_tokens == 1_667  # from then on that is reserved as well


@pytest.mark.parametrize(
    ("said", "cost"),
    [
        (Usage(input_tokens=900), 0.0009 + 0.02),  # of the answer nothing
        (Usage(output_tokens=100), 0.001667 + 0.001),  # of the input nothing
        (Usage(input_tokens=900, output_tokens=100), 0.0009 + 0.001),
    ],
)
def test_what_a_service_says_was_nothing_although_it_came_is_estimated(desk: Desk, said: Usage, cost: float) -> None:
    budget = desk.budget("10")
    _, hold = reserve(budget)
    settle(budget, hold, said, 4_000)
    assert left(budget) == pytest.approx(10 - cost)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -5.0, "0.01", True, {}, 10**400])
def test_what_is_no_number_is_not_counted(desk: Desk, bad: Any) -> None:
    """I11: neither as a cost nor as a count; the estimate takes its place."""
    budget = desk.budget("10")
    _, hold = reserve(budget)
    settle(budget, hold, Usage(input_tokens=bad, output_tokens=bad, cost=bad), 4_000)
    assert left(budget) == pytest.approx(10 - 0.001667 - 0.03334)


def test_an_answer_that_was_cut_off_is_charged_by_what_came_where_that_is_more(desk: Desk) -> None:
    """A service tells the input when it begins, and the output when it ends."""
    budget = desk.budget("10")
    _, hold = reserve(budget)
    settle(budget, hold, Usage(input_tokens=900, output_tokens=1), 4_000, complete=False)
    assert left(budget) == pytest.approx(10 - 0.0009 - 0.02)


def test_the_cost_stated_at_the_beginning_of_an_answer_that_was_cut_off_is_not_all_of_it(desk: Desk) -> None:
    budget = desk.budget("10")
    _, hold = reserve(budget)
    settle(budget, hold, Usage(input_tokens=900, output_tokens=1, cost=0.000001), 4_000, complete=False)
    assert left(budget) == pytest.approx(10 - 0.0009 - 0.02)
    _, hold = reserve(budget)
    settle(budget, hold, Usage(input_tokens=900, output_tokens=1, cost=3.0), 4_000, complete=False)
    assert left(budget) == pytest.approx(10 - 0.0209 - 3.0)


def test_a_request_that_the_service_refused_costs_nothing(desk: Desk) -> None:
    budget = desk.budget("10")
    _, hold = reserve(budget)
    refused(budget, hold)
    assert left(budget) == pytest.approx(10)


def test_the_dearest_case_counts_the_writing_of_a_cache(desk: Desk) -> None:
    budget = desk.budget("10")
    reserve(budget, model="dear-cache")
    assert left(budget) == pytest.approx(10 - 0.002 - 0.5)


@pytest.mark.parametrize(
    ("longest", "asked", "limit"), [(None, None, 4_096), (2_000, None, 2_000), (None, 300, 300), (50_000, 1_500, 1_500)]
)
def test_the_limit_is_that_of_the_request_else_of_the_model_else_one_that_all_take(
    tmp_path: Path, longest: int | None, asked: int | None, limit: int
) -> None:
    request, _ = reserve(Desk(tmp_path, longest=longest).budget("10"), ASKED.replace(max_output_tokens=asked))
    assert request.max_output_tokens == limit


def test_with_little_left_answers_get_shorter(desk: Desk) -> None:
    """At 10 USD a million output tokens; an agent takes a quarter at most, but 8,192 tokens if they are there."""
    assert reserve(desk.budget("1"))[0].max_output_tokens == 24_600
    assert reserve(desk.budget("0.2"))[0].max_output_tokens == 8_192
    assert reserve(desk.budget("0.056"))[0].max_output_tokens == 4_000


def test_output_that_costs_nothing_is_not_limited_by_money(desk: Desk) -> None:
    assert reserve(desk.budget("1"), model="free-output")[0].max_output_tokens == 50_000


def test_near_the_end_only_a_last_answer_is_covered_and_then_nothing(desk: Desk) -> None:
    """0.026 is less than a round of 1,024 tokens and what is held back; a last answer has 1,000 tokens at most."""
    budget = desk.budget("0.026")
    request, hold = last(budget)
    assert request.max_output_tokens == 1_000
    settle(budget, hold, Usage(input_tokens=1_000, output_tokens=800), 0, complete=True)
    for again in (lambda: reserve(budget), lambda: run(budget.begin_last())):
        with pytest.raises(BudgetExceeded, match=r"ceiling of 0.026 USD is reached: 0.0090 USD .* higher --max-cost"):
            again()
    run(budget.reserve("local", "m2", ASKED))  # what costs nothing goes on


def test_where_not_even_the_last_answer_is_covered_it_ends_at_once(desk: Desk) -> None:
    budget = desk.budget("0.0035")  # 1,000 in and 250 out
    with pytest.raises(BudgetExceeded) as caught:
        last(budget)
    assert caught.value.exit_code == 3
    assert last(desk.budget("0.0036"))[0].max_output_tokens == 260


def test_the_last_request_may_be_sent_again_where_the_service_refuses_it(desk: Desk) -> None:
    budget = desk.budget("0.026")
    run(budget.begin_last())
    for _ in range(3):
        request, hold = reserve(budget)
        assert request.max_output_tokens == 1_000
        refused(budget, hold)


def test_an_agent_never_spends_more_than_the_ceiling(desk: Desk) -> None:
    """Every answer as long as it may be, every request longer than the one before."""
    budget = desk.budget("0.5")
    spent, text = 0.0, "xx"
    ended = False
    while not ended:
        asked = Request(system="", messages=(user(text),))
        try:
            request, hold = reserve(budget, asked)
        except BudgetExceeded:
            run(budget.begin_last())
            request, hold = reserve(budget, asked)
            ended = True
        fed, out = len(text) // 2, request.max_output_tokens or 0
        settle(budget, hold, Usage(input_tokens=fed, output_tokens=out), 2 * out, complete=True)
        spent += (fed + 10 * out) / 1_000_000
        assert budget.left()[1] == pytest.approx(0.5 - spent, abs=1e-5)
        text += "y" * (2 * out + 500)
    assert 0.4 < spent <= 0.5


def test_a_model_without_a_price_is_refused_with_what_to_write_where(desk: Desk) -> None:
    with pytest.raises(ConfigError) as caught:
        run(desk.budget("1").reserve("p", "new", ASKED))
    assert 'prices:\n  "p/new":\n    input: 3.0' in str(caught.value)


def test_what_the_error_says_to_write_works(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        run(desk.budget("1").reserve("p", "qwen/q:30b", ASKED))
    _, mark, lines = str(caught.value).partition("prices:\n")
    config, _ = settled(tmp_path, yaml=mark + lines)
    assert config.prices == {"p/qwen/q:30b": Price(input=3.0, output=15.0)}


def test_local_models_need_no_reservation(desk: Desk) -> None:
    budget = desk.budget("0")
    request, hold = reserve(budget, provider="local", model="any")
    assert request is ASKED
    settle(budget, hold, Usage(input_tokens=10**9), 0, complete=True)
    refused(budget, hold)
    assert budget.left() == (0.0, 0.0)


def test_estimates_learn_from_what_the_service_counts(desk: Desk) -> None:
    budget = desk.budget("10")
    _, hold = reserve(budget)
    settle(budget, hold, Usage(input_tokens=500, output_tokens=1), 0, complete=True)
    longer = Request(system="", messages=(*ASKED.messages, user("y" * 1_980)))
    assert reserve(budget, longer)[1].input_tokens == 1_500  # what was counted, and the rest at two bytes each
    assert reserve(budget, ASKED)[1].input_tokens == 500
    assert reserve(budget, ASKED, model="dear-cache")[1].input_tokens == 1_000  # each model counts for itself


def test_everything_that_is_sent_counts(desk: Desk) -> None:
    def tokens(**changes: Any) -> int:
        return reserve(desk.budget("10"), ASKED.replace(**changes))[1].input_tokens

    tool: ToolSpec = spec("a_tool").replace(description="d" * 2_000)
    picture = Message(role="user", content=(Text(text=""), Image(media_type="image/png", data="A" * 400_000)))
    assert tokens(system="s" * 2_000) == 2_000
    assert 2_000 < tokens(tools=(tool,)) < 2_100
    assert tokens(messages=(picture,)) == 5_010
    assert tokens(messages=(user("語" * 660),)) == 1_000


def test_a_child_spends_out_of_the_same_ceiling(desk: Desk) -> None:
    parent = desk.budget("1")
    child = desk.child(parent)
    _, hold = reserve(child)
    settle(child, hold, Usage(cost=0.75, input_tokens=1), 0, complete=True)
    assert left(desk.child(child)) == pytest.approx(1 - 0.75 - 0.015)  # what the child holds back is not left to others
    run(child.aclose())
    assert left(parent) == pytest.approx(0.25)
    assert parent.left()[0] == 1.0


def test_a_child_may_have_a_lower_ceiling_and_not_a_higher_one(desk: Desk) -> None:
    parent = desk.budget("1")
    lower = desk.child(parent, "--max-cost", "0.25")
    assert lower.left() == (0.25, 0.25)
    assert desk.child(parent, "--max-cost", "5").left() == (1.0, 1.0)
    assert desk.child(lower, "--max-cost", "0.5").left() == (0.25, 0.25)
    _, hold = reserve(parent)
    settle(parent, hold, Usage(cost=0.9), 0, complete=True)
    assert lower.left()[1] == pytest.approx(0.1 - 0.015)


def test_the_ledger_goes_with_the_agent_that_began_it(desk: Desk, tmp_path: Path) -> None:
    parent = desk.budget("1")
    child = desk.child(parent)
    reserve(parent)
    (path,) = tmp_path.rglob("ledgers/*.jsonl")
    reserve(child)
    run(child.aclose())
    assert path.exists()
    run(parent.aclose())
    assert not path.exists()
    run(parent.aclose())
    with pytest.raises(ConfigError, match="MARVIN_LEDGER"):
        reserve(desk.budget("1", env={"MARVIN_LEDGER": str(path)}))
    with pytest.raises(BudgetExceeded, match="The run stops to avoid costs that are not recorded; start it again"):
        reserve(child)


def test_an_agent_waits_for_what_requests_of_others_may_set_free(desk: Desk) -> None:
    parent = desk.budget("0.1")
    child = desk.child(parent)

    async def go() -> tuple[Request, Reservation]:
        _, hold = await parent.reserve("p", "m", ASKED)
        waiting = asyncio.ensure_future(child.reserve("p", "m", ASKED))
        while not desk.warnings:  # noqa: ASYNC110  # it is told of by the other agent
            await asyncio.sleep(0.001)
        assert not waiting.done()
        await parent.settle(hold, Usage(input_tokens=100, output_tokens=10), 0, complete=True)
        return await waiting

    assert run(go())[0].max_output_tokens
    assert desk.warnings == ["The rest of the cost ceiling is reserved by other agents. Waiting for their answers."]


def test_an_agent_does_not_wait_for_what_would_not_be_enough(desk: Desk) -> None:
    parent = desk.budget("0.1")
    reserve(parent)
    with pytest.raises(BudgetExceeded):
        run(desk.child(parent, "--max-cost", "0.02").reserve("p", "m", ASKED))


def test_an_agent_does_not_wait_for_others_without_end(desk: Desk) -> None:
    parent = desk.budget("0.1")
    child = desk.child(parent, ceiling=0.02)
    reserve(parent)
    with pytest.raises(BudgetExceeded):
        reserve(child)


def test_what_an_agent_holds_back_is_its_own_whatever_others_spend(desk: Desk) -> None:
    """So that each can sum up what it has done."""
    parent = desk.budget("0.06")
    _, hold = reserve(parent)
    settle(parent, hold, Usage(input_tokens=1_000, output_tokens=100), 0, complete=True)
    other = desk.child(parent, ceiling=0.02)
    for _ in range(9):
        try:
            request, hold = reserve(other)
        except BudgetExceeded:
            break
        used = Usage(input_tokens=1_000, output_tokens=request.max_output_tokens or 0)
        settle(other, hold, used, 0, complete=True)
    _, hold = last(other)
    settle(other, hold, Usage(input_tokens=1_000, output_tokens=1_000), 0, complete=True)
    assert last(parent)[0].max_output_tokens == 1_000


def test_a_cost_that_cannot_be_written_down_counts_with_its_worst_case(desk: Desk, tmp_path: Path) -> None:
    budget = desk.budget("1")
    _, hold = reserve(budget)
    (path,) = tmp_path.rglob("ledgers/*.jsonl")
    moved = path.rename(tmp_path / "moved")
    settle(budget, hold, Usage(input_tokens=1), 0, complete=True)
    assert "The cost of a request could not be recorded, so its maximum cost is counted" in desk.warnings[0]
    moved.rename(path)
    assert left(budget) < 0.8


def bounded(budget: Budget, *script: Delta | BaseException) -> BudgetedProvider:
    return BudgetedProvider(Script(script, name="p", model="m"), budget)


async def read(provider: BudgetedProvider, until: int = 99, taken: list[Delta] | None = None) -> None:
    """Take so many pieces of an answer, and leave."""
    taken = [] if taken is None else taken
    async with aclosing(provider.stream(ASKED)) as deltas:  # type: ignore[type-var]
        async for delta in deltas:
            taken.append(delta)
            if len(taken) == until:
                return


SAID = TextDelta(text="x" * 4_000)
SPENT = [
    ([SAID, UsageDelta(usage=Usage(input_tokens=900, output_tokens=500)), Stop(reason="stop")], 0.0009 + 0.005),
    ([SAID, Stop(reason="stop")], 0.001667 + 0.03334),
    ([RateLimited("wait"), SAID], 0.0),
    ([UsageDelta(usage=Usage(input_tokens=900)), SAID, Overloaded("gone")], 0.0009 + 0.02),
    ([SAID, StreamBroken("gone")], 0.001 + 0.02),
    ([StreamBroken("nothing of it can be read")], 0.001 + 0.01),  # as long as the shortest last answer
    ([Unreachable("no connection")], 0.0),
    ([Unreachable("no byte in 900 s", sent=True)], 0.001 + 0.5),  # nobody knows how long it thought: all of it
    ([Overloaded("busy", status=503)], 0.0),
    ([Overloaded("the service behind did not answer in time", status=504)], 0.001 + 0.01),
    ([Overloaded("said inside of an answer")], 0.001 + 0.01),
    ([CallDelta(key=0, name="tool", arguments="y" * 3_996), StreamBroken("gone")], 0.001 + 0.02),
]


@pytest.mark.parametrize(("script", "cost"), SPENT)
def test_each_answer_is_settled_however_it_ends(desk: Desk, script: list[Any], cost: float) -> None:
    """I11: nothing stays reserved, and what the service may have billed is counted."""
    budget = desk.budget("10")
    with contextlib.suppress(ProviderError):
        run(read(bounded(budget, *script)))
    assert left(budget) == pytest.approx(10 - cost)


def test_an_answer_that_is_left_in_the_middle_is_settled_with_what_came(desk: Desk) -> None:
    budget = desk.budget("10")
    run(read(bounded(budget, SAID, SAID, SAID, Stop(reason="stop")), until=2))
    assert left(budget) == pytest.approx(10 - 0.001 - 0.04)


def test_a_cancelled_answer_is_settled_with_what_came(desk: Desk) -> None:
    budget = desk.budget("10")

    async def go() -> None:
        taken: list[Delta] = []
        reading = asyncio.ensure_future(read(bounded(budget, SAID, Hang()), taken=taken))
        await until(lambda: bool(taken))
        reading.cancel()
        await asyncio.wait([reading])

    run(go())
    assert left(budget) == pytest.approx(10 - 0.001 - 0.02)


def test_the_service_is_asked_for_no_more_than_what_is_reserved(desk: Desk) -> None:
    provider = Script([SAID, Stop(reason="stop")], name="p", model="m", context_window=5, max_tools=6)
    wrapped = BudgetedProvider(provider, desk.budget("0.2"))
    assert (wrapped.name, wrapped.model, wrapped.context_window, wrapped.max_tools) == ("p", "m", 5, 6)
    run(read(wrapped))
    assert provider.requests[0].max_output_tokens == 8_192
    run(wrapped.aclose())
    assert provider.closed


def test_a_ledger_that_cannot_be_begun_ends_the_run(desk: Desk, tmp_path: Path) -> None:
    settled(tmp_path)
    (tmp_path / "home" / "marvin" / "data").write_text("in the way")
    with pytest.raises(ConfigError, match=r"--max-cost needs a ledger in .*/data/ledgers"):
        reserve(desk.budget("1"))


def encrypted(provider: str, size: int) -> Message:
    data = ProviderData(provider=provider, data={"items": [{"type": "reasoning", "encrypted_content": "A" * size}]})
    return Message(role="assistant", content=(Thinking(text="", provider_data=data), Text(text="Hello.")))


@pytest.mark.parametrize("kind", ["thinking", "text", "call"])
def test_what_goes_back_to_its_service_word_for_word_counts(desk: Desk, kind: str) -> None:
    """120 KB of encrypted reasoning are some ten thousand tokens."""
    data = ProviderData(provider="p", data={"signature": "A" * 120_000})
    blocks: dict[str, Block] = {
        "thinking": Thinking(text="", provider_data=data),
        "text": Text(text="", provider_data=data),
        "call": ToolCall(id="c", name="look", arguments="{}", provider_data=data),
    }
    asked = ASKED.replace(messages=(*ASKED.messages, Message(role="assistant", content=(blocks[kind],))))
    budget = desk.budget("10")
    assert reserve(budget, asked)[1].input_tokens > 60_000
    assert reserve(budget, asked, provider="q")[1].input_tokens < 1_100  # it goes to no other


def test_a_request_with_encrypted_reasoning_is_refused_where_it_is_not_covered(desk: Desk) -> None:
    with pytest.raises(BudgetExceeded):
        reserve(desk.budget("0.05"), ASKED.replace(messages=(encrypted("p", 120_000),)))


def test_each_message_is_measured_once(desk: Desk) -> None:
    """Estimating is linear in what was added since the last request."""
    estimate = InputEstimate()
    messages = tuple(user("x" * 100) for _ in range(2_000))
    first = estimate.size("p", Request(system="", messages=messages))
    broken = Request(system="", messages=messages[:-1])
    assert estimate.size("p", broken) == first - 120
    for message in messages:
        message.__dict__["content"] = None  # who looked at it again would fail
    assert estimate.size("p", broken) == first - 120
    twice = Request(system="", messages=(messages[0], messages[0]))
    assert estimate.size("p", twice) == 240


@given(st.lists(st.integers(1, 40_000), min_size=1, max_size=12), st.floats(0.5, 6.0))
def test_once_counted_the_estimate_is_no_lower_than_the_count(sizes: list[int], density: float) -> None:
    """Whatever the bytes of a token are, as long as they stay as they are."""
    estimate = InputEstimate()
    total = 5_000
    estimate.learn("p", "m", total, math.ceil(total / density))
    for size in sizes:
        total += size
        counted = math.ceil(total / density)
        assert estimate.tokens("p", "m", total) >= counted - 1
        estimate.learn("p", "m", total, counted)


class Endless(Script):
    """A service that ignores its limit."""

    sent = 0

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        self.requests.append(request)
        while True:
            self.sent += 1
            yield TextDelta(text="word " * 200)


class NoLimit(Script):
    """A service that takes no limit."""

    unlimited = True


def test_an_answer_beyond_its_limit_is_stopped(desk: Desk) -> None:
    """It ends as one that is cut off at its limit, and is charged with what came."""
    budget = desk.budget("0.2")
    taken: list[Delta] = []
    run(read(BudgetedProvider(Endless(name="p", model="m"), budget), until=10**6, taken=taken))
    assert taken[-1] == Stop(reason="length")
    assert len(taken) == 8_192 * 4 // 1_000 + 2
    assert left(budget) < 0.05
    _, hold = reserve(desk.budget("10"), ASKED)
    assert hold.most_bytes == hold.output * 4


def test_a_service_that_ignored_its_limit_is_stopped_sooner_from_then_on(desk: Desk) -> None:
    budget = desk.budget("10")
    _, hold = reserve(budget, ASKED.replace(max_output_tokens=1_000))
    settle(budget, hold, Usage(input_tokens=900, output_tokens=4_000), 14_000)
    _, hold = reserve(budget, ASKED.replace(max_output_tokens=1_000))
    assert hold.most_bytes == 2_000


def test_where_no_limit_is_taken_the_longest_answer_is_reserved_or_nothing_is_sent(desk: Desk) -> None:
    """Codex and Copilot: the request cannot say how long the answer may be."""
    used = Usage(input_tokens=900, output_tokens=50_000)
    script: list[Delta] = [SAID, UsageDelta(usage=used), Stop(reason="stop")]
    provider = NoLimit(script, name="p", model="m")
    budget = desk.budget("0.51")
    run(read(BudgetedProvider(BudgetedProvider(provider, budget), desk.budget("1"))))
    assert left(budget) == pytest.approx(0.51 - 0.0009 - 0.5)
    poor = desk.budget("0.5")
    with pytest.raises(BudgetExceeded, match=r"p accepts no limit .* 50,000 tokens, 0\.50 USD"):
        run(read(BudgetedProvider(NoLimit(script, name="p", model="m"), poor)))
    assert left(poor) == 0.5


def test_what_the_services_say_of_limits() -> None:
    assert isinstance(Codex, type)
    assert Codex.unlimited
    assert Copilot.unlimited


def test_settling_does_not_hold_up_the_loop_and_is_done_though_cancelled(desk: Desk, tmp_path: Path) -> None:
    """The ledger is locked by another process meanwhile, here by another descriptor."""
    budget = desk.budget("10", lock=40.0)
    _, hold = reserve(budget)
    (path,) = tmp_path.rglob("ledgers/*.jsonl")

    async def go() -> None:
        descriptor = os.open(path, os.O_RDWR)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        settling = asyncio.ensure_future(
            budget.settle(hold, Usage(input_tokens=900, output_tokens=100), 0, complete=True)
        )
        waiting = asyncio.ensure_future(budget.reserve("p", "m", ASKED))
        for _ in range(20):
            await asyncio.sleep(0)  # the loop goes on
        assert not settling.done()
        settling.cancel()
        waiting.cancel()
        await asyncio.wait([settling, waiting])
        os.close(descriptor)
        # What the cancelled one reserved is given back a little later.
        await until(lambda: not budget._settling and budget.left()[1] == pytest.approx(10 - 0.0019))
        await budget.aclose()

    run(go())


def test_what_a_cancelled_attempt_reserves_is_given_back(desk: Desk, tmp_path: Path) -> None:
    budget = desk.budget("10", lock=40.0)
    child = desk.child(budget)
    reserve(budget)
    (path,) = tmp_path.rglob("ledgers/*.jsonl")

    async def go() -> None:
        descriptor = os.open(path, os.O_RDWR)
        asking = asyncio.ensure_future(child.reserve("p", "m", ASKED))
        await asyncio.sleep(0)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        asking.cancel()
        await asyncio.wait([asking])
        os.close(descriptor)
        before = budget.ledger.balance()
        await until(lambda: not child._settling and budget.ledger.balance().left >= before.left)
        await child.aclose()

    run(go())
    assert left(budget) == pytest.approx(10 - 0.001 - 0.5)


def test_a_session_that_goes_on_goes_on_with_what_it_cost(desk: Desk) -> None:
    budget = desk.budget("0.3")
    budget.carry("s", 0.25)
    assert left(budget) == pytest.approx(0.05)
    assert budget.spent() == 0.0
    with pytest.raises(BudgetExceeded, match=r"0\.2500 USD are spent, 0\.2500 of them by earlier runs"):
        reserve(budget, ASKED.replace(messages=(user("x" * 200_000),)))
    child = desk.child(budget)
    child.carry("s", 5.0)  # its parent's ledger is not that of its session
    assert left(child) == pytest.approx(0.05)
    assert child.spent() is None


def test_what_was_counted_of_a_session_is_not_counted_again(desk: Desk) -> None:
    """A chat may go from one session to another and back, while other processes go on with both."""
    budget = desk.budget("10")
    budget.carry("a", 1.0)
    budget.carry("a", 1.0)
    budget.carry("b", 0.5)
    assert left(budget) == pytest.approx(8.5)
    _, hold = reserve(budget)
    settle(budget, hold, Usage(input_tokens=1_000, output_tokens=100), 0)
    spent = budget.spent()
    assert spent
    budget.work_for("a", spent, 1.0 + spent)
    before = left(budget)
    budget.carry("a", 1.0 + spent)
    assert left(budget) == before
    budget.carry("a", 1.5 + spent)
    assert left(budget) == pytest.approx(before - 0.5)
    assert budget.spent() == spent


NO_WAIT: dict[str, Any] = {"ceiling": 0.0}
FATES = st.sampled_from(["exact", "late", "nothing", "no output", "cut", "lost", "silent", "refused"])
STEP = st.tuples(st.integers(0, 2), FATES, st.integers(100, 30_000), st.floats(0.0, 1.0))


@given(st.lists(STEP, max_size=25), st.floats(2.0, 6.0), st.floats(0.05, 1.0))
@examples(40)
def test_whatever_becomes_of_requests_their_bills_stay_within_the_ceiling(
    steps: list[tuple[int, str, int, float]], density: float, dollars: float
) -> None:
    """I11: of three agents, by the bill of the service: what it read and what it made, also where it says nothing."""
    with TemporaryDirectory() as folder:
        desk = Desk(Path(folder))
        parent = desk.under("--max-cost", f"{dollars:.6f}", **NO_WAIT)
        agents = [parent, desk.child(parent, **NO_WAIT), desk.child(parent, **NO_WAIT)]
        billed = run(served(agents, steps, density))
        assert billed <= dollars * 1.05
        assert left(parent) <= dollars * 1.05 - billed
        run(parent.aclose())


async def served(agents: list[Budget], steps: list[tuple[int, str, int, float]], density: float) -> float:
    """What a service bills for these requests; how much of each answer it makes is part of its step."""
    billed = 0.0
    for number, fate, size, part in steps:
        budget = agents[number]
        try:
            request, hold = await budget.reserve("p", "m", Request(system="x" * size, messages=()))
        except BudgetExceeded:
            continue
        fed, out = math.ceil(size / density), math.floor((request.max_output_tokens or 0) * part)
        if fate == "lost":
            out = min(out, 1_000)  # no longer than what is taken for the shortest of answers
        came = 0 if fate in ("lost", "silent") else math.floor(out * density)
        usage = {
            "exact": Usage(input_tokens=fed, output_tokens=out),
            "late": Usage(input_tokens=fed, output_tokens=out),
            "no output": Usage(input_tokens=fed),
            "cut": Usage(input_tokens=fed, output_tokens=1),
        }.get(fate)
        if fate == "refused":
            await budget.refused(hold)
            continue
        done = fate in ("exact", "late", "nothing", "no output")
        await budget.settle(hold, usage, came, complete=done, silent=fate == "silent")
        billed += (fed + 10 * out) / 1_000_000
    return billed
