"""The cost ceiling of a run and of the agents below it (`--max-cost`): reserved before a request, settled after."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ..api.errors import BudgetExceeded, ConfigError
from ..api.messages import IMAGE_TOKENS, Image, Message, Text, Thinking, ToolCall, ToolOutput, Usage
from ..api.providers import Request
from ..api.record import Record
from ..api.timeouts import Timeouts
from ..api.usage import Reservation
from ..util.threads import in_thread
from .ledger import Ledger

if TYPE_CHECKING:
    from ..api.config import Config
    from ..api.tools import ToolSpec
    from .prices import Prices

_MICRO = 1_000_000
_BYTES_PER_TOKEN = 2
"""Of text that the service has not counted yet: less than in any language, so that estimates err to the dear side."""
_MESSAGE_BYTES = 20
"""What the wire adds to each message, in tokens about ten."""
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


class Rate(Record):
    """What a request costs in micro-dollars at most: its input, and each token of its output."""

    input: int
    output: float


class Budget:
    """What may still be spent.

    The ledger is opened when it is first needed. `longest` tells the output limit of a provider's model, in tokens,
    None where it is not known. `warn` is told in one line of what keeps the agent waiting.
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
        self._kept = ""
        self._last = self._closed = False
        self._counted: tuple[str, str, int, int] | None = None
        self._tools: tuple[ToolSpec, ...] = ()
        self._tools_size = 0

    @property
    def ledger(self) -> Ledger:
        """The ledger, opened when it is first needed."""
        if self._opened is None:
            self._opened = self._open_ledger()
        return self._opened

    async def reserve(self, provider: str, model: str, request: Request) -> tuple[Request, Reservation]:
        """Reserve what a request may cost, and hold back what a last answer would.

        Between `begin_last` and `end_last` a request may use what was held back instead.

        Returns:
            The request with an output limit that the money covers, and what `settle` is to be given.

        Raises:
            ConfigError: where the price of the model is not known, or the inherited ledger is none.
            BudgetExceeded: where the request is not covered.
        """
        size = self._size(request)
        tokens = self._tokens(provider, model, size)
        rate, later = await in_thread(
            lambda: (self._rate(provider, model, tokens), self._rate(provider, model, tokens + _GROWTH))
        )
        hold = Reservation(provider=provider, model=model, size=size, input_tokens=tokens)
        if rate.input == 0 and rate.output == 0:
            return request, hold
        limit = request.max_output_tokens or self._longest(provider, model) or _UNKNOWN_LIMIT
        usual = min(limit, _LAST_OUTPUT)
        taken = None
        if self._last:
            taken = await self._take(rate, min(limit, _LEAST_LAST_OUTPUT), usual, 0)
        elif not self._closed:
            keep = later.input + math.ceil(usual * later.output)
            taken = await self._take(rate, min(limit, _LEAST_OUTPUT), limit, keep)
        if taken is None:
            raise BudgetExceeded(self.told())
        output, key = taken
        return request.replace(max_output_tokens=output), hold.replace(key=key)

    async def _take(self, rate: Rate, least: int, most: int, keep: int) -> tuple[int, str] | None:
        """Reserve the input and between `least` and `most` tokens of output; waits for what others may set free."""
        import asyncio

        waited = 0.0
        while True:
            balance = self.ledger.balance(self._kept)
            spare = balance.left - rate.input - keep
            share = max(spare / 4, _USUAL_OUTPUT * rate.output)
            output = min(most, math.floor(min(spare, share) / rate.output + _ROUNDING)) if rate.output else most
            if spare >= 0 and output >= least:
                amount = rate.input + math.ceil(output * rate.output - _ROUNDING)
                taken = self.ledger.reserve(amount, keep, self._kept)
                if taken is not None:
                    key, self._kept = taken
                    return output, key
                continue  # another agent was faster
            if waited >= self._timeouts.ceiling or balance.possible < rate.input + keep + least * rate.output:
                return None
            if not waited:
                self.warn("The rest of the cost ceiling is reserved by other agents. Waiting for their answers.")
            await asyncio.sleep(self._timeouts.ceiling_poll)
            waited += self._timeouts.ceiling_poll

    def settle(self, hold: Reservation, usage: Usage | None, came: int, *, complete: bool) -> None:
        """Count what a request came to, as soon as that is known.

        Args:
            usage: what the service says; None where it said nothing.
            came: the bytes of the answer that came, thinking and calls among them.
            complete: whether the answer came to its end. Of one that did not, the service bills what it
                streamed: that is estimated where it is more than what the service said until then.
        """
        if usage is not None and usage.input_tokens:
            self._counted = (hold.provider, hold.model, hold.size, usage.input_tokens)
        if not hold.key:
            return
        try:
            self.ledger.settle(hold.key, math.ceil(self._cost(hold, usage, came, complete) * _MICRO))
        except BudgetExceeded as error:
            self.warn(f"What a request cost could not be written down, so its worst case counts. {error}")

    def refused(self, hold: Reservation) -> None:
        """The service answered a request with an error, for which nobody pays."""
        if hold.key:
            self.settle(hold, Usage(cost=0.0), 0, complete=True)

    def _cost(self, hold: Reservation, usage: Usage | None, came: int, complete: bool) -> float:
        if usage is not None and usage.cost is not None:
            return usage.cost
        estimate = Usage(input_tokens=hold.input_tokens, output_tokens=-(-came // _BYTES_PER_TOKEN))
        if usage is None or usage == Usage():
            usage = estimate
        elif not complete:
            usage = usage.replace(output_tokens=max(usage.output_tokens, estimate.output_tokens))
        return self._prices.cost(hold.provider, hold.model, usage) or 0.0

    def _rate(self, provider: str, model: str, tokens: int) -> Rate:
        """Raises `ConfigError` where the price is not known."""
        fed = self._prices.worst(provider, model, tokens, 0)
        both = self._prices.worst(provider, model, tokens, _MICRO)
        if fed is None or both is None:
            raise ConfigError(_unpriced(provider, model))
        return Rate(input=math.ceil(fed * _MICRO), output=both - fed)

    def _tokens(self, provider: str, model: str, size: int) -> int:
        """The input tokens that this many bytes are at most: as the service counted the last ones, and a margin."""
        if self._counted is None or self._counted[:2] != (provider, model):
            return size // _BYTES_PER_TOKEN
        _, _, counted_size, counted = self._counted
        if size < counted_size:
            return min(counted, math.ceil(counted * size / counted_size * 1.1))
        return counted + (size - counted_size) // _BYTES_PER_TOKEN

    def _size(self, request: Request) -> int:
        """The bytes of a request that count as input."""
        if request.tools is not self._tools:
            self._tools = request.tools
            described = [(tool.name, tool.description, tool.parameters) for tool in request.tools]
            self._tools_size = len(json.dumps(described, default=str))
        return self._tools_size + _bytes(request.system) + sum(map(_message_bytes, request.messages))

    def begin_last(self) -> None:
        """From here on a request is the last one: it may use what was held back for it.

        Raises:
            BudgetExceeded: where the last one was sent already.
        """
        if self._closed:
            raise BudgetExceeded(self.told())
        self._last = True

    def end_last(self) -> None:
        """The last request was sent: from here on there is none but those that cost nothing."""
        self._last = False
        self._closed = True

    def told(self) -> str:
        """How it stands, and how to go on: for people, once the ceiling is reached."""
        balance = self.ledger.balance(self._kept)
        ceiling, spent = balance.ceiling / _MICRO, balance.spent / _MICRO
        return (
            f"The cost ceiling of {ceiling:.4g} USD is reached: {spent:.4f} USD are spent, and what is left does not "
            "cover another request. To go on, start Marvin with --continue and a higher --max-cost."
        )

    def left(self) -> tuple[float, float]:
        """The ceiling and what is left of it, in USD; what other agents have reserved is not left."""
        balance = self.ledger.balance(self._kept)
        return balance.ceiling / _MICRO, max(balance.left, 0) / _MICRO

    def child_environment(self) -> Mapping[str, str]:
        """The variables that put a child under this ceiling."""
        ceiling = self.ledger.ceiling() / _MICRO
        return {"MARVIN_LEDGER": self.ledger.address, "MARVIN_MAX_COST": f"{ceiling:.6f}"}

    async def aclose(self) -> None:
        """Give back what was held back; the agent that began the ledger removes it.

        Raises:
            BudgetExceeded: where the ledger cannot be written.
        """
        if self._opened is not None and self._opened.owned:
            self._opened.remove()
        elif self._opened is not None and self._kept:
            self._opened.settle(self._kept, 0)
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


def _unpriced(provider: str, model: str) -> str:
    name = json.dumps(f"{provider}/{model}")
    return (
        f"The price of {provider}/{model} is not known, so --max-cost cannot bound what it costs. Leave the ceiling "
        "out, or say in config.yaml what a million tokens cost, in USD:\n"
        f"prices:\n  {name}:\n    input: 3.0\n    output: 15.0"
    )


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _message_bytes(message: Message) -> int:
    return _MESSAGE_BYTES + sum(map(_block_bytes, message.content))


def _block_bytes(block: object) -> int:
    if isinstance(block, (Text, Thinking)):
        return _bytes(block.text)
    if isinstance(block, ToolCall):
        return _bytes(block.arguments) + _bytes(block.name)
    if isinstance(block, ToolOutput):
        return sum(map(_block_bytes, block.content))
    return IMAGE_TOKENS * _BYTES_PER_TOKEN if isinstance(block, Image) else 0
