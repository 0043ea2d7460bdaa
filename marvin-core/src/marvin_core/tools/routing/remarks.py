"""Recognises remarks: sentences that state how things are, and opinion questions. Neither asks for a tool."""

from __future__ import annotations

import re

_NO_QUESTION = r"(?!(?:how|what|when|where|which|who|why)\b)"
_STATEMENT = re.compile(
    rf"""\A\W*(?:(?:and|but|honestly|in\s\w+|so|well),?\s)?(?:
      (?:
          (?:a|an|another|any|each|every|her|his|most|my|no|our|some|that|the|their|these|this|those|your)\s
        | (?:everybody|everyone|he|it|nobody|people|she|somebody|someone|there|they|we|you)\b
        | (?:i|we)(?:\s(?:always|just|never|once|only|still|used\sto)\b|['’]ve\s(?:always|never)\b)
      )(?:(?!\b(?:i|if|that|what|whether|which|who)\b)[^?])*?
      \b(?:
          (?:is|are|was|were|has|had|have|does|do|did|will|wo|can|ca)(?:n['’]t)?
        | (?:always|hardly|never|only|rarely|really)
        | (?:believe|call|care|feel|get|hate|like|lose|love|make|mean|print|say|seem|smell|sound|take|taste|tell
            |think)s?
        | (?:ate|became|began|broke|came|felt|forgot|found|gave|got|heard|kept|left|lost|made|met|paid|ran|said|saw
            |slept|spent|thought|told|took|went|woke|wrote|[^\W\d_]{{2,}}ed)
      )\b
    | i\s(?:learned|trust|was)\b
    | {_NO_QUESTION}(?:[^\W\d_]+\s){{0,2}}[^\W\d_]+s\s(?:are|were|(?:make|stress|only|always|never)\b)
    | {_NO_QUESTION}[^\W\d_]+ing\b[^?]*\sis\b
    | {_NO_QUESTION}[^\W\d_]+\s(?:(?:in|of|on)\s\w+\s(?:\w+\s)?)?(?:is|was)\b
    | {_NO_QUESTION}[^\W\d_]+\s(?:always|never)\s[^\W\d_]+s\b
    | [\d:.,]+\s?(?:[ap]\.?m\.?|o['’]clock|[^\W\d_]+)?\s(?:is|are|was|were)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
"""A subject and a verb in a form that no request begins with."""
_OPINION = re.compile(
    r"""\A\W*(?:
      (?:do|does|did|are|were|would|have)\s(?:you|people|men|women|kids|any(?:body|one))\b(?!\s(?:find|have|know|see|show|tell)\b)
    | (?:do|does|did|is|are|was|were)n['’]?t\s(?!(?:there|we|i)\b)
    | who\seven\b
    | what\san?\s(?!\w+\s(?:is|means)\b)
    | what\sis\sit\swith\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
"""Questions about opinions and habits, and exclamations."""
_QUESTION = re.compile(r"\A\W*(?:do|does|did|is|are|was|were|why|how)\s(?!(?:do\s)?(?:i|we)\b)", re.IGNORECASE)
_WANTED = re.compile(
    r"""\b(?:need(?:s|n['’]t)?|must|should|want|wanted|wish|please|(?:ha[sd]|have|got|ought|going|about|supposed)\sto|gotta
    |remind\sme\s(?:about|of|to)|looking\sfor|wonder|no\sidea|(?:can|could)\s(?:you|i|we)|would\s(?:be|like)|let['’]?s
    |(?:can|could)\s(?:\w+\s)?(?:be|do|go|stop)|again|since
    |bugs?|broken|crash\w*|errors?|fail\w*|missing|slow|stuck|wrong|works?|working
    |(?:is|are|do|does|did|ca|can|wo)n?['’]?t\s(?:build|compile|connect|find|install|know|load|open|pass|play|remember|respond
        |run|see|show|start|stop))\b
    |['’]d\slike|,\s(?:so\s|and\s)?\w+\s(?:it|them)\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Words of wishes and of problems to solve."""
_SPECIFIC = re.compile(
    r"""["`“«*/@_\\]|\w\.\w|\d|\b(?:today|tonight|tomorrow|yesterday|(?:mon|tues|wednes|thurs|fri|satur|sun)day|noon|midnight
    |(?:this|next)\s(?:morning|afternoon|evening|week|month))\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Marks of a specific thing or time."""
_VIEW = re.compile(
    r"""\b(?:always|basically|ever|every(?:body|one)|frankly|honestly|i\sswear|literally|(?<!for\s)my\slife|never|nobody|once
    |overrated|philosophically|really|the\snerve|too|very|worth|ha(?:ha)+|lol|damn)\b
    |\b(?:is|are|was|were)\s(?:an?|just|like|\w+er|so)\s""",
    re.IGNORECASE | re.VERBOSE,
)
"""Words of views and habits."""


def is_remark(text: str) -> bool:
    """Whether a text states something, or asks for an opinion. With a specific thing in it, it must state a view."""
    if _WANTED.search(text):
        return False
    if _STATEMENT.match(text) or _OPINION.match(text):
        return not _SPECIFIC.search(text) or bool(_VIEW.search(text))
    return bool(_QUESTION.match(text) and _VIEW.search(text))
