"""The next request of a session: its prompt, the conversation with room made in it, and the tools on offer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from ..api.messages import ToolOutput, tool
from ..api.providers import Provider, Request, ThinkingLevel
from ..api.record import Record
from ..api.tools import ToolSpec
from ..api.usage import CostCeiling
from ..conversation.compactor import Compactor
from ..conversation.window import characters
from .hook_runner import HookRunner
from .parts import SessionParts
from .system_prompt import PromptPart, SystemPrompt

if TYPE_CHECKING:
    from .remaining import Remaining

_NAMED = 8
"""How many tools that are left out are told by name."""


class PromptSettings(Record):
    """What answers a prompt, taken when it begins; a change in the middle of it counts for the next one."""

    provider: Provider
    thinking: ThinkingLevel
    ceiling: CostCeiling | None


class RequestBuilder:
    """Makes requests for one session."""

    def __init__(self, parts: SessionParts, hooks: HookRunner, compactor: Compactor) -> None:
        self._parts = parts
        self._hooks = hooks
        self._compactor = compactor
        self._prompt = SystemPrompt(parts, hooks)
        self._left_out: list[str] = []

    async def prompt_parts(self) -> list[PromptPart]:
        """The parts of the system prompt of the next request."""
        return await self._prompt.parts(self._compactor.characters_of(self._parts.toolbox.offered))

    async def build(self, settings: PromptSettings, ending: str = "") -> tuple[Request, int]:
        """The next request, and the characters in it.

        Args:
            ending: why it is the last one, for the model to read; it may call no tool then.
        """
        offered = _taken(settings.provider, self._parts.toolbox.offered)
        parts = await self._prompt.parts(self._compactor.characters_of(offered))
        *stable, volatile = [part.text for part in parts]
        same = "\n\n".join(stable)
        system = "\n\n".join(filter(None, [same, volatile, ending]))
        conversation = self._parts.conversation
        await self._parts.model.measure(conversation.characters + len(system))
        along = await self._compactor.prepare(system, offered)
        messages, sent = conversation.messages, conversation.characters + along
        await self._hooks.before_request(messages)
        if left := self._remaining.roughly(settings.ceiling) if self._may_be_little(settings.ceiling) else "":
            # Last, and after room was made: it changes most often.
            system, sent = f"{system}\n\n{left}", sent + len(left)
        request = Request(
            system=system,
            messages=messages,
            tools=offered,
            tool_choice="none" if ending else "auto",
            thinking=settings.thinking,
            stable=len(same),
            output_schema=self._parts.config.output_schema,
        )
        return request, sent

    @cached_property
    def _remaining(self) -> Remaining:
        from .remaining import Remaining  # most conversations never come near the end of anything

        return Remaining(self._parts, self._compactor)

    def _may_be_little(self, ceiling: CostCeiling | None, added: int = 0) -> bool:
        """Whether the window or the money may be near its end, once so many characters are added."""
        window = self._parts.model.window
        used = self._parts.conversation.characters + self._compactor.overhead + added
        return ceiling is not None or window.tokens(used) >= window.warn

    def with_remaining(self, outputs: Sequence[ToolOutput], ceiling: CostCeiling | None) -> list[ToolOutput]:
        """The outputs of a round; the last one says what is left after them, where that is little."""
        if not self._may_be_little(ceiling, characters([tool(outputs)])):
            return list(outputs)
        return self._remaining.added(outputs, ceiling)

    def begin_prompt(self) -> None:
        """Have what changed since the last prompt count, and tell which tools do not come along."""
        self._prompt.begin()
        self._tell_left_out()

    def _tell_left_out(self) -> None:
        """Tell which tools the model is not offered because it takes fewer, where that is not what was told last."""
        provider, offered = self._parts.model.provider, self._parts.toolbox.offered
        names = [spec.name for spec in offered[len(_taken(provider, offered)) :]]
        if names and names != self._left_out:
            few = f"{', '.join(names[:_NAMED])}{' and others' if len(names) > _NAMED else ''}"
            self._parts.bus.warn(
                f"{provider.name} takes {provider.max_tools} tools. Left out: {few}. "
                "--tools, or !mode in a chat, chooses which are offered."
            )
        self._left_out = names


def _taken(provider: Provider, offered: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
    """Those of the tools that the provider takes. The same object where it takes all, since providers keep its form."""
    return tuple(offered) if provider.max_tools is None else tuple(offered[: provider.max_tools])
