"""The cost ceiling of a run and of the agents below it (`--max-cost`): reserved before a request, settled after."""

from __future__ import annotations

import asyncio
import json
import math
import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ..api.errors import BudgetExceeded, ConfigError, MarvinError
from ..api.messages import Usage
from ..api.models import Reservation
from ..api.providers import Request
from ..api.timeouts import Timeouts
from ..util.numbers import sound
from ..util.threads import in_thread
from .estimates import BYTES_PER_TOKEN, InputEstimate
from .ledger import Balance, Ledger
from .wanted import Rate, Taken, Wanted

if TYPE_CHECKING:
    from ..api.config import Config
    from .prices import Prices

_MICRO = 1_000_000
_LEAST_OUTPUT = 1_024
"""Tokens below which a round is not begun: an answer that is cut off inside a call is paid for and useless."""
_LAST_OUTPUT = 1_000
"""Tokens that are held back for the last answer."""
_LEAST_LAST_OUTPUT = 256
_GROWTH = 4_000
"""Tokens by which the input of the last request may have grown since that of the round before."""
_USUAL_OUTPUT = 8_192
"""An agent leaves three quarters of the money to others, unless its answer could then not be as long as this."""
_ROUNDING = 1e-6
_UNKNOWN_LIMIT = 4_096
"""The output limit that is set where that of the model is not known: every service takes it."""
_UNKNOWN_LONGEST = 128_000
"""The longest answer of a model of which that is not known, where the service takes no limit."""
_USUAL_BYTES_PER_TOKEN = 4
"""Of an answer, in prose: one that has so many for each token of its limit is at its end, or beyond it."""


