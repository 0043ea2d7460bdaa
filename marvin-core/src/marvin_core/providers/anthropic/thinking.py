"""How each generation of Claude is asked to think, and which earlier thinking it accepts back.

From https://platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting and .../preserved-thinking.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from ...api.messages import Block, Message, ProviderData, Thinking
from ...api.providers import Request, ThinkingLevel
from ...api.record import Record
from ..generations import claude_version

BINDING = "thinking-binding-controls-2026-08-01"
"""The beta by which a request defines the handling of thinking whose conversation has changed since."""

Off: TypeAlias = Literal["", "disabled", "between_tools", "low"]
"""The instruction to think as little as possible; empty for a model that does not think by default."""

_BUDGETS: Mapping[ThinkingLevel, int] = {"low": 4_000, "medium": 10_000, "high": 24_000}
_LEAST = 1_024
_ROOM = 32_000
_ROOM_THINKING = 64_000
_UNKNOWN_LIMIT = 8_192


class Generation(Record):
    """A model's support for thinking.

    `form` is how thinking is requested: not at all, with a token budget, or with an amount chosen by the model. `off`
    disables the thinking of a model that thinks by default. A `quiet` model returns its thinking only on request. A
    `bound` model accepts thinking back only after the unchanged conversation in which it was produced.
    """

    form: Literal["none", "budget", "adaptive"]
    off: Off = ""
    quiet: bool = False
    bound: bool = False


def generation_of(model: str) -> Generation:
    """The generation, derived from a model's name.

    Other services with this format support the budget; a Claude without a number is treated as a new one.
    """
    found = claude_version(model)
    if found is None:
        # Models of other vendors think by default, if they can, and show it without a signature.
        return Generation(form="adaptive") if "claude" in model else Generation(form="budget", off="disabled")
    family, version = found
    if version < (4, 6):
        return Generation(form="budget" if version >= (3, 7) else "none")
    off = _off(family, version) if version >= (5, 0) else ""
    return Generation(form="adaptive", off=off, quiet=version >= (4, 7), bound=version >= (5, 1))


def _off(family: str, version: tuple[int, int]) -> Off:
    """The least thinking of a model that thinks by default; all of them accept the lowest effort."""
    if family == "haiku" or (family in ("opus", "sonnet") and version == (5, 0)):
        return "disabled"
    return "between_tools" if family == "sonnet" else "low"


def less(generation: Generation, said: bytes) -> Generation:
    """The generation with another way to reduce thinking, after this one was rejected; unchanged if there is none."""
    if generation.form == "budget":
        return generation.replace(off="") if generation.off else generation
    if generation.off == "disabled" and b"between_tools" in said:
        return generation.replace(off="between_tools")
    return generation.replace(off="low") if generation.off in ("disabled", "between_tools") else generation


class ThinkingPlan(Record):
    """The thinking of one request: its `fields`, whether it `returns` earlier thinking, and its `max_tokens`."""

    fields: Mapping[str, Any]
    returns: bool
    max_tokens: int


def plan(request: Request, generation: Generation, limit: int | None, is_own: Callable[[Block], bool]) -> ThinkingPlan:
    """Decide on the thinking of a request.

    Args:
        limit: the longest answer of the model, in tokens; None if unknown.
        is_own: whether a block is thinking that may be sent back to this model.
    """
    asked = request.thinking != "off"
    thinks = generation.form != "none" and (asked or generation.off not in ("", "disabled"))
    most = _most(request.max_output_tokens, limit, thinks)
    if not asked and generation.off == "disabled":
        return ThinkingPlan(fields={"thinking": {"type": "disabled"}}, returns=False, max_tokens=most)
    if not thinks:
        return ThinkingPlan(fields={}, returns=False, max_tokens=most)
    if generation.form == "budget":
        fields = _budget(request, most, is_own)
        return ThinkingPlan(fields=fields, returns=bool(fields), max_tokens=most)
    return ThinkingPlan(fields=_adaptive(request.thinking, generation), returns=True, max_tokens=most)


def _most(wanted: int | None, limit: int | None, thinks: bool) -> int:
    """`max_tokens`, which this format requires.

    It is not always the model's limit: older models reject a request whose input and `max_tokens` together exceed the
    window. Thinking counts as output and gets additional room.
    """
    if wanted is not None:
        return min(wanted, limit or wanted)
    return min(limit or _UNKNOWN_LIMIT, _ROOM_THINKING if thinks else _ROOM)


def _budget(request: Request, most: int, is_own: Callable[[Block], bool]) -> Mapping[str, Any]:
    budget = min(_BUDGETS[request.thinking], max(_LEAST, most // 2))
    if budget >= most or not _turn_began_with_thinking(request.messages, is_own):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _turn_began_with_thinking(messages: Sequence[Message], is_own: Callable[[Block], bool]) -> bool:
    """Whether the answers since the last prompt begin with thinking of this model, if there are any.

    Otherwise the service rejects a request with a budget: thinking was enabled, or the model changed, between a call
    and the next request. Thinking is possible again from the next prompt on.
    """
    start = 0
    for index in range(len(messages) - 1, -1, -1):
        prompted = messages[index].role not in ("assistant", "tool")
        # A user's message that arrived with outputs belongs to the same turn.
        if prompted and (index == 0 or messages[index - 1].role != "tool"):
            start = index
            break
    for before, message in pairwise(message for message in messages[start:] if message.content):
        if message.role == "assistant" and before.role != "tool" and not is_own(message.content[0]):
            return False
    return True


def _adaptive(level: ThinkingLevel, generation: Generation) -> Mapping[str, Any]:
    if level == "off" and generation.off == "between_tools":
        return {"thinking": {"type": "between_tools"}}  # accepts no field besides its type
    thinking: dict[str, Any] = {"type": "adaptive"}
    if generation.bound:
        # Tools and parts of the system prompt change between requests: earlier thinking is then left out.
        thinking["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
    if generation.quiet:
        # Also at the lowest effort: these models return their text between calls as thinking.
        thinking["display"] = "summarized"
    return {"thinking": thinking, "output_config": {"effort": generation.off if level == "off" else level}}


def kept(provider: str, model: str, blocks: Sequence[Mapping[str, Any]]) -> ProviderData:
    """Blocks of thinking as received, with their signatures, for `returned` to send back."""
    return ProviderData(provider=provider, data={"model": model, "blocks": list(blocks)})


def returned(block: Block, provider: str, model: str) -> Sequence[Mapping[str, Any]]:
    """The blocks that `kept` stored in this one; none of another provider or model, whose signatures are rejected."""
    if not isinstance(block, Thinking) or block.provider_data is None or block.provider_data.provider != provider:
        return ()
    data = block.provider_data.data
    blocks = data.get("blocks")
    return blocks if isinstance(blocks, list) and data.get("model") == model else ()
