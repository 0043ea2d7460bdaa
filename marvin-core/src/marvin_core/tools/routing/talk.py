"""Recognises small talk: no tool is offered for it unless the text names one."""

from __future__ import annotations

import re

from .remarks import is_remark

_LONGEST = 400
_TASTES = re.compile(
    r"\byour favou?rite\b"
    r"|\A\W*(?:do|did|would|could) you (?:ever )?(?:dream|enjoy|feel|hate|like|love)\b(?! (?:me )?to\b)",
    re.IGNORECASE,
)
_ASSENT = re.compile(
    r",\s*(?:is|was|are|were|do|does|did|has|have|wo|would|ca|could|should)n['’]t\s+\w+\W*\Z", re.IGNORECASE
)
"""Endings of texts that only ask for agreement: `the weather is nice, isn't it`."""
_IN_GENERAL = re.compile(
    r"""\A\W*(?:
      why\b
    | how\s(?:do|does|did|can|could)\s(?!(?:i|we|you|my|our|the|this|that|it)\b)
    | (?:what|who)(?:\sis|['’]s)\san?\s(?!\w+\s(?:in|of|at)\b)
    | what(?:\sis|['’]s)\sthe\s(?:difference\sbetween\san?\b|best\s(?:day|thing|time|way)\b)
    | what\smakes\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
"""General questions, which need knowledge and no tool."""
_TOLD = re.compile(
    r"""\A\W*(?:
      (?:her|his|my|our|that|the|their|this)\s[^,;:?]*\b(?:forgot|was|went|were)\b[^,;:?]*
    | (?:my|our)\s[^,;:?]*\bis\s(?:\w+er|so|too)\b[^,;:?]*
    | i\s(?:feel|forgot|had|lost|love|ran|think)\b[^;:?]*
    )\Z""",
    re.IGNORECASE | re.VERBOSE,
)
"""Statements about the past or about how things are: they request nothing."""
_THING = re.compile(r"""\d|["`“«*/@_]|\w\.\w|\s(?!I\b)[^\W\d_a-z]""")
"""Marks of a specific thing: a number, quotes, a path, an address, or a capitalised name."""


def is_talk(text: str) -> bool:
    """Whether a text is a remark, or a question that no tool can answer.

    A text about a specific thing is not: a tool may look it up.
    """
    said = text[:_LONGEST].strip()
    if _ASSENT.search(text[-_LONGEST:]) or _TASTES.search(said):
        return True
    return is_remark(said) or (not _THING.search(said) and bool(_IN_GENERAL.match(said) or _TOLD.match(said)))
