"""Full-text search in Marvin's documentation, for questions without a model."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from importlib.resources import files

from ..api.record import Record
from ..api.tools import ToolSpec
from .routing.ranking import Ranking
from .routing.synonyms import deeds
from .routing.words import ASKING_WORDS, STOP_WORDS, stem, words
from .topics import OWN, Topics

_PASSAGES, _QUESTIONS, _TOPICS = "handbook.jsonl", "questions.toml", "topics.toml"
_BY_TOPIC = "how-to/questions.md"
"""The page whose sections are found by their topics only: their headings are common words."""
_LONGEST = 200
"""The maximum number of characters of a question."""
_LOOKED_AT, _OF_PAGE = 12, 24
"""The maximum number of examined passages, and the same if the page is known."""
_ALIKE = 0.7
"""The minimum fraction of common words of two questions that count as equal."""
_OF_HEADING = 0.5
"""The minimum fraction of common words of a heading and the subject of a question."""
_FILLING = frozenset("a an the please hey hello hi marvin me for so just now here exactly actually".split())
_NAMED = re.compile(r"\bmarvin(?:'s)?\b|\bconfig\.yaml\b", re.IGNORECASE)
_LITERAL = re.compile(r"(?<![\w/])/[a-z]{3,}(?![\w/.])|(?<!\S)--[a-z][a-z-]{2,}|\b(?:MARVIN|LLM)_[A-Z_]+")
"""A command, a flag or a variable."""
_ASKING = re.compile(r"\s*(?:how|where|what|which|when|why|who|can|could|does|do|is|are|tell|explain|help)\b", re.I)
_HOW = re.compile(
    r"\s*(?:(?:please\s+)?(?:tell|show) me\s+|(?:and|so|but)\s+)?(?:how (?:do|can|could|would|should|must|to)\b(?! you)"
    r"|where (?:do|can|should|must) i\b|can i\b|may i\b|is there a way to\b|what happens (?:if|when|to)\b"
    r"|which .* (?:can|do|must) i\b)",
    re.IGNORECASE,
)
_WHAT = re.compile(r"\s*(?:what(?:'s|’s| is| are(?! you)| does)|explain|tell me about)\b", re.IGNORECASE)


class Passage(Record):
    """A section of a page: `page` is its file below docs/, `title` that of the page, `heading` of the section."""

    page: str
    title: str
    heading: str
    text: str


def told(passage: Passage) -> str:
    """The passage as an answer, with the title of its page."""
    place = passage.title if passage.heading == passage.title else f"{passage.title}: {passage.heading}"
    return f"{passage.text}\n\nFrom the documentation, {place} ({passage.page})"


class Handbook:
    """A search index of the passages. It takes a tenth of a second to build; `handbook` builds it once, and the
    ranking of all passages is built where no list of questions answers."""

    def __init__(
        self, passages: Sequence[Passage], questions: Mapping[str, Sequence[str]], topics: Topics | None = None
    ) -> None:
        """`questions` are questions that a page answers, by page; `topics` finds the section of other questions."""
        self._passages = passages
        self._topics = topics or Topics({})
        self.sections = {(one.page, one.heading): one for one in reversed(passages)}
        """The first passage of each section, by page and heading."""
        self._first = {passage.page: passage for passage in reversed(passages)}
        self._asked = [
            (_all_words(question), _telling(question), page) for page, asked in questions.items() for question in asked
        ]

    @cached_property
    def _ranking(self) -> Ranking:
        return Ranking(
            [
                ToolSpec(
                    name=f"{passage.title} {passage.heading}",
                    description=passage.text,
                    parameters={},
                    access=frozenset({"read"}),
                    source=str(number),
                )
                for number, passage in enumerate(self._passages)
            ]
        )

    def answer(self, text: str, *, is_known: bool = False) -> Passage | None:
        """The passage that answers a question about Marvin; None for any other question.

        Args:
            is_known: whether the text means a tool; then only a question that certainly asks about Marvin is answered.
        """
        if len(text) > _LONGEST:
            return None
        page = self._known_page(text, 1.0 if is_known else _ALIKE)
        if page:
            return self._of_page(page, text)
        section = self._topics.section(text, is_strict=is_known)
        if section:
            return self.sections[section.page, section.heading]
        return None if is_known else self._about(text)

    def _known_page(self, text: str, alike: float) -> str:
        said, about = _all_words(text), _telling(text)
        likeness, page = max(
            (
                (len(said & asked) / len(said | asked), page)
                for asked, their, page in self._asked
                if about <= their and bool(about) == bool(their) and said & asked
            ),
            default=(0.0, ""),
        )
        return page if likeness >= alike else ""

    def _of_page(self, page: str, text: str) -> Passage:
        """The best matching passage of a page, or its first one."""
        found = (self._passages[int(spec.source)] for spec, _ in self._ranking.best(text, _OF_PAGE))
        return next((one for one in found if one.page == page), None) or self._first[page]

    def _about(self, text: str) -> Passage | None:
        asked = _telling(text)
        if not asked or not _ASKING.match(text):
            return None
        named = [name for name in _LITERAL.findall(text) if name]
        if named:
            holding = [passage for passage in self._passages if _has(passage.heading, named[0])]
            holding += [passage for passage in self._passages if _has(passage.text, named[0])]
            return next(iter(holding), None)
        ranked = [self._passages[int(spec.source)] for spec, _ in self._ranking.best(text, _LOOKED_AT)]
        is_named = bool(_NAMED.search(text))
        of_things = {word for word in asked if not deeds(word)}
        if not is_named and OWN.search(text):
            return None
        for passage in ranked:
            if passage.heading.startswith("`") or passage.page == _BY_TOPIC:
                continue  # a row of a table is found by its name only
            known = asked & (_in_heading(passage) | _in_text(passage))
            nouns = {word for word in asked & _in_heading(passage) if not deeds(word)}
            if is_named and len(known) == len(asked) > 1 and asked & _in_heading(passage):
                return passage
            is_told = len(asked) > 1 or text.lower().startswith("how")
            if nouns and is_told and nouns == of_things and len(known) == len(asked) and _HOW.match(text):
                return passage
            if _WHAT.match(text) and _is_of(passage, asked):
                return passage
        return None


@cache
def handbook() -> Handbook:
    """The documentation of this installation."""
    folder = files(__package__)
    lines = (folder / _PASSAGES).read_text("utf-8").splitlines()
    questions = tomllib.loads((folder / _QUESTIONS).read_text("utf-8"))
    topics = Topics(tomllib.loads((folder / _TOPICS).read_text("utf-8")))
    return Handbook([Passage(**json.loads(line)) for line in lines], questions, topics)


def _is_of(passage: Passage, asked: frozenset[str]) -> bool:
    """Whether a heading has few words besides the subject of the question."""
    for heading in (passage.heading, passage.title):
        own = _telling(heading)
        if asked <= own and len(asked) > _OF_HEADING * len(own):
            return True
    return False


def _has(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w/-]){re.escape(name)}(?![\w-])", text) is not None


@cache
def _in_heading(passage: Passage) -> frozenset[str]:
    return _telling(f"{passage.title} {passage.heading}")


@cache
def _in_text(passage: Passage) -> frozenset[str]:
    return _telling(passage.text)


def _all_words(text: str) -> frozenset[str]:
    return frozenset(map(stem, words(text))) - _FILLING


def _telling(text: str) -> frozenset[str]:
    """The stems of the significant words of a text."""
    common = STOP_WORDS | ASKING_WORDS | _FILLING
    return frozenset(stem(word) for word in words(text.replace("_", " ")) if word not in common)