class Budget:
    """What may still be spent.

    The ledger is opened when it is first needed. `longest` tells the output limit of a provider's model, in tokens,
    None where it is not known. `warn` is told in one line of what keeps the agent waiting. What waits for the
    ledger's lock does so in threads.
    """

    def __init__(
        self,
        open_ledger: Callable[[], Ledger],
        prices: Prices,
        longest: Callable[[str, str], int | None],
        timeouts: Timeouts,
        warn: Callable[[str], None],
    ) -> None:
        self._open_ledger = open_ledger
        self._opened: Ledger | None = None
        self._prices = prices
        self._longest = longest
        self._timeouts = timeouts
        self.warn = warn
        self.within = False
        """Whether it is for a part of the run, as play mode is."""
        self._kept = ""
        self._last = self._closed = False
        self._input = InputEstimate()
        self._longest_answer = _LAST_OUTPUT
        self._unbound: set[tuple[str, str]] = set()
        self._earlier = 0
        self._counted: dict[str, int] = {}
        """By session, how much of what its file says that it cost is in the ledger."""
        self._standing: Balance | None = None
        self._taking = threading.Lock()
        self._settling: set[asyncio.Future[None]] = set()

    @property
    def ledger(self) -> Ledger:
        """The ledger, opened when it is first needed."""
        if self._opened is None:
            self._opened = self._open_ledger()
        return self._opened

    async def reserve(
        self, provider: str, model: str, request: Request, *, limited: bool = True
    ) -> tuple[Request, Reservation]:
        """Reserve what a request may cost, and hold back what a last answer would.

        Between `begin_last` and `end_last` a request may use what was held back instead.

        Args:
            limited: whether the service takes an output limit. Where it does not, the longest answer of the model is
                reserved, and nothing is held back.

        Returns:
            The request with an output limit that the money covers, and what `settle` is to be given.

        Raises:
            ConfigError: where the price of the model is not known, or the inherited ledger is none.
            BudgetExceeded: where the request is not covered.
        """
        size = self._input.size(provider, request)
        tokens = self._input.tokens(provider, model, size)
        rate, later = await in_thread(
            lambda: (self._rate(provider, model, tokens), self._rate(provider, model, tokens + _GROWTH))
        )
        hold = Reservation(provider=provider, model=model, size=size, input_tokens=tokens)
        if rate.input == 0 and rate.output == 0:
            return request, hold
        wanted = self._wanted(hold, request, rate, later, limited)
        taken = None if self._closed else await self._take(wanted)
        if taken is None:
            raise await self.reached("" if limited else _unlimited(hold, wanted))
        return request.replace(max_output_tokens=taken.output), hold.replace(
            key=taken.key, amount=taken.amount, output=taken.output, most_bytes=self._most_bytes(hold, taken.output)
        )

    def _wanted(self, hold: Reservation, request: Request, rate: Rate, later: Rate, limited: bool) -> Wanted:
        """What a request needs; `later` is the rate of the last answer, which is held back for it."""
        known = self._longest(hold.provider, hold.model)
        if not limited:
            longest = known or _UNKNOWN_LONGEST
            return Wanted(rate=rate, least=longest, most=longest, keep=0)
        limit = request.max_output_tokens or known or _UNKNOWN_LIMIT
        usual = min(limit, _LAST_OUTPUT)
        if self._last:
            return Wanted(rate=rate, least=min(limit, _LEAST_LAST_OUTPUT), most=usual, keep=0)
        keep = later.input + math.ceil(usual * later.output)
        return Wanted(rate=rate, least=min(limit, _LEAST_OUTPUT), most=limit, keep=keep)

    def _most_bytes(self, hold: Reservation, output: int) -> int:
        """The bytes from which on an answer is longer than what is reserved for it."""
        # One that ignored its limit before is stopped where the estimate says that the money is spent.
        unbound = (hold.provider, hold.model) in self._unbound
        return output * (BYTES_PER_TOKEN if unbound else _USUAL_BYTES_PER_TOKEN)

    async def _take(self, wanted: Wanted) -> Taken | None:
        """Reserve the input and as much output as there may be; waits for what others may set free."""
        waited = 0.0
        while True:
            found = await self._attempt(wanted)
            if not isinstance(found, bool):
                return found
            if not found or waited >= self._timeouts.ceiling:
                return None
            if not waited:
                self.warn("The rest of the cost ceiling is reserved by other agents. Waiting for their answers.")
            await asyncio.sleep(self._timeouts.ceiling_poll)
            waited += self._timeouts.ceiling_poll

    async def _attempt(self, wanted: Wanted) -> Taken | bool:
        """As `_reserved`; what a cancelled attempt reserves all the same is given back."""
        attempt = asyncio.ensure_future(in_thread(lambda: self._reserved(wanted)))
        try:
            return await asyncio.shield(attempt)
        except asyncio.CancelledError:
            attempt.add_done_callback(self._give_back)
            raise

    def _give_back(self, attempt: asyncio.Future[Taken | bool]) -> None:
        if not attempt.cancelled() and attempt.exception() is None:
            taken = attempt.result()
            if not isinstance(taken, bool):
                _ = self._settle_later(taken.key, 0)

    def _reserved(self, wanted: Wanted) -> Taken | bool:
        """What could be reserved; else whether there might be enough once others have their answers. Blocks."""
        rate, keep, least = wanted.rate, wanted.keep, wanted.least
        with self._taking:
            while True:
                self._standing = balance = self.ledger.balance(self._kept)
                spare = balance.left - rate.input - keep
                share = max(spare / 4, _USUAL_OUTPUT * rate.output, least * rate.output)
                most = wanted.most
                output = min(most, math.floor(min(spare, share) / rate.output + _ROUNDING)) if rate.output else most
                if spare < 0 or output < least:
                    return balance.possible >= rate.input + keep + least * rate.output
                amount = rate.input + math.ceil(output * rate.output - _ROUNDING)
                taken = self.ledger.reserve(amount, keep, self._kept)
                if taken is not None:  # else another agent was faster
                    key, self._kept = taken
                    return Taken(output=output, amount=amount, key=key)

    async def settle(
        self, hold: Reservation, usage: Usage | None, came: int, *, complete: bool, silent: bool = False
    ) -> None:
        """Count what a request came to, as soon as that is known. It is also done where the waiting is cancelled.

        Args:
            usage: what the service says; None where it said nothing.
            came: the bytes of the answer that came, thinking and calls among them.
            complete: whether the answer came to its end. Of one that did not, the service bills what it
                streamed: that is estimated where it is more than what the service said until then.
            silent: the service took the request and said nothing until it was given up; what it did is unknown.
        """
        usage = sound(usage or Usage())
        if usage.input_tokens:
            self._input.learn(hold.provider, hold.model, hold.size, usage.input_tokens)
        if not hold.key:
            return
        if usage.output_tokens > hold.output or came > 2 * hold.most_bytes:
            self._unbound.add((hold.provider, hold.model))
        amount = hold.amount if silent else math.ceil(self._cost(hold, usage, came, complete) * _MICRO)
        await asyncio.shield(self._settle_later(hold.key, amount))

    async def refused(self, hold: Reservation) -> None:
        """The service answered a request with an error, for which nobody pays."""
        if hold.key:
            await asyncio.shield(self._settle_later(hold.key, 0))

    def _settle_later(self, key: str, amount: int) -> asyncio.Task[None]:
        settling = asyncio.create_task(self._settled(key, amount))
        self._settling.add(settling)
        settling.add_done_callback(self._settling.discard)
        return settling

    async def _settled(self, key: str, amount: int) -> None:
        try:
            await in_thread(lambda: self._settle(key, amount))
        except MarvinError as error:
            self.warn(f"The cost of a request could not be recorded, so its maximum cost is counted. {error}")

    def _settle(self, key: str, amount: int) -> None:
        self.ledger.settle(key, amount)
        self._standing = self.ledger.balance(self._kept)

    def _cost(self, hold: Reservation, usage: Usage, came: int, complete: bool) -> float:
        if usage.cost is not None:
            return usage.cost
        provider, model, fed, output = hold.provider, hold.model, usage.input_tokens, usage.output_tokens
        if not fed:
            fed = self._input.unsaid(provider, model, hold.size, hold.input_tokens) if complete else hold.input_tokens
        self._longest_answer = max(self._longest_answer, output)
        if not complete or not output:
            estimated = self._input.answer(provider, model, came)
            if not came and not complete:  # what was not delivered may have been as long as any other
                estimated = min(self._longest_answer, hold.output)
            output = max(output, estimated)
        billed = usage.replace(input_tokens=fed, output_tokens=output)
        return self._prices.cost(provider, model, billed) or 0.0

    def _rate(self, provider: str, model: str, tokens: int) -> Rate:
        """Raises `ConfigError` where the price is not known."""
        fed = self._prices.worst(provider, model, tokens, 0)
        both = self._prices.worst(provider, model, tokens, _MICRO)
        if fed is None or both is None:
            raise ConfigError(_unpriced(provider, model))
        return Rate(input=math.ceil(fed * _MICRO), output=both - fed)

    async def begin_last(self) -> None:
        """From here on a request is the last one: it may use what was held back for it.

        Raises:
            BudgetExceeded: where the last one was sent already.
        """
        if self._closed:
            raise await self.reached()
        self._last = True

    def end_last(self) -> None:
        """The last request was sent: from here on there is none but those that cost nothing."""
        self._last = False
        self._closed = True

    async def reached(self, why: str = "") -> BudgetExceeded:
        """The error that says that the ceiling is reached, how it stands, and how to go on.

        Args:
            why: a sentence on what the next request would need.
        """
        balance = await in_thread(lambda: self.ledger.balance(self._kept))
        ceiling, spent = balance.ceiling / _MICRO, balance.spent / _MICRO
        earlier = f", {self._earlier / _MICRO:.4f} of them by earlier runs of this session" if self._earlier else ""
        told = (
            f"The cost ceiling of {ceiling:.4g} USD is reached: {spent:.4f} USD are spent{earlier}, and the rest "
            f"does not cover another request. {why}To continue, start Marvin with --continue and a higher --max-cost."
        )
        return BudgetExceeded(told, within=self.within)

    def left(self) -> tuple[float, float]:
        """The ceiling and what is left of it, in USD; what other agents have reserved is not left. Blocks."""
        balance = self.ledger.balance(self._kept)
        return balance.ceiling / _MICRO, max(balance.left, 0) / _MICRO

    @property
    def standing(self) -> tuple[float, float] | None:
        """As `left`, by the last look at the ledger, which costs nothing; None before the first one."""
        balance = self._standing
        return None if balance is None else (balance.ceiling / _MICRO, max(balance.left, 0) / _MICRO)

    def carry(self, session: str, dollars: float) -> None:
        """Count what a session cost that is gone on with, as far as this run has not counted it yet.

        It is for the agent that began the ledger, and blocks.
        """
        amount = math.ceil(dollars * _MICRO) - self._counted.get(session, 0)
        if amount > 0 and self.ledger.owned:
            self.ledger.settle(f"earlier-{os.urandom(8).hex()}", amount)
            self._earlier += amount
            self._counted[session] = self._counted.get(session, 0) + amount

    def work_for(self, session: str, written: float, cost: float) -> None:
        """Note the session that the money is spent for. Blocks.

        Args:
            written: how much of what this run spent stands in the files of sessions, in USD.
            cost: what the session's own file says that it cost, in USD: all of it is counted by now.
        """
        if self.ledger.owned:
            self.ledger.work_for(session, self._earlier + round(written * _MICRO))
            self._counted[session] = max(self._counted.get(session, 0), math.ceil(cost * _MICRO))

    def left_behind(self, session: str) -> float:
        """What killed runs of a session spent that its file does not have, in USD: told once, and blocks."""
        return self.ledger.left_behind(session) / _MICRO if self.ledger.owned else 0.0

    def spent(self) -> float | None:
        """What this run and the agents below it cost so far, in USD; None where a parent counts that. Blocks."""
        if not self.ledger.owned:
            return None
        return max(self.ledger.balance().spent - self._earlier, 0) / _MICRO

    def child_environment(self) -> Mapping[str, str]:
        """The variables that put a child under this ceiling."""
        ceiling = self.ledger.ceiling() / _MICRO
        return {"MARVIN_LEDGER": self.ledger.address, "MARVIN_MAX_COST": f"{ceiling:.6f}"}

    async def aclose(self) -> None:
        """Give back what was held back; the agent that began the ledger removes it.

        Raises:
            BudgetExceeded: where the ledger cannot be written.
        """
        if self._settling:
            await asyncio.wait(self._settling)
        if self._opened is not None:
            opened, kept = self._opened, self._kept
            if opened.owned:
                await in_thread(opened.remove)
            elif kept:
                await in_thread(lambda: opened.settle(kept, 0))
        self._kept = ""


