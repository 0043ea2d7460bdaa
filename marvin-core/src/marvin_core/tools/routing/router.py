"""Maps a plain request to the call that it means, by rules, without a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from ...api.record import Record
from ...api.tools import ToolSpec
from .intent import features, knows, likelihood
from .introduced import introduces, plain_text
from .phrases import Match, Phrase
from .ranking import Ranking
from .shapes import ID, shapes, shapes_of
from .slots import JOINING, TYPED, Utterance, kind_of
from .words import meaningful, normalized, words

Action: TypeAlias = Literal["act", "confirm", "ask", "offer", "nothing"]

OFFERED = 3
"""The maximum number of offered tools."""
_LOOKED_AT = 5
"""The number of nearest tools that are considered."""
_MARGIN = 1.3
"""The minimum ratio of the best score to the second one, if both tools could be meant."""
_TELLING = 2
"""A phrase with free text and at most this many telling words and typed values says little: its tool must be ahead."""
_AHEAD = 0.95
"""The maximum score of another tool then, relative to its own."""
_BEHIND = 1.1
"""The maximum score of another tool, relative to its own, where one tool is taken."""
_BARE = 1
"""If a phrase has at most this many words and an address, the tools of the address's service compete with it."""
_SPELLED = 4
"""The length of the shortest word that is checked for spelling, in characters."""
_LIKELY = 0.6
"""The minimum likelihood of a request for which tools are offered."""
_CERTAIN = 0.85
"""The minimum likelihood of a request for which the tool of such a phrase is taken."""
_LONGEST = 400
"""The maximum length of a request that may lead to a call, in characters; no phrase is longer."""

_OPENING = re.compile(
    r"\A\s*(?:(?:please|hey|hi|hello|ok|okay|marvin|so)\b[\s,!.]*)*"
    r"(?:(?:can|could|would|will) you\s+|(?:i|we)(?: want|'d like| would like| need) to\s+|let'?s\s+)?",
    re.IGNORECASE,
)
_ADVICE = re.compile(r"\W*should (?:i|we)\b", re.IGNORECASE)
"""The openings of requests for advice, for which nothing is changed, sent or ended."""
_QUESTION = re.compile(r"\s*(?:what|which|who|whose|where|when|why|how|did|does|do|is|are|was|were)\b", re.IGNORECASE)
_BY_NUMBER = re.compile(r"(?:\b(?:id|no|number)\b[\s.:]*|(?<!\w)#)\d", re.IGNORECASE)
"""A reference to an item by its number, which is rare in names and searches."""
_NUMBERED = re.compile(r"(^|_)(id|number)$")
"""The parameters that take such a number."""
_CLOSING = re.compile(r"(?:[\s,]+(?:please|thanks|thank you|for me|marvin))+[\s.!?]*$", re.IGNORECASE)


class Proposal(Record):
    """A candidate tool, with the arguments in the request, and the missing required ones."""

    spec: ToolSpec
    arguments: Mapping[str, Any]
    missing: tuple[str, ...] = ()


class Route(Record):
    """The decision about a request.

    `act`: make this call. `confirm`: this is the call, but it changes something. `ask`: a required argument is missing.
    `offer`: one of these may be meant. `nothing`: no tool matches.
    """

    action: Action
    proposals: tuple[Proposal, ...] = ()


