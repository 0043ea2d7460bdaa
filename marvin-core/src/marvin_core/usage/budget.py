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
"""The minimum output of a round, in tokens: an answer that is cut off inside a call is paid for and useless."""
_LAST_OUTPUT = 1_000
"""The tokens reserved for the last answer."""
_LEAST_LAST_OUTPUT = 256
_GROWTH = 4_000
"""The assumed growth of the input between two requests, in tokens, when the last answer is reserved."""
_USUAL_OUTPUT = 8_192
"""An agent leaves three quarters of the money to others, unless its answer would then be limited to fewer tokens."""
_ROUNDING = 1e-6
_UNKNOWN_LIMIT = 4_096
"""The output limit for a model whose own is unknown: every service accepts it."""
_UNKNOWN_LONGEST = 128_000
"""The longest answer of a model for which it is unknown, if the service accepts no limit."""
_USUAL_BYTES_PER_TOKEN = 4
"""The usual bytes of prose in a token: an answer with that many for each token of its limit has reached it."""


class Budget:
    """The money that may still be spent.

    The ledger is opened when it is first needed. `longest` returns the output limit of a provider's model in tokens,
    None if unknown. `warn` receives a line about anything that keeps the agent waiting. Waiting for the ledger's lock
    happens in threads.
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
        """Whether it covers a part of the run, as that of play mode does."""
        self._kept = ""
        self._last = self._closed = False
        self._input = InputEstimate()
        self._longest_answer = _LAST_OUTPUT
        self._unbound: set[tuple[str, str]] = set()
        self._earlier = 0
        self._counted: dict[str, int] = {}
        """For each session, the part of the cost in its file that is in the ledger."""
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
        """Reserve the cost of a request, and keep that of a last answer in reserve.

        Between `begin_last` and `end_last` a request may use that reserve.

        Args:
            limited: whether the service accepts an output limit. Otherwise the model's longest answer is reserved, and
                there is no reserve for a last one.

        Returns:
            The request with an output limit that the money covers, and the argument for `settle`.

        Raises:
            ConfigError: the price of the model is unknown, or the inherited ledger is invalid.
            BudgetExceeded: the money does not cover the request.
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
        """The cost of a request; `later` is the rate of the last answer, for which money is kept in reserve."""
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
        """The size in bytes from which on an answer exceeds its reservation."""
        # One that ignored its limit before is stopped where the estimate says that the money is spent.
        unbound = (hold.provider, hold.model) in self._unbound
        return output * (BYTES_PER_TOKEN if unbound else _USUAL_BYTES_PER_TOKEN)

    async def _take(self, wanted: Wanted) -> Taken | None:
        """Reserve the input and as much output as possible; waits for money that others may release."""
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
        """Like `_reserved`, but a cancelled attempt releases its reservation."""
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
        """The reservation; otherwise whether there might be enough after other agents have their answers. Blocks."""
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
        """Count the cost of a request as soon as it is known, also if the caller is cancelled.

        Args:
            usage: the service's report; None if there is none.
            came: the size of the received answer in bytes, with thinking and calls.
            complete: whether the answer is complete. A service bills the streamed part of an incomplete one: the
                estimate counts if it exceeds the reported usage.
            silent: the service accepted the request, and sent nothing until the timeout; its work is unknown.
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
        """The service answered a request with an error, which is free."""
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
        if usage.cost is not None and complete:
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
        # What is stated for an answer that broke off may be the cost of its beginning.
        return max(self._prices.cost(provider, model, billed) or 0.0, usage.cost or 0.0)

    def _rate(self, provider: str, model: str, tokens: int) -> Rate:
        """Raises `ConfigError` if the price is unknown."""
        fed = self._prices.worst(provider, model, tokens, 0)
        both = self._prices.worst(provider, model, tokens, _MICRO)
        if fed is None or both is None:
            raise ConfigError(_unpriced(provider, model))
        return Rate(input=math.ceil(fed * _MICRO), output=both - fed)

    async def begin_last(self) -> None:
        """From now on a request is the last one, and may use the reserve.

        Raises:
            BudgetExceeded: the last request was sent already.
        """
        if self._closed:
            raise await self.reached()
        self._last = True

    def end_last(self) -> None:
        """The last request was sent: from now on only free requests are allowed."""
        self._last = False
        self._closed = True

    async def reached(self, why: str = "") -> BudgetExceeded:
        """The error for a reached ceiling: the amounts, and how to continue.

        Args:
            why: a sentence on the needs of the next request.
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
        """The ceiling and the rest of it, in USD, without the reservations of other agents. Blocks."""
        balance = self.ledger.balance(self._kept)
        return balance.ceiling / _MICRO, max(balance.left, 0) / _MICRO

    @property
    def standing(self) -> tuple[float, float] | None:
        """Like `left`, by the last look at the ledger, so it does not block; None before the first one."""
        balance = self._standing
        return None if balance is None else (balance.ceiling / _MICRO, max(balance.left, 0) / _MICRO)

    def carry(self, session: str, dollars: float) -> None:
        """Count the cost of a resumed session that this run has not counted yet. For the agent that began the ledger.
        Blocks.
        """
        amount = math.ceil(dollars * _MICRO) - self._counted.get(session, 0)
        if amount > 0 and self.ledger.owned:
            self.ledger.settle(f"earlier-{os.urandom(8).hex()}", amount)
            self._earlier += amount
            self._counted[session] = self._counted.get(session, 0) + amount

    def work_for(self, session: str, written: float, cost: float) -> None:
        """Record the session that the money is spent for. Blocks.

        Args:
            written: how much of this run's spending is recorded in session files, in USD.
            cost: the cost that the file of this session contains, in USD. The ledger already includes it.
        """
        if self.ledger.owned:
            self.ledger.work_for(session, self._earlier + round(written * _MICRO))
            self._counted[session] = max(self._counted.get(session, 0), math.ceil(cost * _MICRO))

    def left_behind(self, session: str) -> float:
        """The spending of killed runs of a session that its file lacks, in USD. It is returned once. Blocks."""
        return self.ledger.left_behind(session) / _MICRO if self.ledger.owned else 0.0

    def spent(self) -> float | None:
        """The spending of this run and the agents below it, in USD; None if a parent counts it. Blocks."""
        if not self.ledger.owned:
            return None
        return max(self.ledger.balance().spent - self._earlier, 0) / _MICRO

    def child_environment(self) -> Mapping[str, str]:
        """The environment variables that put a child process under this ceiling."""
        ceiling = self.ledger.ceiling() / _MICRO
        return {"MARVIN_LEDGER": self.ledger.address, "MARVIN_MAX_COST": f"{ceiling:.6f}"}

    async def aclose(self) -> None:
        """Release the reserve; the agent that began the ledger removes it.

        Raises:
            BudgetExceeded: the ledger cannot be written.
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
    """The budget for a configuration's ceiling and ledger."""
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
