"""The loop: ask the model, run the calls it asks for, and again, until it answers without a call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from itertools import count
from typing import Literal, NoReturn, Protocol, TypeAlias

from ..api.errors import BudgetExceeded, ContextOverflow, OutputLimit, ProviderError, Refused, StreamBroken
from ..api.events import (
    Emit,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ModelCycle,
    Notice,
    TurnEnd,
    TurnStart,
    UsageReport,
)
from ..api.messages import Message, Text, ToolCall, ToolOutput, Usage, tool
from ..api.providers import (
    CallDelta,
    Delta,
    Provider,
    Request,
    Retrying,
    Switched,
    TextDelta,
    ThinkingDelta,
    ThinkingLevel,
)
from ..api.record import Record
from ..api.tools import ToolSpec
from ..api.usage import CostCeiling, Meter
from ..conversation.conversation import Conversation
from ..conversation.pairing import interrupted
from ..conversation.window import Window
from .assembly import Assembly
from .dispatch import Dispatcher

Ended: TypeAlias = Literal["done", "rounds"]

OUT_OF_ROUNDS = (
    "This was the last round of tool calls. Answer now with what you know: what is done, what is not, "
    "and what the next step would be."
)
OUT_OF_MONEY = (
    "The cost ceiling of this run covers one more answer and no further call of a tool. Sum up in a few sentences: "
    "what is done, what is not, and what the next step would be."
)


class Tools(Protocol):
    """The tools on offer."""

    @property
    def offered(self) -> tuple[ToolSpec, ...]: ...
    def preload(self, name: str) -> None: ...


class Surroundings(Record):
    """What the loop needs besides the model: it knows nothing of sessions, files and interfaces.

    `system_prompt` (with how many of its first characters stay the same), `prepare` and `before_request` are
    awaited before each request. `prepare` may make room in the conversation, and tells the characters that go along
    with it; `make_room` does so after a request did not fit for the given number of times, and says whether to ask
    again. `queued` gives the messages that came in since, to be delivered with the next one. `goes_on` is told
    after each round whether tools were called, and says whether there is to be another one. `rounds` is how many
    requests may call tools, `thinking` how hard the model thinks, `ceiling` the cost ceiling, if there is one.
    """

    system_prompt: Callable[[], Awaitable[tuple[str, int]]]
    prepare: Callable[[str, Sequence[ToolSpec]], Awaitable[int]]
    make_room: Callable[[int], Awaitable[bool]]
    before_request: Callable[[Sequence[Message]], Awaitable[None]]
    queued: Callable[[], Sequence[Message]]
    goes_on: Callable[[bool], bool]
    rounds: int
    thinking: ThinkingLevel = "off"
    ceiling: CostCeiling | None = None


class Agent:
    """One model with its tools, working on one conversation."""

    def __init__(
        self,
        provider: Provider,
        dispatcher: Dispatcher,
        toolbox: Tools,
        conversation: Conversation,
        window: Callable[[], Window],
        meter: Meter,
        emit: Emit,
        surroundings: Surroundings,
    ) -> None:
        self._provider = provider
        self._dispatcher = dispatcher
        self._toolbox = toolbox
        self._conversation = conversation
        self._window = window
        self._meter = meter
        self._emit = emit
        self._surroundings = surroundings

    async def run(self) -> Ended:
        """Work until the model answers without a call, or the rounds are used up.

        Raises:
            ProviderError: where the model service failed; what came before it stays in the conversation.
            BudgetExceeded: where the cost ceiling covers no further round; a last answer says how far it came.
        """
        for number in count(1):
            last = number > self._surroundings.rounds
            self._emit(TurnStart(round=number))
            for message in self._surroundings.queued():
                self._conversation.append(message)
            try:
                answer = await self._ask_until_it_fits(OUT_OF_ROUNDS if last else "")
            except BudgetExceeded:
                if self._surroundings.ceiling is None:
                    raise
                await self._sum_up(self._surroundings.ceiling, number)
            if answer.calls and last:
                self._leave_out(answer, "the rounds of tool calls were used up")
            elif answer.calls:
                await self._run_calls(answer)
            self._emit(TurnEnd(round=number))
            if last:
                return "rounds"
            if not self._surroundings.goes_on(bool(answer.calls)):
                return "done"
        raise AssertionError("count() ends only by returning")

    async def _sum_up(self, ceiling: CostCeiling, number: int) -> NoReturn:
        """End with a last answer, out of what was held back for it. Raises `BudgetExceeded` in any case."""
        try:
            answer = await self._ask_until_it_fits(OUT_OF_MONEY)
        finally:
            ceiling.end_last()
        self._leave_out(answer, "the cost ceiling was reached")
        self._emit(TurnEnd(round=number))
        raise BudgetExceeded(ceiling.told())

    def _leave_out(self, answer: Message, why: str) -> None:
        if answer.calls:
            self._conversation.append(tool([_not_run(call, why) for call in answer.calls]))

    async def _run_calls(self, answer: Message) -> None:
        outputs: list[ToolOutput] = []
        try:
            await self._dispatcher.batch(answer.calls, outputs)
        finally:
            self._conversation.append(tool(outputs))

    async def _ask_until_it_fits(self, ending: str) -> Message:
        for overflows in count(1):
            try:
                return await self._ask(ending)
            except ContextOverflow:
                if not await self._surroundings.make_room(overflows):
                    raise
        raise AssertionError("count() ends only by returning")

    async def _ask(self, ending: str) -> Message:
        """One request; `ending` is why it is the last one. Whatever came of the answer is kept, however it ends."""
        request, sent = await self._request(ending)
        if ending == OUT_OF_MONEY and self._surroundings.ceiling is not None:
            self._surroundings.ceiling.begin_last()
            request = request.replace(thinking="off")
        assembly = Assembly(self._provider.name, self._provider.model)
        ended: Literal["cancelled", "broken"] | None = "cancelled"
        try:
            async with aclosing(self._provider.stream(request)) as deltas:  # type: ignore[type-var]
                async for delta in deltas:
                    assembly = self._take(delta, assembly)
            ended = None
        except Exception:
            ended = "broken"
            raise
        finally:
            if ended is not None:
                self._keep_part(assembly, ended)
        answer = None if assembly.is_empty else self._finish(assembly, None)
        try:
            await self._count(assembly, sent)
        except BaseException:
            self._give_up_calls(answer)
            raise
        if answer is None:
            raise self._empty(assembly)
        return answer

    async def _request(self, ending: str) -> tuple[Request, int]:
        """The next request, and the characters in it."""
        system, stable = await self._surroundings.system_prompt()
        offered = self._toolbox.offered
        if self._provider.max_tools is not None:
            offered = offered[: self._provider.max_tools]
        if ending:
            system = f"{system}\n\n{ending}"
        along = await self._surroundings.prepare(system, offered)
        messages = self._conversation.messages
        sent = self._conversation.characters + along
        await self._surroundings.before_request(messages)
        request = Request(
            system=system,
            messages=messages,
            tools=offered,
            tool_choice="none" if ending else "auto",
            thinking=self._surroundings.thinking,
            stable=stable,
        )
        return request, sent

    def _take(self, delta: Delta, assembly: Assembly) -> Assembly:
        if isinstance(delta, Retrying):
            self._count_part(assembly)
            self._emit(Notice(level="warning", text=delta.text))
            return Assembly(self._provider.name, self._provider.model)
        if isinstance(delta, Switched):
            self._give_up(assembly)
            self._emit(ModelCycle(previous=delta.previous, model=delta.model, reason=delta.reason))
            return Assembly(self._provider.name, self._provider.model)
        begun = assembly.started
        part = assembly.feed(delta)
        if assembly.started and not begun:
            self._emit(MessageStart(role="assistant"))
        if isinstance(delta, TextDelta):
            self._emit(MessageUpdate(kind="text", delta=delta.text))
        elif isinstance(delta, ThinkingDelta):
            self._emit(MessageUpdate(kind="thinking", delta=delta.text))
        elif isinstance(delta, CallDelta) and part is not None:
            if delta.name:
                self._toolbox.preload(delta.name)
            self._emit(MessageUpdate(kind="tool_call", delta=delta.arguments, call_id=part.id, name=part.name))
        return assembly

    def _give_up(self, assembly: Assembly) -> None:
        """Another model starts over: what came so far was shown, and is no part of the conversation."""
        self._count_part(assembly)
        if assembly.started:
            self._emit(MessageEnd(message=assembly.message("broken"), stop_reason="broken"))

    def _keep_part(self, assembly: Assembly, ended: Literal["cancelled", "broken"]) -> None:
        """Keep what came of an answer that did not come to its end, and count what it is known to have used."""
        self._count_part(assembly)
        if not assembly.is_empty:
            self._give_up_calls(self._finish(assembly, ended))

    def _count_part(self, assembly: Assembly) -> None:
        """Count what an answer that did not come to its end is known to have used."""
        if assembly.usage is not None or assembly.started:
            self._meter.add(assembly.provider, assembly.model, assembly.usage or Usage())

    def _give_up_calls(self, answer: Message | None) -> None:
        if answer is not None and answer.calls:
            self._conversation.append(tool([interrupted(call.id, call.name) for call in answer.calls]))

    def _empty(self, assembly: Assembly) -> ProviderError:
        name = self._provider.name
        if assembly.stop_reason == "length":
            text = "The model reached its output limit before it said anything. Ask for less, or choose another model."
            return OutputLimit(text, provider=name)
        if assembly.stop_reason == "refused":
            return Refused("The model refused to answer. Ask in another way, or choose another model.", provider=name)
        text = "The model returned an empty answer. Send the prompt again, or choose another model."
        return StreamBroken(text, provider=name)

    def _finish(self, assembly: Assembly, ended: Literal["cancelled", "broken"] | None) -> Message:
        answer = assembly.message(ended)
        self._conversation.append(answer)
        self._emit(MessageEnd(message=answer, stop_reason=answer.stop_reason or "stop"))
        if answer.stop_reason == "length":
            self._emit(Notice(level="warning", text="The answer was cut off at the model's output limit."))
        return answer

    async def _count(self, assembly: Assembly, sent: int) -> None:
        provider, model, usage = self._provider.name, self._provider.model, assembly.usage or Usage()
        if assembly.usage is not None:
            self._window().calibrate(sent, usage.input_tokens)
        cost = await self._meter.count(provider, model, usage)
        self._emit(UsageReport(provider=provider, model=model, usage=usage, cost=cost))


def _not_run(call: ToolCall, why: str) -> ToolOutput:
    text = f"Error: this was not run: {why}."
    return ToolOutput(call_id=call.id, name=call.name, content=(Text(text=text),), is_error=True)
