"""The agent loop: request an answer, run its calls, and repeat until there is an answer without a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import TYPE_CHECKING, Literal, TypeAlias

from ..api.errors import BudgetExceeded, ContextOverflow
from ..api.events import TurnEnd, TurnStart
from ..api.messages import Message, Text, ToolCall, ToolOutput, user
from ..api.providers import OFFLINE
from ..api.tools import Mode
from ..conversation.compactor import Compactor
from .autonomy import Autonomy
from .exchange import Exchange
from .parts import SessionParts
from .requests.request_builder import PromptSettings, RequestBuilder

if TYPE_CHECKING:
    from ..api.models import CostCeiling
    from .calls.dispatch import Dispatcher

Ended: TypeAlias = Literal["done", "rounds"]

ROUNDS: Mapping[Mode, int] = {"chat": 10, "coding": 50}
"""The maximum number of requests of a prompt with calls."""
OUT_OF_ROUNDS = (
    "This was the last round of tool calls. Answer now with what you know: what is done, what is not, "
    "and what the next step would be."
)
OUT_OF_MONEY = (
    "The cost ceiling of this run covers one more answer and no further call of a tool. Sum up in a few sentences: "
    "what is done, what is not, and what the next step would be."
)


class Agent:
    """The model of a session with its tools and its conversation.

    `dispatcher` returns the object that runs the calls; it is called with the first one.
    """

    def __init__(
        self,
        parts: SessionParts,
        requests: RequestBuilder,
        compactor: Compactor,
        dispatcher: Callable[[], Dispatcher],
        autonomy: Autonomy,
    ) -> None:
        self._parts = parts
        self._requests = requests
        self._compactor = compactor
        self._dispatcher = dispatcher
        self._autonomy = autonomy

    async def run(self) -> Ended:
        """Run until the model answers without a call, or the rounds are used up.

        Raises:
            ProviderError: the model service failed; the conversation keeps what came before.
            BudgetExceeded: the cost ceiling does not cover another round; a last answer reports the progress.
        """
        self._autonomy.begin()
        self._requests.begin_prompt()
        model = self._parts.model
        settings = PromptSettings(
            provider=model.for_prompt(), thinking=model.thinking, ceiling=model.ceiling or self._parts.setup.budget
        )
        turns, rounds = self._autonomy.turns, ROUNDS[self._parts.workspace.mode]
        for number in count(1):
            last = not turns and number > rounds
            done = await self._round(settings, number, last)
            if last or (number == turns and not done):
                return "rounds"
            if done:
                return "done"
        raise AssertionError("count() ends only by returning")

    async def _round(self, settings: PromptSettings, number: int, last: bool) -> bool:
        """One request and the calls of its answer; returns whether the prompt is complete."""
        parts = self._parts
        parts.progress.outputs = ()
        parts.bus.emit(TurnStart(round=number))
        try:
            for text, origin in self._autonomy.before_round(number):
                parts.take(user(text), origin)
            try:
                answer = await self._ask(settings, OUT_OF_ROUNDS if last else "")
            except BudgetExceeded as reached:
                ceiling = settings.ceiling if reached.within else parts.setup.budget
                if ceiling is None:
                    raise
                await self._sum_up(settings, ceiling)
                raise await ceiling.reached() from None
            if answer.calls and last:
                self._leave_out(answer, "the rounds of tool calls were used up")
            elif answer.calls:
                await self._run_calls(answer, settings.ceiling)
        finally:
            parts.bus.emit(TurnEnd(round=number, outputs=parts.progress.outputs))
        return not last and not self._autonomy.goes_on(bool(answer.calls))

    async def _sum_up(self, settings: PromptSettings, ceiling: CostCeiling) -> None:
        """Request a last answer, paid from the reserve for it."""
        try:
            answer = await self._ask(settings.replace(thinking="off"), OUT_OF_MONEY, ceiling)
        finally:
            ceiling.end_last()
        self._leave_out(answer, "the cost ceiling was reached")

    async def _ask(self, settings: PromptSettings, ending: str, spent: CostCeiling | None = None) -> Message:
        """One request, compacted and repeated if it exceeds the context window.

        Args:
            ending: the reason why it is the last one.
            spent: the cost ceiling that was reached: the answer is paid from the reserve.
        """
        for overflows in count(1):
            request, sent = await self._requests.build(settings, ending)
            if spent is not None:
                await spent.begin_last()
            try:
                return await Exchange(self._parts, settings.provider, request, sent).answer()
            except ContextOverflow as error:
                await self._parts.model.overflowed(error.window)
                if not await self._compactor.make_room(overflows):
                    raise
        raise AssertionError("count() ends only by returning")

    async def _run_calls(self, answer: Message, ceiling: CostCeiling | None) -> None:
        outputs: list[ToolOutput] = []
        try:
            await self._dispatcher().batch(answer.calls, outputs, "router" if answer.provider == OFFLINE else "model")
        finally:
            self._parts.give(self._requests.with_remaining(outputs, ceiling))

    def _leave_out(self, answer: Message, why: str) -> None:
        if answer.calls:
            self._parts.give([_not_run(call, why) for call in answer.calls])


def _not_run(call: ToolCall, why: str) -> ToolOutput:
    text = f"Error: this was not run: {why}."
    return ToolOutput(call_id=call.id, name=call.name, content=(Text(text=text),), is_error=True)
