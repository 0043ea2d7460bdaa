"""Continuing another model: when, which, how often, and what is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.errors import (
    AuthFailed,
    BadRequest,
    BudgetExceeded,
    ConfigError,
    ContextOverflow,
    MarvinError,
    ModelNotFound,
    Overloaded,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    Refused,
    StreamBroken,
    Unreachable,
)
from marvin_core.api.providers import Delta, Provider, Request, Retrying, Stop, Switched, TextDelta, ThinkingDelta
from marvin_core.providers.resilient import Resilient
from marvin_core.testing import ScriptedProvider
from tests.support.chatting import TIMEOUTS, request, text_of
from tests.support.engine import says
from tests.support.examples import examples

GOOD = says("Hi")


def provider(name: str, *script: Sequence[Delta | BaseException]) -> ScriptedProvider:
    return ScriptedProvider(*script, name=name, model=f"{name}-model")


class Chain:
    """Models that may go on, in their order, and whom the first one's successor was asked for."""

    def __init__(self, *others: Provider, larger: Provider | None = None, successor: Provider | None = None) -> None:
        self._others = others
        self._larger = larger
        self._successor = successor
        self.served: list[Sequence[str]] = []
        self.moves: list[Provider] = []
        self.loans: list[Provider] = []

    async def fallbacks(self, failed: Provider) -> AsyncIterator[Provider]:
        for other in self._others:
            yield other

    def larger(self, small: Provider) -> Provider | None:
        return self._larger if small is not self._larger else None

    def successor(self, gone: Provider, served: Sequence[str]) -> Provider | None:
        self.served.append(served)
        return self._successor

    def moved(self, provider: Provider) -> None:
        self.moves.append(provider)

    def lent(self, provider: Provider) -> None:
        self.loans.append(provider)


class Outcome:
    """What came of one prompt or more."""

    def __init__(
        self, *chain: ScriptedProvider, larger: ScriptedProvider | None = None, restarts: bool = False
    ) -> None:
        self.deltas: list[Delta] = []
        self.error: MarvinError | None = None
        self._chain = Chain(*chain[1:], larger=larger)
        self.resilient = Resilient(chain[0], TIMEOUTS, self._chain, self._chain, restarts=restarts)
        self.ask()

    def ask(self, asked: Request | None = None) -> None:
        """One more request of the same prompt."""
        asyncio.run(self._ask(asked or request()))

    async def _ask(self, asked: Request) -> None:
        try:
            async with aclosing(self.resilient.stream(asked)) as deltas:  # type: ignore[type-var]
                async for delta in deltas:
                    self.deltas.append(delta)
        except MarvinError as error:
            self.error = error

    @property
    def lent(self) -> list[Provider]:
        return self._chain.loans

    @property
    def moved(self) -> list[Provider]:
        return self._chain.moves

    @property
    def switches(self) -> list[str]:
        return [f"{d.previous} > {d.model}" for d in self.deltas if isinstance(d, Switched)]


@pytest.mark.parametrize(
    "failure",
    [AuthFailed("no"), Overloaded("busy"), Unreachable("gone"), QuotaExhausted("empty")],
    ids=lambda error: type(error).__name__,
)
def test_what_waiting_does_not_cure_goes_on_elsewhere_at_once(failure: ProviderError) -> None:
    first, second = provider("a", [failure]), provider("b", GOOD)
    seen = Outcome(first, second)
    assert seen.error is None
    assert seen.switches == ["a/a-model > b/b-model"]
    assert not any(isinstance(delta, Retrying) for delta in seen.deltas)
    assert text_of(seen.deltas) == "Hi"
    assert (seen.resilient.name, seen.resilient.model) == ("b", "b-model"), "what is used is counted as b's"
    told = next(delta.reason for delta in seen.deltas if isinstance(delta, Switched))
    assert told == f"a/a-model failed: {failure} b/b-model takes over"


