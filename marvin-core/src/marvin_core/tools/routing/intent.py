"""Tells requests for a tool from talk: logistic regression over the form of a text and what the index knows of it.

The weights are in `intent.json`; `benchmarks/catalogue/training.py` learns them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from math import exp

from .slots import Token, Utterance
from .synonyms import deeds
from .words import stem

_WEIGHTS = "intent.json"
_KINDS = ("path", "glob", "url", "quoted", "duration", "time", "email", "expression", "identifier", "unit")
"""The kinds of values whose presence counts."""
_LENGTHS = (1, 2, 3, 4, 6, 8, 10, 13, 17)
_PLURAL_FROM = 4
_COMMON = frozenset(
    """a about after again ago all almost also always am an and another any anybody anyone anything are aren't as at
    away back be because been before being best better between both but by can can't could couldn't did didn't do does
    doesn't doing don't done down each either else enough even ever every everybody everyone everything far few finally
    for from get give go god goes going gone good got great had hardly has hasn't have haven't having he her here hers
    hey hi him his hmm honestly how i i'd i'll i'm i've if in instead into is isn't it it's its itself just last least
    less let let's lets like likes little ll lol long look love make many may maybe me mean might mine more most much
    must my myself need needs neither never next no nobody none nor not nothing now of off often oh ok okay old on once
    one only onto or other our out over own people perhaps please pls put quite rather really right same say says seem
    seems shall she should show since so some somebody someone something sometimes soon still such sure take tell than
    thank thanks that that's the their them then there there's these they they're thing things think this those though
    through till time to today together tomorrow tonight too try under until up us used very want wants was wasn't way
    we we're we've well were what what's when where where's whether which while who who's whole whom whose why will
    wish with without won't would wow year yes yesterday yet you you're you your yours hate feel feels believe prefer
    typical ah ugh damn haha sorry wonder guess thought made felt came went said kind kinds""".split()
)
"""Words that count by themselves; others count by their class."""


def knows(word: str) -> bool:
    """Whether the texts for training had a word, which is therefore no misspelling."""
    return word in _COMMON or f"word {stem(word)}" in _weights()


def likelihood(found: Mapping[str, float]) -> float:
    """How likely a text with these features asks for a tool, from 0 to 1."""
    weights = _weights()
    total = sum(weights.get(name, 0.0) * value for name, value in found.items())
    return 1 / (1 + exp(-max(-50.0, min(50.0, total))))


def features(text: str, evidence: Mapping[str, float]) -> dict[str, float]:
    """The features of a text, by name. `evidence` says how well it matches the tools."""
    said = Utterance(text)
    tokens = [token for token in said.tokens if token.kind != "mark" or token.text.isalnum()]
    shown = [_shown(token) for token in tokens]
    names = ["bias", *(f"has {one}" for one in shown), *(f"pair {one} {other}" for one, other in pairwise(shown))]
    names += [f"first {' '.join(shown[:count])}" for count in (1, 2) if shown]
    names += [f"last {one}" for one in shown[-1:]]
    names += [f"word {stem(one)}" for one in map(_spelled, tokens) if one[:1].isalpha() and one not in _COMMON]
    names += [f"length {length}" for length in _LENGTHS if len(shown) >= length]
    names += [f"value {kind}" for kind in _KINDS if next(said.find(kind), None)]
    names += [*(f"ends {mark}" for mark in ".!?" if text.rstrip().endswith(mark)), *_marks(text, tokens)]
    return {**dict.fromkeys(names, 1.0), **evidence}


def _marks(text: str, tokens: Sequence[Token]) -> list[str]:
    opening = text.strip().split(":")[0]
    found = {
        "colon": len(opening) < len(text.strip()) and 0 < len(opening.split()) <= 2 and ": " in text,
        "comma": "," in text,
        "value number": any(token.kind == "number" for token in tokens),
        "value name": any(token.kind == "word" and _is_name(token.text) for token in tokens[1:]),
    }
    return [name for name, is_there in found.items() if is_there]


def _is_name(word: str) -> bool:
    return word[:1].isupper() and word.replace("’", "'") not in ("I", "I'm", "I've", "I'd", "I'll")


def _spelled(token: Token) -> str:
    return token.text.casefold().replace("’", "'") if token.kind == "word" else ""


def _shown(token: Token) -> str:
    """A token as the model sees it: a common word itself, a value by its kind, and other words by their class."""
    word = _spelled(token)
    if not word:
        return f"<{token.kind}>"
    if word in _COMMON:
        return word
    if deeds(stem(word.removesuffix("s"))) and not word.endswith(("ing", "ed")):
        return "VERB"
    if word.endswith("ing"):
        return "ING"
    if word.endswith("ed"):
        return "ED"
    return "PLURAL" if word.endswith("s") and len(word) >= _PLURAL_FROM else "OTHER"


@cache
def _weights() -> Mapping[str, float]:
    found: dict[str, float] = json.loads((files(__package__) / _WEIGHTS).read_text("utf-8"))
    return found
