"""Another effort in the place of one that a model refused."""

from __future__ import annotations

import re

_ORDER = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_QUOTED = re.compile(rf"""["'`\[]({"|".join(_ORDER)})["'`\]]""")
_MUST_THINK = re.compile(r"(?i)mandatory|cannot be (disabled|turned off)|can't be disabled")


def other_effort(refused: str, said: str) -> str:
    """The nearest of those that a refusal names, the lower one of two; low where the model cannot but think.

    Empty where the refusal leads to none.
    """
    if refused not in _ORDER:
        return ""
    place = _ORDER.index(refused)
    named: set[str] = {effort for effort in _QUOTED.findall(said) if effort != refused}
    if named:
        return min(named, key=lambda effort: (abs(_ORDER.index(effort) - place), _ORDER.index(effort)))
    return "low" if refused in ("none", "minimal") and _MUST_THINK.search(said) else ""