@pytest.mark.parametrize("failure", [RateLimited("slow down"), StreamBroken("cut")], ids=lambda e: type(e).__name__)
def test_what_waiting_may_cure_is_waited_for_first(failure: ProviderError) -> None:
    first, second = provider("a", *[[failure]] * 4), provider("b", GOOD)
    seen = Outcome(first, second)
    assert seen.error is None
    assert len(first.requests) == 4
    assert [type(delta) for delta in seen.deltas if isinstance(delta, (Retrying, Switched))] == [Retrying] * 3 + [
        Switched
    ]


@pytest.mark.parametrize(
    "failure", [BadRequest("what?"), Refused("no"), ContextOverflow("too long")], ids=lambda e: type(e).__name__
)
def test_what_another_service_would_say_too_is_the_end(failure: ProviderError) -> None:
    seen = Outcome(provider("a", [failure]), provider("b", GOOD))
    assert seen.error is failure
    assert not seen.switches


def test_every_one_of_the_chain_is_asked_in_its_order_and_once_a_prompt() -> None:
    """Also in later requests of the prompt, which go at once to the one that stands in."""
    first = provider("a", [AuthFailed("no")])
    second = provider("b", GOOD, [Overloaded("busy")])
    third, fourth = provider("c", [Unreachable("gone")]), provider("d", GOOD, [QuotaExhausted("empty")])
    seen = Outcome(first, second, third, fourth)
    assert seen.switches == ["a/a-model > b/b-model"]
    seen.ask()
    assert seen.switches[1:] == ["b/b-model > c/c-model", "c/c-model > d/d-model"]
    assert seen.lent == [second, third, fourth]
    assert seen.moved == [], "the next prompt begins with the chosen one"
    seen.ask()
    assert isinstance(seen.error, QuotaExhausted), "the last failure is the end"
    assert [len(p.requests) for p in (first, second, third, fourth)] == [1, 2, 1, 2]


@pytest.mark.parametrize(
    "failure",
    [ModelNotFound("no such model"), BadRequest("what?"), ConfigError("no price")],
    ids=lambda error: type(error).__name__,
)
def test_one_that_cannot_stand_in_gives_way_to_the_next(failure: MarvinError) -> None:
    """What is a mistake of the user's where the chosen model says it, is none of one that nobody chose."""
    seen = Outcome(provider("a", [AuthFailed("no")]), provider("b", [failure]), provider("c", GOOD))
    assert seen.error is None
    assert seen.switches == ["a/a-model > b/b-model", "b/b-model > c/c-model"]
    assert Outcome(provider("a", [failure]), provider("b", GOOD)).error is failure


@pytest.mark.parametrize("failure", [Refused("no"), BudgetExceeded("spent")], ids=lambda error: type(error).__name__)
def test_what_ends_a_run_ends_it_in_the_middle_of_the_chain_as_well(failure: MarvinError) -> None:
    seen = Outcome(provider("a", [AuthFailed("no")]), provider("b", [failure]), provider("c", GOOD))
    assert seen.error is failure


@pytest.mark.parametrize("shown", [TextDelta(text="Half an"), ThinkingDelta(text="Hm")], ids=["text", "thinking"])
def test_after_something_was_shown_only_a_chat_begins_again(shown: Delta) -> None:
    """A text output cannot take back what it wrote; a chat says that another model begins anew."""
    cut = [shown, StreamBroken("cut")]
    seen = Outcome(provider("a", cut), provider("b", GOOD))
    assert isinstance(seen.error, StreamBroken)
    assert not seen.switches
    chat = Outcome(provider("a", cut), provider("b", GOOD), restarts=True)
    assert chat.error is None
    assert chat.switches == ["a/a-model > b/b-model"]
    assert chat.deltas[-1] == Stop(reason="stop")


