"""Ranks tools by words: Okapi BM25 over the texts of each tool, and the similarity of its nearest phrase."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from math import log

from ...api.record import Record
from ...api.tools import ToolSpec
from .shapes import SHAPES, has_option, shapes, shapes_of
from .slots import ABOUT_TIME, TYPED, Utterance, kind_of
from .synonyms import concepts, deeds
from .words import ASKING_WORDS, LONG_WORD, STOP_WORDS, is_misspelling, stem, words

K1 = 1.2
"""The saturation of repeated words; with B the usual value (Robertson and Zaragoza, "The
Probabilistic Relevance Framework: BM25 and Beyond", 2009, section 3)."""
B = 0.75
"""The influence of the length of a document."""
LONGEST_TEXT = 8_000
"""The maximum length of a tool's indexed text in characters: third-party texts may have any length."""

_NAME, _DESCRIPTION, _PHRASE, _DOES = 4, 1, 2, 4
"""The weight of a word by its position."""
_CONCEPT = 0.55
"""The relative weight of a synonym."""
_VERB = 0.2
"""The relative weight of a verb such as `make` in the share of a request that a tool knows."""
_OTHER = 0.8
"""The similarity of a synonym."""
_DEED = 0.6
"""The similarity of a verb for the same action."""
_VALUE = 0.7
"""The similarity of a value of a kind that a tool takes."""
_IN_VALUE = 0.5
"""The similarity of a word in an address, a path or quotes."""
_IN_TAIL = 0.35
"""The similarity of a word after a colon."""
_NEAREST = 0.7
"""The weight of the nearest phrase, relative to all the words."""
_STRANGE = 0.7
"""The penalty for a word that no tool has."""
_WRITTEN = (
    "<path>", "<glob>", "<url>", "<quoted>", "<duration>", "<time>", "<amount>", "<expression>", "<identifier>",
    "<repository>", *SHAPES,
)  # fmt: skip
"""Kinds of values that are rare in texts without a request for a tool."""
_COMPARED = 24
"""The number of tools whose phrases are compared."""
_ALIKE = 0.8
"""The minimum similarity of two spellings of one word: difflib's ratio, 1 for identical ones."""
_SPELLED = 5
"""The length of the shortest word in which one letter is corrected without a question."""
_LONGEST_QUERY = 2_000
_HOST = re.compile(r"https?://(?:[^/?#]*@)?([^/?#:]+)", re.IGNORECASE)
_SERVICE = 4
"""The length of the shortest part of a host that counts as the name of a service."""
_KINDS = sorted(TYPED - {"number", "integer"})
_MARKS = "=<!"
"""The prefixes of names of concepts, kinds of values and actions; no word begins with them."""
_COMMON = STOP_WORDS | ASKING_WORDS
_PREPOSITIONS = frozenset("about for of on in at near from to by with called named like that is as into".split())
"""Words before a value of free text, which may contain words unknown to all tools."""


class Asked(Record):
    """The search terms of a request: stems of its words, concepts and kinds of values, each with its share.

    `said` are the stems of its words. `values` are the stems within values, which no tool needs to have.
    """

    parts: Mapping[str, float]
    said: frozenset[str]
    values: frozenset[str]


class Ranking:
    """Ranks tools for a text by the words of their names, descriptions, parameters and phrases."""

    def __init__(self, specs: Sequence[ToolSpec], documents: Sequence[Mapping[str, int]] | None = None) -> None:
        """`documents` is the word frequency in the texts of each tool, if it is already known."""
        self._specs = specs
        self._documents = [Counter(words_of(spec)) for spec in specs] if documents is None else documents
        lengths = [sum(document.values()) for document in self._documents]
        average = sum(lengths) / len(specs) if specs else 1.0
        self._norms = [K1 * (1 - B + B * length / average) if average else K1 for length in lengths]
        self._holders = Counter(word for document in self._documents for word in document)
        self._phrases: dict[int, list[frozenset[str]]] = {}
        self._corrected: dict[str, str] = {}

    def best(self, text: str, limit: int) -> list[tuple[ToolSpec, float]]:
        """The tools that share a word with the text, best first and at most `limit`, with their scores."""
        asked = self.asked(text)
        figures = {word: 1.0 for word in words(text[:_LONGEST_QUERY]) if word.isdigit()}
        wanted = asked.replace(parts={**figures, **asked.parts}) if figures else asked
        return [(self._specs[number], score) for number, score in self._best(wanted, limit)]

    def near(self, text: str, limit: int) -> list[tuple[ToolSpec, float]]:
        """The same, without regard to numbers."""
        return [(self._specs[number], score) for number, score in self._best(self.asked(text), limit)]

    def evidence(self, text: str, limit: int) -> dict[str, float]:
        """How well the nearest tools match a text, as figures for `intent.likelihood`.

        They are relative to the weight of a word that no tool has, so that they mean the same for few and for many
        tools.
        """
        asked = self.asked(text)
        best = self._best(asked, limit)
        told = asked.said - asked.values
        strange = sum(not self._holders[word] for word in told)
        found = {
            "strange": min(strange, 6) / 3,
            "strange share": strange / max(1, len(told)),
            "told": min(len(told), 15) / 5,
            "values": min(3, len(asked.values)) / 3,
        }
        if not best:
            return {**found, "no tool": 1.0}
        weights, rarest = self._weights(asked), self._weight("")
        whole = sum(weights.values()) or 1.0
        near = max(self._nearest(number, weights, whole) for number, _ in best)
        bare = near * whole / (whole + _STRANGE * strange * rarest)
        number, score = best[0]
        found |= {
            "score": min(4.0, score / rarest) / 4,
            "log score": log(1 + score / rarest),
            "score of a word": min(3.0, score / rarest / max(1.0, len(told) + 0.5)),
            "nearest": near,
            "nearest of all": bare,
            "square of nearest": bare**2,
            "covered": max(self._covered(number, asked) for number, _ in best),
            "margin": (score - best[1][1]) / score if len(best) > 1 else 1.0,
            "is named": float(any(self._is_named(number, told) for number, _ in best)),
        }
        return found | self._evidence_of(number, asked)

    def _evidence_of(self, number: int, asked: Asked) -> dict[str, float]:
        """What the words and values of a text say for one tool."""
        document, rarest = self._documents[number], self._weight("")
        told = asked.said - asked.values
        own = self._own(number)
        known = [word for word in told if word in document]
        alike = [word for word in told if word not in document and any(other in document for other in concepts(word))]
        kinds = {kind: "known" if kind in document else "other" for kind in _WRITTEN if kind in asked.parts}
        whole = sum(map(self._weight, told)) or 1.0
        return {
            "known": min(5.0, sum(map(self._weight, known)) / rarest),
            "known share": sum(map(self._weight, known)) / whole,
            "alike": min(5.0, sum(map(self._weight, alike)) / rarest),
            "in name": sum(self._weight(word) for word in known if word in own) / rarest,
            "name share": sum(word in own for word in known) / max(1, len(own)),
            **{f"{which} {kind}": 1.0 for kind, which in kinds.items()},
        }

    def _own(self, number: int) -> set[str]:
        return {*map(stem, words(self._specs[number].name.replace("_", " ")))}

    def _is_named(self, number: int, told: frozenset[str]) -> bool:
        own = self._own(number)
        return len(own) > 1 and own <= told

    def of_its_service(self, text: str, spec: ToolSpec) -> list[ToolSpec]:
        """The tools for the service of an address in the text, if this tool belongs to no such service.

        `open` and an address apply to any page; but if the address is that of a service, its own tool may be meant.
        """
        addresses = Utterance(text[:_LONGEST_QUERY]).find("url")
        hosts = [match[1].casefold().split(".")[:-1] for _, _, url in addresses if (match := _HOST.match(url))]
        labels = {label for host in hosts for label in host if len(label) >= _SERVICE}
        named = [_as_written(label) for label in labels]
        named = [pattern for pattern in named if not pattern.search(_told(spec))]
        if not named:
            return []
        ranked = self._best(self.asked(text), len(self._specs))
        others = [self._specs[number] for number, _ in ranked if "net" in self._specs[number].access]
        return [other for other in others if any(pattern.search(_told(other)) for pattern in named)]

    def is_of_another(self, text: str, spec: ToolSpec, near: Sequence[tuple[ToolSpec, float]]) -> bool:
        """Whether one of the nearest tools has a word of the text that this tool does not have."""
        names = {found.name for found, _ in near} | {spec.name}
        has = {one.name: self._documents[number] for number, one in enumerate(self._specs) if one.name in names}
        own = has.pop(spec.name)
        told = {stem(word) for word in words(text) if word not in _COMMON and not word.isdigit()}
        return any(word in document for word in told if word not in own for document in has.values())

    def asked(self, text: str) -> Asked:
        """The search terms of a text."""
        said = Utterance(text[:_LONGEST_QUERY])
        parts: dict[str, float] = {}
        told: set[str] = set()
        values: set[str] = set()
        for kind in _KINDS:
            for first, end, _ in said.find(kind):
                parts[f"<{kind}>"] = _VALUE
                values.update(stem(word) for word in words(said.part(first, end)))
        numbers = {end for _, end, _ in said.find("number")}
        if any(first in numbers for first, _, _ in said.find("unit")):
            parts["<amount>"] = _VALUE
        if has_option(said.text):
            parts["<option>"] = _VALUE
        is_after_preposition, tail = False, _tail(said)
        asks = [deed for token in said.tokens if (deed := deeds(stem(token.word)))][:1]
        parts.update((deed, _DEED) for found in asks for deed in found)
        for number, token in enumerate(said.tokens):
            for shape in shapes(token.text):
                parts[shape] = _VALUE
                values.add(stem(token.word))
            is_after_preposition = is_after_preposition or token.word in _PREPOSITIONS
            is_value = token.kind != "word" or "_" in token.text or (number > 0 and token.text[:1].isupper())
            for word in words(token.text):
                if word in _COMMON or word.isdigit():
                    continue
                known = self._known(stem(word))
                if number >= tail:
                    values.add(known)
                    parts.setdefault(known, _IN_TAIL)
                    continue
                if is_value and token.kind not in ("word", "number"):
                    values.add(known)
                    parts.setdefault(known, _IN_VALUE)
                    continue
                if not self._holders[known] and (is_value or is_after_preposition or word in ABOUT_TIME):
                    values.add(known)
                told.add(known)
                parts[known] = 1.0
                found = concepts(known)
                for concept in found:
                    parts[concept] = max(parts.get(concept, 0.0), _CONCEPT / len(found) ** 0.5)
        return Asked(parts=parts, said=frozenset(told), values=frozenset(values))

    def respelled(self, word: str) -> str:
        """The known word that an unknown word may be a misspelling of; empty if there is none.

        People seldom misspell the first letter, and often swap two others.
        """
        form = next(words(word), "")
        if not form or form in _COMMON or self._holders[stem(form)] or concepts(stem(form)):
            return ""
        for spelled in (word.casefold(), form, stem(form)):
            found = self._known(spelled)
            if found != spelled:
                return found
        if len(form) < LONG_WORD:
            return ""
        # Only texts that match no tool get here, and importing difflib takes milliseconds.
        from difflib import get_close_matches

        near = [known for known in self._holders if known[:1] == form[:1] and not form.startswith(known)]
        return next(iter(get_close_matches(stem(form), near, n=1, cutoff=_ALIKE)), "")

    def _known(self, word: str) -> str:
        """The word itself, or a known one that differs in one letter or by two swapped ones."""
        if len(word) < _SPELLED or word in self._holders or concepts(word):
            return word
        if word not in self._corrected:
            near = (known for known in self._holders if abs(len(known) - len(word)) <= 1 and known[:1] == word[0])
            alike = [known for known in near if is_misspelling(word, known)]
            if len(self._corrected) > _COMPARED:
                self._corrected.clear()
            self._corrected[word] = max(alike, key=lambda known: self._holders[known], default=word)
        return self._corrected[word]

    def _best(self, asked: Asked, limit: int) -> list[tuple[int, float]]:
        weights = self._weights(asked)
        scored = ((number, self._score(number, weights)) for number in range(len(self._specs)))
        found = sorted((pair for pair in scored if pair[1] > 0), key=lambda pair: -pair[1])
        whole = sum(weights.values()) or 1.0
        compared = [
            (number, score + _NEAREST * whole * self._nearest(number, weights, whole))
            for number, score in found[: max(limit, _COMPARED)]
        ]
        return sorted(compared, key=lambda pair: -pair[1])[:limit]

    def _weights(self, asked: Asked) -> dict[str, float]:
        return {word: part * self._weight(word) for word, part in asked.parts.items() if self._holders[word]}

    def _score(self, number: int, weights: Mapping[str, float]) -> float:
        document, norm = self._documents[number], self._norms[number]
        shared = [word for word in weights if word in document]
        if all(word[0] == "!" for word in shared):  # the same action on something else has nothing in common
            return 0.0
        return sum(weights[word] * document[word] * (K1 + 1) / (document[word] + norm) for word in shared)

    def _nearest(self, number: int, weights: Mapping[str, float], whole: float) -> float:
        """The similarity of the request and its nearest phrase, from 0 to 1."""
        best = 0.0
        for phrase in self._phrases_of(number):
            shared = sum(weights[word] for word in phrase if word in weights)
            if shared:
                missing = sum(self._weight(word) for word in phrase if word not in weights and word[0] not in _MARKS)
                best = max(best, shared / (whole + missing))
        return best

    def _phrases_of(self, number: int) -> list[frozenset[str]]:
        if number not in self._phrases:
            self._phrases[number] = [
                frozenset(_of_phrase(phrase)) for phrase in self._specs[number].phrases[:_COMPARED]
            ]
        return self._phrases[number]

    def _covered(self, number: int, asked: Asked) -> float:
        """The share of the request that a tool knows. For a word that no tool has, synonyms are not enough."""
        document = self._documents[number]
        whole = known = 0.0
        is_literal = False
        told = asked.said - asked.values
        strange = sum(not self._holders[word] for word in told)
        for word in told:
            part = _VERB if deeds(word) else 1.0
            whole += part
            if word in document:
                known += part
                is_literal = is_literal or part == 1.0
            elif any(concept in document for concept in concepts(word)):
                known += part * _OTHER
        if any(word[0] == "<" and word in document for word in asked.parts):
            whole, known, is_literal = whole + 1.0, known + 1.0, True
        return known / whole if whole and 3 * strange < 2 * len(told) and (is_literal or not strange) else 0.0

    def _weight(self, word: str) -> float:
        """The inverse document frequency, in the variant that is positive for words that most tools have."""
        holders = self._holders[word]
        return log(1 + (len(self._specs) - holders + 0.5) / (holders + 0.5))


def _tail(said: Utterance) -> int:
    """The first token of the text after a colon, as in `translate to French: good night`; else their number."""
    colons = (number for number, token in enumerate(said.tokens) if number and token.text == ":")
    colon = next(colons, len(said.tokens))
    is_told = any(token.kind == "word" and token.word not in _COMMON for token in said.tokens[:colon])
    return colon + 1 if is_told and len(said.tokens) > colon + 2 else len(said.tokens)


def _told(spec: ToolSpec) -> str:
    """The description of a tool: its name, its text and the names of its parameters."""
    return " ".join([spec.name, spec.description[:LONGEST_TEXT], *spec.parameters.get("properties", {})])


def _as_written(label: str) -> re.Pattern[str]:
    """A service name in whole words, possibly several: `stackoverflow` matches Stack Overflow."""
    letters = r"[\W_]?".join(map(re.escape, label))
    return re.compile(rf"(?<![^\W_]){letters}(?![^\W_])", re.IGNORECASE)


@cache
def _expanded(word: str) -> tuple[str, ...]:
    """The stem of a word and its concepts; none for a word that identifies no tool."""
    return () if word in _COMMON or word.isdigit() else (stem(word), *concepts(stem(word)))


def _of_text(text: str) -> Iterator[str]:
    for word in words(text[:LONGEST_TEXT]):
        yield from _expanded(word)


def _figures(text: str) -> Iterator[str]:
    """The numbers in a name; those in phrases and limits do not describe a tool."""
    return (word for word in words(text[:LONGEST_TEXT]) if word.isdigit())


def _of_phrase(phrase: Mapping[str, object]) -> Iterator[str]:
    yield from _of_text(str(phrase["say"]))
    kinds = phrase.get("slots", {})
    if isinstance(kinds, dict):
        yield from (f"<{kind}>" for kind in kinds.values() if kind in _KINDS)
        if "unit" in kinds.values() and "number" in kinds.values():
            yield "<amount>"


def words_of(spec: ToolSpec) -> list[str]:
    """The search terms of a tool by weight: stems, their concepts, and kinds of values."""
    properties = spec.parameters.get("properties", {})
    found = [*_of_text(spec.name), *_figures(spec.name)] * _NAME + [*_of_text(spec.description)] * _DESCRIPTION
    first = next((deed for word in words(spec.description) if (deed := deeds(stem(word)))), ())
    named = [deed for word in words(spec.name.replace("_", " ")) for deed in deeds(stem(word))]
    found += [*(named or first)] * _DOES
    for name, schema in properties.items():
        found += _of_text(f"{name} {schema.get('description', '')}")
        found += [*shapes_of(name)] * 2
        kind = kind_of(name, schema)
        if kind in _KINDS:
            found += [f"<{kind}>"] * 2
    for phrase in spec.phrases:
        found += [*_of_phrase(phrase)] * _PHRASE
    return found[:LONGEST_TEXT]
