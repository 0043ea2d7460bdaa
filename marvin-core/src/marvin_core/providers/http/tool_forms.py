"""What services take of tools: how long a description, and whether they know of tools that wait."""

from __future__ import annotations

import re

from ...api.tools import ToolSpec

LONGEST = 8_000
"""Characters of a description where a service names no limit: what a stranger writes may be of any length."""
LONGEST_AT_OPENAI = 1_024
"""The same at services that speak OpenAI's formats: the whole request is refused for a longer one."""

# What gateways and hosts say of fields, blocks and items that they do not know, beside the names of those.
_REFUSALS = (
    rb"defer.?loading|tool.?(?:reference|search)|\btools\b|tool types?\b|extraneous|extra (?:inputs|fields)"
    rb"|unexpected|unknown|unrecogni[sz]ed|unsupported|not supported|does not match|not permitted|additional propert"
)


def described(spec: ToolSpec, most: int) -> str:
    """The description of a tool as services take it: not empty, no longer than that, without what is no text."""
    text = spec.description
    if len(text) > most:
        text = f"{text[: most - 1]}…"
    if not text.isprintable():
        text = "".join(letter for letter in text if letter.isprintable() or letter in "\n\t")
    return text.strip() or spec.name


def may_refuse_waiting(said: bytes) -> bool:
    """Whether a refusal may be one of what says that tools wait. Many services do not name what they refuse."""
    return re.search(_REFUSALS, said, re.IGNORECASE) is not None
