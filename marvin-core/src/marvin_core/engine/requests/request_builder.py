"""The next request of a session: its prompt, the conversation after making room, and the offered tools."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from ...api.messages import ToolOutput, tool
from ...api.providers import Provider, Request, ThinkingLevel, adds_revealed
from ...api.record import Record
from ...api.tools import ToolSpec
from ...conversation.compactor import Compactor
from ...conversation.window import characters
from ...tools.carried_tools import Carried
from ..hook_runner import HookRunner
from ..parts import SessionParts
from .system_prompt import PromptPart, SystemPrompt

if TYPE_CHECKING:
    from ...api.controls import ContextUse, SessionStanding
    from ...api.models import CostCeiling
    from .remaining import Remaining


class PromptSettings(Record):
    """The model and its settings for a prompt, fixed when it begins; later changes apply to the next prompt."""

    provider: Provider
    thinking: ThinkingLevel
    ceiling: CostCeiling | None


class RequestBuilder:
    """Builds requests for one session."""

    def __init__(self, parts: SessionParts, hooks: HookRunner, compactor: Compactor) -> None:
        self._parts = parts
        self._hooks = hooks
        self._compactor = compactor
        self._prompt = SystemPrompt(parts, hooks)

    async def prompt_parts(self) -> list[PromptPart]:
        """The parts of the system prompt of the next request."""
        await self._prompt.refresh()
        return await self._prompt.parts(self._parts.tool_sizes.of_all(self._carried().told))

    def _carried(self) -> Carried:
        """The tools of the next request; all offered ones if there is no model yet."""
        if not self._parts.model.configured:
            return Carried.of(self._parts.toolbox.offered)
        return self._parts.carried.of(self._parts.model.provider)

    def _carried_by(self) -> tuple[object, ...]:
        """A value on which the tools of a request depend, as far as making room may change it."""
        parts = self._parts
        return parts.conversation.messages, parts.model.window.size, parts.toolbox.offered

    async def context_use(self) -> ContextUse:
        """The content of the next request, in tokens."""
        from ...api.controls import ContextUse  # on demand

        parts, window = await self.prompt_parts(), self._parts.model.window
        carried, conversation = self._carried(), self._parts.conversation

        def sizes(specs: Sequence[ToolSpec]) -> dict[str, int]:
            return {spec.name: window.tokens(self._parts.tool_sizes.of(spec)) for spec in specs}

        return ContextUse(
            prompt=[(part.origin, window.tokens(len(part.text))) for part in parts if part.text],
            tools=sizes(carried.told),
            waiting=sizes([spec for spec in carried.waiting if spec not in carried.told]),
            messages=len(conversation.messages),
            message_tokens=window.tokens(conversation.characters),
            compact=window.compact,
            window=window.size,
        )

    def standing(self) -> SessionStanding:
        """The current status of the session."""
        from ..session_views import standing  # on demand

        return standing(self._parts, self._compactor.overhead)

    async def build(self, settings: PromptSettings, ending: str = "") -> tuple[Request, int]:
        """The next request, and its size in characters.

        Args:
            ending: why it is the last one, for the model; it may not call tools then.
        """
        await self._prompt.refresh()
        carried, chosen_by = self._parts.carried.of(settings.provider), self._carried_by()
        parts = await self._prompt.parts(self._parts.tool_sizes.of_all(carried.told))
        self._label(carried)
        *stable, volatile = [part.text for part in parts]
        same = "\n\n".join(stable)
        system = "\n\n".join(filter(None, [same, volatile, ending]))
        conversation = self._parts.conversation
        await self._parts.model.measure(conversation.characters + len(system))
        along = await self._compactor.prepare(system, carried.told)
        messages, sent = conversation.messages, conversation.characters + along
        if self._carried_by() != chosen_by:
            carried = self._parts.carried.of(settings.provider)  # a summary may have removed searches
        await self._hooks.before_request(messages)
        if left := self._remaining.roughly(settings.ceiling) if self._may_be_little(settings.ceiling) else "":
            # Last, and after room was made: it changes most often.
            system, sent = f"{system}\n\n{left}", sent + len(left)
        request = Request(
            system=system,
            messages=messages,
            tools=carried.tools,
            waiting=carried.waiting,
            deferred=adds_revealed(settings.provider),
            tool_choice="none" if ending else "auto",
            thinking=settings.thinking,
            stable=len(same),
            output_schema=self._parts.config.output_schema,
        )
        return request, sent

    def _label(self, carried: Carried) -> None:
        """Record the origins of the model's input other than the conversation."""
        foreign, document = self._parts.setup.foreign_tools, self._prompt.of_repository
        described = next((spec.name for spec in carried.told if spec.name in foreign), "") if foreign else ""
        if not described and not document:
            return
        from ...guard.labels import PROMPT, SessionLabels

        labels = SessionLabels(self._parts.state, self._parts.config.labels)
        labels.add(["tools"] if described else [], described)
        labels.add(["repository"] if document else [], f"{PROMPT} ({document})")

    @cached_property
    def _remaining(self) -> Remaining:
        from .remaining import Remaining  # most conversations never come near the end of anything

        return Remaining(self._parts, self._compactor)

    def _may_be_little(self, ceiling: CostCeiling | None, added: int = 0) -> bool:
        """Whether the context window or the budget may be nearly used up after this number of characters."""
        window = self._parts.model.window
        used = self._parts.conversation.characters + self._compactor.overhead + added
        return ceiling is not None or window.tokens(used) >= window.warn

    def with_remaining(self, outputs: Sequence[ToolOutput], ceiling: CostCeiling | None) -> list[ToolOutput]:
        """The outputs of a round; the last one reports what is left after them, if that is little."""
        if not self._may_be_little(ceiling, characters([tool(outputs)])):
            return list(outputs)
        return self._remaining.added(outputs, ceiling)

    def begin_prompt(self) -> None:
        """Apply the changes since the last prompt, and report which tools are not sent."""
        self._prompt.begin()
        self._parts.carried.tell_left_out(self._parts.model.provider)