def test_what_does_not_fit_goes_to_the_larger_model_and_stays_there() -> None:
    small = provider("a", [ContextOverflow("too long")])
    large = provider("a-large", GOOD, GOOD)
    seen = Outcome(small, larger=large)
    assert seen.error is None
    assert seen.switches == ["a/a-model > a-large/a-large-model"]
    assert seen.moved == [large]
    seen.ask()
    assert (len(small.requests), len(large.requests)) == (1, 2)


@pytest.mark.parametrize(
    ("served", "expected"),
    [
        (["a-2", "b"], "a/a-model is no longer served; a-2/a-2-model replaces it"),
        (
            ["a-model", "a-2"],
            "a/a-model is listed by its service, but this account may not use it; a-2/a-2-model replaces it",
        ),
    ],
)
def test_a_model_that_is_gone_or_refused_goes_to_its_successor(served: list[str], expected: str) -> None:
    gone = provider("a", [ModelNotFound("no such model", served=served)])
    successor = provider("a-2", GOOD)
    chain = Chain(successor=successor)
    resilient = Resilient(gone, TIMEOUTS, chain, chain)
    deltas: list[Delta] = []

    async def go() -> None:
        async with aclosing(resilient.stream(request())) as stream:  # type: ignore[type-var]
            deltas.extend([delta async for delta in stream])

    asyncio.run(go())
    assert (chain.served, chain.moves) == ([tuple(served)], [successor])
    told = next(delta.reason for delta in deltas if isinstance(delta, Switched))
    assert told == expected


def test_a_fallback_that_overflows_is_not_the_end_where_it_has_a_larger_one() -> None:
    large = provider("large", GOOD)
    seen = Outcome(provider("a", [AuthFailed("no")]), provider("b", [ContextOverflow("too long")]), larger=large)
    assert seen.error is None
    assert seen.switches == ["a/a-model > b/b-model", "b/b-model > large/large-model"]
    assert (seen.lent[-1], seen.moved) == (large, []), "it replaces the previous model, too"


def test_a_service_that_lists_a_model_and_refuses_it_is_not_asked_for_ever() -> None:
    """The successor that is named is the model itself, or the two take each other's place."""
    gone = ModelNotFound("no access", served=["a-model"])
    for successor in (provider("a", *[[gone]] * 9), provider("a-2", *[[gone]] * 9)):
        first = provider("a", *[[gone]] * 9)
        chain = Chain(successor=successor)
        resilient = Resilient(first, TIMEOUTS, chain, chain)

        async def go(resilient: Resilient = resilient) -> None:
            async with aclosing(resilient.stream(request())) as stream:  # type: ignore[type-var]
                async for _ in stream:
                    pass

        with pytest.raises(ModelNotFound):
            asyncio.run(go())
        assert len(first.requests) == 1
        assert len(successor.requests) == (successor.model != "a-model")


class Swapping(Chain):
    """Each of two models takes the other one for larger."""

    def __init__(self, *models: Provider) -> None:
        super().__init__()
        self._models = models

    def larger(self, small: Provider) -> Provider | None:
        return next(model for model in self._models if model is not small)


def test_two_models_that_outgrow_each_other_are_asked_once_each() -> None:
    small = provider("a", *[[ContextOverflow("too long")]] * 9)
    large = provider("a-large", *[[ContextOverflow("too long")]] * 9)
    chain = Swapping(small, large)
    resilient = Resilient(small, TIMEOUTS, chain, chain)

    async def go() -> None:
        async with aclosing(resilient.stream(request())) as stream:  # type: ignore[type-var]
            async for _ in stream:
                pass

    with pytest.raises(ContextOverflow):
        asyncio.run(go())
    assert (len(small.requests), len(large.requests)) == (1, 1)


def test_an_account_that_gets_less_than_the_model_takes_gains_nothing_by_a_larger_one() -> None:
    """As OpenAI's limit of tokens a minute: the conversation has to become shorter."""
    small = ScriptedProvider([ContextOverflow("too long", window=30_000)], name="a", model="m", context_window=400_000)
    seen = Outcome(small, larger=provider("large", GOOD))
    assert isinstance(seen.error, ContextOverflow)
    assert not seen.switches


