"""What services take of tools: how long a description, and whether they know of tools that wait."""

from __future__ import annotations

import re

from ...api.tools import LONGEST_DESCRIPTION, ToolSpec

LONGEST_AT_OPENAI = 1_024
"""Characters of a description at services that speak OpenAI's formats: the request is refused for a longer one."""

_CONTROLS = "[\x00-\x08\x0b-\x1f\x7f-\x9f]+"
# What gateways and hosts say of fields, blocks and items that they do not know, beside the names of those.
_REFUSALS = (
    rb"defer.?loading|tool.?(?:reference|search)|\btools\b|tool types?\b|extraneous|extra (?:inputs|fields)"
    rb"|unexpected|unknown|unrecogni[sz]ed|unsupported|not supported|does not match|not permitted|additional propert"
)


def described(spec: ToolSpec, most: int = LONGEST_DESCRIPTION) -> str:
    """The description of a tool as services take it: not empty, no longer than that, without what is no text."""
    text = re.sub(_CONTROLS, "", spec.description).strip() or spec.name
    return text if len(text) <= most else f"{text[: most - 1]}…"


def may_refuse_waiting(said: bytes) -> bool:
    """Whether a refusal may be one of what says that tools wait. Many services do not name what they refuse."""
    return re.search(_REFUSALS, said, re.IGNORECASE) is not None
