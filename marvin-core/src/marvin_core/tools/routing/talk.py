"""What people say without wanting anything done: no tool is offered for it unless it is named."""

from __future__ import annotations

import re

_LONGEST = 400
_TASTES = re.compile(
    r"\byour favou?rite\b"
    r"|\A\W*(?:do|did|would|could) you (?:ever )?(?:dream|enjoy|feel|hate|like|love)\b(?! (?:me )?to\b)",
    re.IGNORECASE,
)
_ASSENT = re.compile(
    r",\s*(?:is|was|are|were|do|does|did|has|have|wo|would|ca|could|should)n['’]t\s+\w+\W*\Z", re.IGNORECASE
)
"""How whoever wants nothing but assent ends: `the weather is nice, isn't it`."""
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
"""Questions about how things are in general, which are answered by knowledge and not by what a tool looks up."""
_TOLD = re.compile(
    r"""\A\W*(?:
      (?:her|his|my|our|that|the|their|this)\s[^,;:?]*\b(?:forgot|was|went|were)\b[^,;:?]*
    | (?:my|our)\s[^,;:?]*\bis\s(?:\w+er|so|too)\b[^,;:?]*
    | i\s(?:feel|forgot|had|lost|love|ran|think)\b[^;:?]*
    )\Z""",
    re.IGNORECASE | re.VERBOSE,
)
"""What is told of things that are over, or of how they are: nothing in it asks for anything."""
_THING = re.compile(r"""\d|["`“«*/@_]|\w\.\w|\s(?!I\b)[^\W\d_a-z]""")
"""What names one thing: a figure, quotes, a path, an address, or a name with a capital."""


def is_talk(text: str) -> bool:
    """Whether a text is a remark, or a question that no tool can answer.

    What is asked or told of one named thing is none: that may be looked up.
    """
    said = text[:_LONGEST].strip()
    if _ASSENT.search(text[-_LONGEST:]) or _TASTES.search(said):
        return True
    return not _THING.search(said) and bool(_IN_GENERAL.match(said) or _TOLD.match(said))
