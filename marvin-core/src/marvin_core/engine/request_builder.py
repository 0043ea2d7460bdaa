"""The next request of a session: its prompt, the conversation with room made in it, and the tools on offer."""

from __future__ import annotations

from collections.abc import Sequence

from ..api.providers import Provider, Request, ThinkingLevel
from ..api.record import Record
from ..api.tools import ToolSpec
from ..api.usage import CostCeiling
from ..conversation.compactor import Compactor
from .hook_runner import HookRunner
from .parts import SessionParts
from .remaining import Remaining
from .system_prompt import PromptPart, SystemPrompt

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
        self.remaining = Remaining(parts, compactor)
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
        if left := self.remaining.roughly(settings.ceiling):
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