def budget_of(
    config: Config, prices: Prices, longest: Callable[[str, str], int | None], warn: Callable[[str], None]
) -> Budget:
    """The budget of the ceiling and the ledger that a configuration names."""
    return Budget(lambda: _open(config), prices, longest, config.timeouts, warn)


def _open(config: Config) -> Ledger:
    ceiling = None if config.max_cost is None else round(config.max_cost * _MICRO)
    if config.ledger:
        ledger = Ledger.inherit(config.ledger, config.timeouts)
        return ledger if ceiling is None or ceiling >= ledger.ceiling() else ledger.bounded(ceiling)
    folder = config.data_folder / "ledgers"
    try:
        return Ledger.create(folder, ceiling or 0, config.timeouts)
    except (OSError, BudgetExceeded) as error:
        raise ConfigError(f"--max-cost needs a ledger in {folder}, which cannot be written: {error}") from error


def _unlimited(hold: Reservation, wanted: Wanted) -> str:
    dollars = (wanted.rate.input + wanted.least * wanted.rate.output) / _MICRO
    return (
        f"{hold.provider} accepts no limit for the length of an answer, so the longest possible answer of "
        f"{hold.model} has to be covered: {wanted.least:,} tokens, {dollars:.2f} USD. "
    )


def _unpriced(provider: str, model: str) -> str:
    name = json.dumps(f"{provider}/{model}")
    return (
        f"The price of {provider}/{model} is unknown, so --max-cost cannot limit its cost. Leave --max-cost out, or "
        f"set the price of a million tokens in config.yaml, in USD:\nprices:\n  {name}:\n    input: 3.0\n    output: "
        "15.0"
    )
