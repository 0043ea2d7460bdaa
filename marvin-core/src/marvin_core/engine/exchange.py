"""One request to the model, and its streamed answer."""

from __future__ import annotations

from contextlib import aclosing
from typing import Literal

from ..api.errors import MarvinError, OutputLimit, ProviderError, Refused, StreamBroken, ToolError
from ..api.events import MessageEnd, MessageStart, MessageUpdate, ModelCycle, UsageReport
from ..api.messages import Message, StopReason, ToolCall, Usage
from ..api.providers import CallDelta, Delta, Provider, Request, Retrying, Switched, TextDelta, ThinkingDelta
from ..util.failures import is_failure, told
from ..util.watchdog import attributed
from .answer_redaction import AnswerRedactor
from .assembly import Assembly
from .parts import SessionParts

_WITH_OUTPUTS = 0.02
"""The seconds for which an answer may wait to be saved together with the outputs of its calls, if they only read."""
_DISPATCH = "marvin_core.engine.calls.dispatch"
"""Called with the name of a tool, which is imported while its arguments are still being streamed."""


class Exchange:
    """Forwards the stream of an answer, counts its usage, and adds the answer to the conversation.

    Args:
        sent: the number of characters of the request, which calibrates the estimate of tokens.
    """

    def __init__(self, parts: SessionParts, provider: Provider, request: Request, sent: int) -> None:
        self._parts = parts
        self._provider = provider
        self._request = request
        self._sent = sent
        self._bus = parts.bus
        self._assembly = self._begun()
        self._pausing = False
        # The last message of the request was searched for secrets just now, and an answer holds what was sent.
        self._redactor = AnswerRedactor(parts.redactor) if parts.redactor.has_learnt_any else None

    def _begun(self) -> Assembly:
        self._parts.progress.answer = begun = Assembly(self._provider.name, self._provider.model)
        return begun

    @property
    def _pack(self) -> str:
        name = self._parts.setup.packs().of_provider(self._provider.name)
        return f" of the pack {name}" if name else ""

    async def answer(self) -> Message:
        """The complete answer.

        Raises:
            ProviderError: the service failed, or the answer is empty.
        """
        await attributed(f"the provider {self._provider.name}", self._receive())
        answer = None if self._assembly.is_empty else self._finish(None)
        if answer is None:
            self._break_off()
        try:
            await self._count()
        except BaseException:
            self._give_up_calls(answer)
            raise
        if answer is None:
            raise self._empty()
        return answer

    async def _receive(self) -> None:
        """Receive the answer; an incomplete one is kept as far as it came."""
        progress = self._parts.progress
        try:
            async with aclosing(self._provider.stream(self._request)) as deltas:  # type: ignore[type-var]
                async for delta in deltas:
                    if self._redactor is None:
                        self._take(delta)
                        continue
                    for piece in self._redactor.feed(delta):
                        self._take(piece)
            if self._assembly.stop_reason is None:
                raise StreamBroken(
                    f"The answer of {self._provider.name} ended too early. Try again, or another model.",
                    provider=self._provider.name,
                )
        except BaseException as error:
            foreign = is_failure(error)
            for piece in self._redactor.end() if self._redactor is not None else ():
                self._take(piece)
            self._keep_part("broken" if foreign else "cancelled")
            if not foreign or isinstance(error, MarvinError):
                raise
            raise ProviderError(
                f"The provider {self._provider.name}{self._pack} failed: {told(error)}. "
                "Choose another one with --provider, or correct or remove its pack.",
                provider=self._provider.name,
            ) from error
        finally:
            progress.answer = None

    def _take(self, delta: Delta) -> None:
        self._pausing = isinstance(delta, Retrying)
        if isinstance(delta, Retrying):
            self._give_up()
            self._bus.warn(delta.text)
            self._assembly = self._begun()
            return
        if isinstance(delta, Switched):
            self._give_up()
            reason = self._bus.clean(delta.reason)
            self._bus.emit(ModelCycle(previous=delta.previous, model=delta.model, reason=reason))
            self._assembly = self._begun()
            return
        begun = self._assembly.started
        part = self._assembly.feed(delta)
        if self._assembly.started and not begun:
            self._bus.emit(MessageStart(role="assistant"))
        if isinstance(delta, TextDelta):
            self._bus.emit(MessageUpdate(kind="text", delta=delta.text))
        elif isinstance(delta, ThinkingDelta):
            self._bus.emit(MessageUpdate(kind="thinking", delta=delta.text))
        elif isinstance(delta, CallDelta) and part is not None:
            if delta.name:
                self._parts.toolbox.preload(delta.name, _DISPATCH)
            self._bus.emit(MessageUpdate(kind="tool_call", delta=delta.arguments, call_id=part.id, name=part.name))

    def _give_up(self) -> None:
        """The answer is repeated: the part so far was shown, but is not added to the conversation."""
        self._count_part()
        self._break_off()

    def _break_off(self, reason: StopReason = "broken") -> None:
        """End an answer and discard it."""
        if self._assembly.started:
            self._bus.emit(MessageEnd(message=self._assembly.message(reason), stop_reason=reason))

    def _keep_part(self, ended: Literal["cancelled", "broken"]) -> None:
        """Keep the received part of an incomplete answer, and count its known usage."""
        # A cancelled request without an answer was sent nevertheless, and its usage is unknown.
        self._count_part(sent=ended == "cancelled" and not self._pausing)
        if self._assembly.is_empty:
            self._break_off(ended)
        else:
            self._give_up_calls(self._finish(ended))

    def _count_part(self, *, sent: bool = False) -> None:
        """Count the known usage of an incomplete answer; what the rest of it costs is not known."""
        assembly = self._assembly
        if assembly.usage is not None or assembly.started or sent:
            usage = assembly.usage or Usage()
            self._parts.meter.add(assembly.provider, assembly.model, usage, whole=not assembly.started)

    def _give_up_calls(self, answer: Message | None) -> None:
        if answer is not None and answer.calls:
            from ..conversation.pairing import interrupted

            self._parts.give([interrupted(call.id, call.name) for call in answer.calls])

    def _finish(self, ended: Literal["cancelled", "broken"] | None) -> Message:
        message = self._assembly.message(ended)
        within = _WITH_OUTPUTS if message.calls and all(map(self._only_reads, message.calls)) else None
        answer = self._parts.conversation.append(message, within=within)
        self._bus.emit(MessageEnd(message=answer, stop_reason=answer.stop_reason or "stop"))
        if answer.stop_reason == "length":
            self._bus.warn("The answer was cut off at the model's output limit.")
        elif answer.stop_reason == "refused":
            self._bus.warn(f"{answer.provider} stopped this answer: its safety system, or the model, refused to go on.")
        return answer

    def _only_reads(self, call: ToolCall) -> bool:
        try:
            return self._parts.toolbox.spec(call.name).reads_only
        except ToolError:
            return True  # the output will only say that there is no such tool

    async def _count(self) -> None:
        provider, model, usage = self._provider.name, self._provider.model, self._assembly.usage or Usage()
        if self._assembly.usage is not None:
            self._parts.model.window.calibrate(self._sent, usage.input_tokens)
        # A service that reports no input or no output tokens did not report all usage.
        whole = bool(usage.input_tokens and (usage.output_tokens or not self._assembly.started))
        cost = await self._parts.meter.count(provider, model, usage, whole=whole)
        self._bus.emit(UsageReport(provider=provider, model=model, usage=usage, cost=cost))

    def _empty(self) -> ProviderError:
        name = self._provider.name
        if self._assembly.stop_reason == "length":
            text = "The model reached its output limit before it wrote any text. Ask for less, or choose another model."
            return OutputLimit(text, provider=name)
        if self._assembly.stop_reason == "refused":
            return Refused("The model refused to answer. Ask in another way, or choose another model.", provider=name)
        text = "The model returned an empty answer. Send the prompt again, or choose another model."
        return StreamBroken(text, provider=name)
