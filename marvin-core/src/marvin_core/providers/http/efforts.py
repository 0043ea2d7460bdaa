"""A replacement for a thinking effort that a model refused."""

from __future__ import annotations

import re

_ORDER = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_QUOTED = re.compile(rf"""["'`\[]({"|".join(_ORDER)})["'`\]]""")
_MUST_THINK = re.compile(r"(?i)mandatory|cannot be (disabled|turned off)|can't be disabled")


def other_effort(refused: str, said: str) -> str:
    """The nearest of the efforts named in a refusal, the lower one of two; low if the model always thinks.

    Empty if the refusal names no replacement.
    """
    if refused not in _ORDER:
        return ""
    place = _ORDER.index(refused)
    named: set[str] = {effort for effort in _QUOTED.findall(said) if effort != refused}
    if named:
        return min(named, key=lambda effort: (abs(_ORDER.index(effort) - place), _ORDER.index(effort)))
    return "low" if refused in ("none", "minimal") and _MUST_THINK.search(said) else ""