class Router:
    """Finds the tool that a request means.

    It is certain only if the request consists of a phrase, or of the tool's name and values for it: no word is left
    over, and nothing is negated.
    """

    def __init__(self, specs: Sequence[ToolSpec]) -> None:
        self._specs = specs
        self._ranking = Ranking(specs)
        self._phrases = {spec.name: [Phrase(entry) for entry in spec.phrases] for spec in specs}
        self._names = {spec.name: self._vocabulary(spec) for spec in specs}

    def _vocabulary(self, spec: ToolSpec) -> list[frozenset[str]]:
        """The words that ask for this tool and nothing more: those of its name, or a whole phrase of several words."""
        plain = [one.words for one in self._phrases[spec.name] if one.is_plain]
        return [frozenset(words(spec.name)), *(said for said in plain if len(said) > 1)]

    def route(self, text: str) -> Route:
        """The decision about a request. A request with a possible misspelling gets offers for the corrected text."""
        found = self._route(text)
        if found.action in ("act", "confirm", "ask"):
            return found
        respelled = self._respelled(text)
        again = self._route(respelled) if respelled != text else found
        return found if again.action == "nothing" else again.replace(action="offer")

    def _respelled(self, text: str) -> str:
        """The text with unknown words replaced by similar known ones."""
        for token in reversed(Utterance(text[:_LONGEST]).tokens):
            if token.kind == "word" and len(token.word) >= _SPELLED and not knows(token.text.casefold()):
                meant = self._ranking.respelled(token.text) or token.text
                text = text[: token.start] + meant + text[token.end :]
        return text

    def _route(self, text: str) -> Route:
        said = _request(text)
        ranked = self._ranking.near(said.text or text[:_LONGEST], _LOOKED_AT)
        spoken = self._spoken(said)
        likely = likelihood(self._features(text, said, spoken))
        is_request = likely >= _LIKELY
        rivals = self._rivals(said, spoken)
        meant = self._meant(said, ranked, spoken) if not rivals else None
        if meant is not None and likely >= _needed(spoken):
            if meant.missing:
                return Route(action="ask", proposals=(meant,))
            is_safe = meant.spec.reads_only and not meant.spec.confirm
            return Route(action="act" if is_safe else "confirm", proposals=(meant,))
        near = []
        if is_request:
            near = [*(spec for spec, _ in spoken), *rivals, *(spec for spec, _ in ranked)]
        if not any(meaningful(token.text) for token in said.tokens if token.kind == "word"):
            near += self._taking(said)
        if _ADVICE.match(text):
            near = [spec for spec in near if "net" in spec.access and spec.reads_only]
        nearest = _distinct(near)[:OFFERED]
        if _QUESTION.match(text):  # a question asks for information, not for a change
            nearest.sort(key=lambda spec: not spec.reads_only)
        offers = tuple(_filled(spec, said)[0] for spec in nearest)
        return Route(action="offer" if offers else "nothing", proposals=offers)

    def features(self, text: str) -> dict[str, float]:
        """What tells whether a text is a request, by name: its form, and how well it matches tools and phrases."""
        said = _request(text)
        return self._features(text, said, self._spoken(said))

    def _features(self, text: str, said: Utterance, spoken: Sequence[tuple[ToolSpec, Match]]) -> dict[str, float]:
        evidence = self._ranking.evidence(said.text or text[:_LONGEST], OFFERED)
        return features(text[:_LONGEST], {**evidence, **_of_phrase(spoken)})

    def _spoken(self, said: Utterance) -> list[tuple[ToolSpec, Match]]:
        """The tools with a phrase that matches the whole request, the closest first."""
        found = []
        for spec in self._specs:
            matches = [match for phrase in self._phrases[spec.name] if (match := phrase.match(said))]
            if matches:
                found.append((spec, max(matches, key=_closeness)))
        return sorted(found, key=lambda pair: _closeness(pair[1]), reverse=True)

    def _rivals(self, said: Utterance, spoken: Sequence[tuple[ToolSpec, Match]]) -> list[ToolSpec]:
        """The tools for the address in a request, if the closest phrase has only one other word.

        One word is not specific enough: `open` applies to any page, while pages of a service have their own tool.
        """
        if not spoken:
            return []
        spec, match = spoken[0]
        is_bare = match.words <= _BARE and match.typed > 0
        return self._ranking.of_its_service(said.text, spec) if is_bare else []

    def _taking(self, said: Utterance) -> Iterator[ToolSpec]:
        """The tools that accept exactly the values of a request, those that only read first."""
        for spec in sorted(self._specs, key=lambda spec: not spec.reads_only):
            proposal, left = _filled(spec, said)
            if proposal.arguments and not proposal.missing and not left:
                yield spec

    def _meant(
        self, said: Utterance, ranked: Sequence[tuple[ToolSpec, float]], spoken: Sequence[tuple[ToolSpec, Match]]
    ) -> Proposal | None:
        if spoken:
            (spec, match), *others = spoken
            if (match.free or match.typed) and not self._is_certain(said, ranked, spec, match):
                return None
            if others and _closeness(others[0][1]) == _closeness(match):
                return None
            return _proposal(spec, match.arguments)
        if said.negates or not said.tokens:
            return None
        complete = []
        for spec, score in ranked:
            proposal, left = _filled(spec, said)
            is_changed_by_a_question = bool(_QUESTION.match(said.text)) and not spec.reads_only
            if self._is_asked_for(spec, left) and _is_likely(spec, ranked) and not is_changed_by_a_question:
                complete.append((proposal, score))
        if not complete:
            return None
        best, score = complete[0]
        return best if len(complete) == 1 or score >= _MARGIN * complete[1][1] else None

    def _is_certain(
        self, said: Utterance, ranked: Sequence[tuple[ToolSpec, float]], spec: ToolSpec, match: Match
    ) -> bool:
        """Whether a request with values means the tool of this phrase, so that it is more than one of the offers.

        A tool that only reads is called at once. Others are shown first, so that less certainty is enough.
        """
        says_little, is_called = bool(match.free) and _says_little(match), spec.reads_only and not spec.confirm
        # Words in quotes are a value, also if they are those of another tool.
        least = _MARGIN if match.typed == 1 and _is_quoted(said, match) else _BEHIND
        if (match.free or match.typed > 1) and not _is_likely(spec, ranked, _AHEAD if says_little else least):
            return False
        if match.free and is_called:
            if says_little and not introduces(said, match):
                return False
            if not match.typed and self._ranking.is_of_another(plain_text(said, match), spec, ranked):
                return False
        return not match.free or _takes_its_words(spec, match, ranked)

    def _is_asked_for(self, spec: ToolSpec, left: set[str]) -> bool:
        """Whether these words are all of the tool's name or of a phrase, so that they ask for it.

        A part could mean something else: one tool ends play mode, but the words `play mode` must not end it.
        """
        return left in self._names[spec.name]


