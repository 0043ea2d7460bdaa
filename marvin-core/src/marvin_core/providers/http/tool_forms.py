"""How services accept tools: the maximum length of a description, and whether they support deferred tools."""

from __future__ import annotations

import re

from ...api.tools import LONGEST_DESCRIPTION, ToolSpec

LONGEST_AT_OPENAI = 1_024
"""The maximum length of a description in OpenAI's formats, in characters; a longer one is refused."""

_CONTROLS = "[\x00-\x08\x0b-\x1f\x7f-\x9f]+"
# What gateways and hosts say of fields, blocks and items that they do not know, beside the names of those.
_REFUSALS = (
    rb"defer.?loading|tool.?(?:reference|search)|\btools\b|tool types?\b|extraneous|extra (?:inputs|fields)"
    rb"|unexpected|unknown|unrecogni[sz]ed|unsupported|not supported|does not match|not permitted|additional propert"
)


def described(spec: ToolSpec, most: int = LONGEST_DESCRIPTION) -> str:
    """The description of a tool in an acceptable form: not empty, not too long, without control characters."""
    text = re.sub(_CONTROLS, "", spec.description).strip() or spec.name
    return text if len(text) <= most else f"{text[: most - 1]}…"


def may_refuse_waiting(said: bytes) -> bool:
    """Whether a refusal may concern deferred tools. Many services do not name what they refuse."""
    return re.search(_REFUSALS, said, re.IGNORECASE) is not None
