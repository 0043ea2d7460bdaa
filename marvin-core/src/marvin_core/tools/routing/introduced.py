"""Tells whether a request introduces the free text of a phrase, or only goes on after the phrase's words.

The phrase `skill {name}` fits both "read the skill pay-slips" and "skills pay the bills". In the first one the text is
a value: a verb, a preposition or a colon comes before it, or it has the form of a name. In the second one it is the
rest of a sentence, so that a call would be a guess.
"""

from __future__ import annotations

import re

from .phrases import Match
from .slots import Token, Utterance
from .synonyms import deeds
from .words import POLITE_WORDS, stem

_PREPOSITIONS = frozenset(
    "about after against around at between by for from in into near of on over regarding to with within".split()
)
_NAMING = frozenset("called down like mention mentioning named say saying titled topic user : =".split())
"""Words and marks after which a value is said, beside verbs and prepositions."""
_VERBS = frozenset(
    "abort blame browse calculate compute convert define diff email explain google install load mute pip play query"
    " remind rerun spell sum summarise summarize sing sang record recorded tk translate use visit".split()
)
"""Verbs of requests that ask for none of the common actions (`synonyms.deeds`)."""
_INTRODUCING = _PREPOSITIONS | _NAMING | _VERBS
_PASSED_OVER = POLITE_WORDS - _PREPOSITIONS
_GOING_ON = frozenset(
    "am are be been being can could did do does had has have is may might must shall should was were will would"
    " i he she they we you it me my our us your his her their".split()
)
"""Words by which a sentence goes on, with which no value begins."""
_OWN = frozenset("i i'd i'll i'm i've we we're we've my our he she they his her their it it's".split())
"""Openings of statements."""
_PAST = frozenset({"was", "were"})
_ASKING = frozenset("what which who whose whom where when why how did does do is are was were has have".split())
_CODED = re.compile(r"(?=.*[\d_/.-]).*\w.*")
"""Ids, paths and names with hyphens."""


def introduces(said: Utterance, match: Match) -> bool:
    """Whether each free text of a request is introduced as a value, and the request does not read as a statement."""
    if not said.tokens or said.tokens[0].word in _OWN:
        return False
    is_asked = said.tokens[0].word in _ASKING
    if not is_asked and any(token.word in _PAST for token in said.tokens[: match.free[0][0]]):
        return False
    return all(_is_value(said.tokens, first, end) for first, end in match.free)


def plain_text(said: Utterance, match: Match) -> str:
    """The words of the free texts in a request, without quotes, names, and what follows a colon.

    A word among them may ask for another tool, while names contain any word.
    """
    texts = [said.tokens[first:end] for first, end in match.free if first == 0 or said.tokens[first - 1].text != ":"]
    plain = [text for text in texts if text[0].kind != "quoted"]
    return " ".join(token.text for text in plain for token in text if token.text == "I" or not token.text[:1].isupper())


def _is_value(tokens: tuple[Token, ...], first: int, end: int) -> bool:
    value = tokens[first]
    if value.text.casefold() in _GOING_ON:
        return False
    before = next((token for token in reversed(tokens[:first]) if token.word not in _PASSED_OVER), None)
    if value.word in _PREPOSITIONS:
        is_searched = before is not None and value.word == "for" and bool(deeds(stem(before.word)))
        return is_searched or _is_name(tokens[first + 1 : end])
    return (first > 0 and _is_name(tokens[first:end])) or (before is not None and _introduces(before))


def _introduces(token: Token) -> bool:
    return token.word in _INTRODUCING or bool(deeds(stem(token.word)))


def _is_name(tokens: tuple[Token, ...]) -> bool:
    """Whether a value is written like a name or an id."""
    said = next((token for token in tokens if token.word not in POLITE_WORDS), None)
    return said is not None and (said.kind != "word" or said.text[:1].isupper() or bool(_CODED.fullmatch(said.text)))