def _request(text: str) -> Utterance:
    """A text without polite words around it; empty if it is too long for a call."""
    return Utterance(_CLOSING.sub("", _OPENING.sub("", text)) if len(text) <= _LONGEST else "")


def _is_quoted(said: Utterance, match: Match) -> bool:
    """Whether all free text of a request is in quotes."""
    return all(token.kind == "quoted" for first, end in match.free for token in said.tokens[first:end])


def _is_likely(spec: ToolSpec, ranked: Sequence[tuple[ToolSpec, float]], margin: float = _BEHIND) -> bool:
    """Whether the words of a request match this tool about as well as any other.

    A phrase such as `run {command}` accepts any text, even if the text clearly means something else.
    """
    own = next((score for found, score in ranked if found.name == spec.name), 0.0)
    return own * margin >= max((score for found, score in ranked if found.name != spec.name), default=0.0)


def _takes_its_words(spec: ToolSpec, match: Match, ranked: Sequence[tuple[ToolSpec, float]]) -> bool:
    """Whether the free text of a phrase is plausible: `number 28` is not if a similar tool takes numbers or ids.

    The tool for a title with a number is then offered, but not called.
    """
    free = [value for value in match.arguments.values() if isinstance(value, str)]
    said = {shape for value in free for token in Utterance(value).tokens for shape in shapes(token.text)} - {ID}
    if not _takes(spec, said) and any(_takes(other, said) for other, _ in ranked):
        return False
    if not any(_BY_NUMBER.search(value) for value in free) or _takes_a_number(spec):
        return True
    return not any(_takes_a_number(other) for other, _ in ranked)


def _takes(spec: ToolSpec, said: set[str]) -> bool:
    """Whether a parameter takes a value of one of these shapes."""
    return any(shape in said for name in spec.parameters.get("properties", {}) for shape in shapes_of(name))


