"""Finding tools by words: Okapi BM25 over what is known of each tool."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import log

from ...api.tools import ToolSpec

K1 = 1.2
"""How soon further occurrences of a word stop counting; with B the usual value (Robertson and Zaragoza, "The
Probabilistic Relevance Framework: BM25 and Beyond", 2009, section 3)."""
B = 0.75
"""How much the length of a document counts."""

POLITE_WORDS = frozenset(
    "a am an any are be can could give hello hey hi i is it its just kindly let me my of our please see show so some"
    " tell thank that the their them there these they this those us view want was we were what which will would"
    " you your".split()
)
"""Words, in their normal form, that say nothing about what is asked for."""
_STOP_WORDS = POLITE_WORDS | frozenset("about and as at by for from if in into not on or to with".split())
_ASKING_WORDS = frozenset("all did do does have has how long many much there who why".split())
"""Words that are part of what is asked, but that no tool is found by."""

# Letters and digits of any script; scripts that are written without spaces give a word for each character.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+(?:['’][^\W\d_]+)?")
_ALIKE = 0.8
"""How alike two spellings are that may be of one word: difflib's ratio, 1 for the same."""
_PLURAL_FROM = 4
"""The shortest word of which an ending -s is taken for a plural."""
LONGEST_TEXT = 8_000
"""Characters of what is known of a tool that it is found by: what a stranger writes may be of any length."""


def words(text: str) -> Iterator[str]:
    """The words of a text, normalized, in order."""
    return (normalized(found) for found in _WORD.findall(unicodedata.normalize("NFKC", text)))


def normalized(word: str) -> str:
    """The word in the form in which words are compared: case and plural do not count."""
    word = unicodedata.normalize("NFKC", word).casefold().replace("’", "'").removesuffix("'s")
    if len(word) < _PLURAL_FROM or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    return f"{word[:-3]}y" if word.endswith("ies") and len(word) > _PLURAL_FROM else word[:-1]


class Ranking:
    """Ranks tools by a text, over the words of their names, descriptions, parameters and phrases."""

    def __init__(self, specs: Sequence[ToolSpec], documents: Sequence[Mapping[str, int]] | None = None) -> None:
        """`documents` says how often each word stands in what is known of each tool, where that was counted."""
        self._specs = specs
        self._documents = [Counter(words_of(spec)) for spec in specs] if documents is None else documents
        self._lengths = [sum(document.values()) for document in self._documents]
        self._average = sum(self._lengths) / len(specs) if specs else 0.0
        self._holders = Counter(word for document in self._documents for word in document)

    def best(self, text: str, limit: int) -> list[tuple[ToolSpec, float]]:
        """The tools that share a word with the text, the best first and no more than `limit`, with their scores."""
        asked = _telling(text)
        scored = ((spec, self._score(number, asked)) for number, spec in enumerate(self._specs))
        return sorted((pair for pair in scored if pair[1] > 0), key=lambda pair: -pair[1])[:limit]

    def most(self, text: str) -> float:
        """About what a tool would score that has every word of the text: what makes scores comparable."""
        return sum(map(self._weight, _telling(text)))

    def respelled(self, word: str) -> str:
        """The word of a tool that may be meant by one that no tool has; empty where there is none.

        People seldom misspell the first letter, and often swap two others.
        """
        if self._holders[normalized(word)] or not meaningful(word):
            return ""
        # Only what no tool fits comes here, and difflib costs milliseconds to import.
        from difflib import SequenceMatcher

        forms = {word.casefold(), normalized(word)}
        begin = normalized(word)[:1]
        pairs = ((form, known) for known in self._holders if known.startswith(begin) for form in forms)
        rated = ((sorted(pair[0]) == sorted(pair[1]), SequenceMatcher(None, *pair).ratio(), pair[1]) for pair in pairs)
        _, score, best = max(rated, default=(False, 0.0, ""))
        return best if score >= _ALIKE else ""

    def _score(self, number: int, asked: frozenset[str]) -> float:
        document = self._documents[number]
        length = K1 * (1 - B + B * self._lengths[number] / self._average) if self._average else K1
        return sum(
            self._weight(word) * document[word] * (K1 + 1) / (document[word] + length)
            for word in asked
            if word in document
        )

    def _weight(self, word: str) -> float:
        """The inverse document frequency, in the form that stays above zero for words that most tools have."""
        holders = self._holders[word]
        return log(1 + (len(self._specs) - holders + 0.5) / (holders + 0.5))


def meaningful(text: str) -> frozenset[str]:
    """The words of a text, normalized, without those that are too common to tell tools apart."""
    return frozenset(words(text)) - _STOP_WORDS


def _telling(text: str) -> frozenset[str]:
    return meaningful(text) - _ASKING_WORDS


def words_of(spec: ToolSpec) -> list[str]:
    """The words that a tool is found by, as often as they stand in what is known of it."""
    properties = spec.parameters.get("properties", {})
    texts = [spec.name, spec.description]
    texts += [f"{name} {schema.get('description', '')}" for name, schema in properties.items()]
    texts += [phrase["say"] for phrase in spec.phrases]
    common = _STOP_WORDS | _ASKING_WORDS
    return [word for word in words("\n".join(texts)[:LONGEST_TEXT]) if word not in common]