@pytest.mark.parametrize("again", [0.0, None])
def test_at_once_is_no_pause(again: float | None) -> None:
    """A service that asks to come back at once is asked after the usual pause."""
    busy = [Overloaded("busy", retry_after=again)]
    deltas: list[Delta] = []

    async def go() -> None:
        resilient = Resilient(provider("a", busy, GOOD), TIMEOUTS.replace(retry_backoff=(0.05,)))
        async with aclosing(resilient.stream(request())) as stream:  # type: ignore[type-var]
            deltas.extend([delta async for delta in stream])

    asyncio.run(go())
    assert [delta.text for delta in deltas if isinstance(delta, Retrying)] == [
        "a is overloaded, trying again in 0.05 s (1 of 1)"
    ]


def test_an_overloaded_service_may_say_when_to_come_back() -> None:
    """Once it asks for longer than is waited for, that is the end at once."""
    for after, requests in ((0.03, 2), (3600.0, 1)):
        busy = provider("a", [Overloaded("busy", retry_after=after)], GOOD)
        seen = Outcome(busy)
        assert len(busy.requests) == requests
        assert (seen.error is None) == (requests == 2)


KINDS = (AuthFailed, BadRequest, ConfigError, ContextOverflow, ModelNotFound, Overloaded, QuotaExhausted, RateLimited)
MORE_KINDS = (*KINDS, Refused, StreamBroken, Unreachable)
NUMBERS = st.integers(0, 4)


class Anything(Chain):
    """Each model has any other for larger and for successor, and the chain names them in any order, some twice."""

    def __init__(self, models: Sequence[Provider], chain: Sequence[int], larger: Sequence[int], next_: Sequence[int]):
        super().__init__(*[models[number] for number in chain])
        self._models = list(models)
        self._of = {"larger": larger, "successor": next_}

    def larger(self, small: Provider) -> Provider | None:
        return self._models[self._of["larger"][self._models.index(small)]]

    def successor(self, gone: Provider, served: Sequence[str]) -> Provider | None:
        return self._models[self._of["successor"][self._models.index(gone)]]


@examples(200)
@given(
    failures=st.lists(st.lists(st.sampled_from([*MORE_KINDS, None]), min_size=1, max_size=5), min_size=5, max_size=5),
    chain=st.lists(NUMBERS, max_size=6),
    larger=st.lists(NUMBERS, min_size=5, max_size=5),
    successors=st.lists(NUMBERS, min_size=5, max_size=5),
    restarts=st.booleans(),
)
def test_whatever_fails_there_is_an_end(
    failures: list[list[type[MarvinError] | None]],
    chain: list[int],
    larger: list[int],
    successors: list[int],
    restarts: bool,
) -> None:
    """I22: no model is gone over to twice in a prompt, and none is asked more often than there are tries."""
    tries = len(TIMEOUTS.retry_backoff) + 1
    models = [
        provider(f"m{number}", *[GOOD if kind is None else [kind("failed")] for kind in (kinds * 20)])
        for number, kinds in enumerate(failures)
    ]
    others = Anything(models, chain, larger, successors)
    deltas: list[Delta] = []

    async def go() -> None:
        resilient = Resilient(models[0], TIMEOUTS, others, others, restarts=restarts)
        async with aclosing(resilient.stream(request())) as stream:  # type: ignore[type-var]
            async for delta in stream:
                deltas.append(delta)  # noqa: PERF401  # what came before an error stays

    try:
        asyncio.run(go())
    except MarvinError:
        pass
    else:
        assert deltas[-1] == Stop(reason="stop")
    switched = [delta.model for delta in deltas if isinstance(delta, Switched)]
    assert len(switched) == len(set(switched)) <= 4
    assert all(len(model.requests) <= tries for model in models)