def _takes_a_number(spec: ToolSpec) -> bool:
    return any(_NUMBERED.search(name) for name in spec.parameters.get("required", ()))


def _needed(spoken: Sequence[tuple[ToolSpec, Match]]) -> float:
    """The minimum likelihood for which the tool of the closest phrase is taken: `stack overflow {query}` fits talk."""
    if not spoken or not spoken[0][1].free:
        return 0.0
    return _CERTAIN if _says_little(spoken[0][1]) else _LIKELY


def _says_little(match: Match) -> bool:
    return match.telling + match.typed <= _TELLING


def _of_phrase(spoken: Sequence[tuple[ToolSpec, Match]]) -> dict[str, float]:
    """What the closest phrase says for a request."""
    if not spoken:
        return {}
    _, match = spoken[0]
    return {
        "phrase": 1.0,
        "phrase words": min(5, match.words) / 3,
        "phrase value": float(match.typed > 0),
        "phrase text": float(bool(match.free)),
        "phrase telling": min(4, match.telling) / 3,
    }


def _closeness(match: Match) -> tuple[int, int]:
    return match.words, match.typed


def _distinct(specs: Sequence[ToolSpec]) -> list[ToolSpec]:
    return list({spec.name: spec for spec in specs}.values())


def _proposal(spec: ToolSpec, arguments: Mapping[str, Any]) -> Proposal:
    missing = tuple(name for name in spec.parameters.get("required", ()) if name not in arguments)
    return Proposal(spec=spec, arguments=arguments, missing=missing)


def _filled(spec: ToolSpec, said: Utterance) -> tuple[Proposal, set[str]]:
    """The tool with the values of recognisable form, and the remaining words."""
    used: set[int] = set()
    arguments: dict[str, Any] = {}
    for name, schema in _by_need(spec):
        found = _choice(name, schema, said, used) or _typed(name, schema, spec, said, used)
        if found is not None:
            arguments[name], taken = found
            used |= taken
    rest = [token for number, token in enumerate(said.tokens) if number not in used]
    left = {token.word for token in rest if token.kind != "word" or token.word in JOINING}
    return _proposal(spec, arguments), left.union(*(meaningful(token.text) for token in rest if token.word not in left))


def _by_need(spec: ToolSpec) -> list[tuple[str, Mapping[str, Any]]]:
    properties = spec.parameters.get("properties", {})
    required = spec.parameters.get("required", ())
    return sorted(properties.items(), key=lambda pair: pair[0] not in required)


def _choice(name: str, schema: Mapping[str, Any], said: Utterance, used: set[int]) -> tuple[Any, set[int]] | None:
    """One of several values that the request names, or true if it names the parameter."""
    is_switch = schema.get("type") == "boolean" and not schema.get("default")
    choices = {normalized(name): True} if is_switch else {normalized(str(one)): one for one in schema.get("enum", ())}
    for number, token in enumerate(said.tokens):
        if token.word in choices and number not in used:
            return choices[token.word], {number}
    return None


def _typed(
    name: str, schema: Mapping[str, Any], spec: ToolSpec, said: Utterance, used: set[int]
) -> tuple[Any, set[int]] | None:
    """The first value of the parameter's kind. For several optional parameters of one kind, none is guessed."""
    kind = _form(name, schema)
    if not kind:
        return None
    required = spec.parameters.get("required", ())
    if name not in required:
        alike = [other for other, its in _by_need(spec) if _form(other, its) == kind and other not in required]
        if len(alike) > 1:
            return None
    return next(_values(kind, said, used), None)


def _values(kind: str, said: Utterance, used: set[int]) -> Iterator[tuple[Any, set[int]]]:
    for first, end, value in said.find(kind):
        span = set(range(first, end))
        if not span & used:
            yield value, span


def _form(name: str, schema: Mapping[str, Any]) -> str:
    """The kind of values for a parameter if no phrase defines it; text must be quoted."""
    if "enum" in schema or schema.get("type") not in ("string", "integer", "number"):
        return ""
    kind = kind_of(name, schema)
    return kind if kind in TYPED else "quoted"
