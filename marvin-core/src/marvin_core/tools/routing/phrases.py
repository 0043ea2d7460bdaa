"""Phrases of requests, and the calls that they mean: reads phrases.toml of a pack, and matches requests with it.

    [[phrase]]
    say = "weather in {location}"
    tool = "forecast"
    arguments = { days = 3 }

A `{slot}` takes a value of the request. Its name is that of the parameter it fills, unless `arguments` uses it in a
text, as in `pattern = "*.{ending}"`. `{slot:kind}` says what it takes (`slots.Kind`), else the parameter does.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

from ...api.errors import PluginError, ToolError
from ...api.record import Record
from ...api.tools import ToolSpec
from ...util.text import unknown_name
from .slots import KINDS, TYPED, Utterance, kind_of
from .words import ASKING_WORDS, POLITE_WORDS

Check: TypeAlias = Callable[[ToolSpec, Mapping[str, Any]], object]

_SLOT = re.compile(r"\{(\w+)(?::(\w+))?\}")
_KEYS = ("say", "tool", "arguments")
_OF_OTHERS = frozenset({"their", "your"})
"""Words after which a word is not a name: `your head` is not a place."""


def with_phrases(specs: Sequence[ToolSpec], file: Path, check: Check) -> tuple[list[ToolSpec], list[str]]:
    """The tools of a pack with their phrases from a file, and the errors of the file, entry by entry.

    An invalid entry is left out. `check` raises `ToolError` if a tool does not accept these arguments.
    """
    known = {spec.name: spec for spec in specs}
    problems: list[str] = []
    entries: dict[str, list[dict[str, Any]]] = {}
    for number, given in zip(count(1), _entries(file, problems), strict=False):
        try:
            name, entry = _entry(given, known, check)
            entries.setdefault(name, []).append(entry)
        except PluginError as error:
            said = f" ({given['say']!r})" if isinstance(given, dict) and "say" in given else ""
            problems.append(f"{file}: phrase {number}{said}: {error}")
    return [spec.replace(phrases=(*spec.phrases, *entries.get(spec.name, ()))) for spec in specs], problems


def _entries(file: Path, problems: list[str]) -> list[Any]:
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        problems.append(f"{file}, which a ToolGroup declares as its phrases, cannot be read: {error.strerror}.")
        return []
    except ValueError as error:  # invalid TOML or UTF-8
        problems.append(f"{file} is not TOML: {error}.")
        return []
    found = data.pop("phrase", [])
    if data or not isinstance(found, list):
        problems.append(f"{file} may contain only [[phrase]] entries{''.join(f', not {key}' for key in data)}.")
    return found if isinstance(found, list) else []


def _entry(given: Any, known: Mapping[str, ToolSpec], check: Check) -> tuple[str, dict[str, Any]]:
    """The name of the tool, and the stored form of the entry: `say`, all arguments, the kinds of all slots."""
    if not isinstance(given, dict):
        raise PluginError("it must be a [[phrase]] with say and tool.")
    for key in given:
        if key not in _KEYS:
            raise PluginError(unknown_name("key", key, _KEYS))
    say, name, arguments = given.get("say"), given.get("tool"), given.get("arguments", {})
    if not isinstance(say, str) or not isinstance(name, str) or not isinstance(arguments, dict):
        raise PluginError("it needs say and tool as strings; arguments must be a table.")
    if name not in known:
        raise PluginError(f"{unknown_name('tool', name, known)} The phrases of a pack may use only its own tools.")
    spec = known[name]
    kinds = _kinds(say, arguments, spec)
    filled = {**{slot: f"{{{slot}}}" for slot in kinds if slot not in _slots_in(arguments)}, **arguments}
    _check_arguments(filled, kinds, spec)
    if not kinds and set(spec.parameters.get("required", ())) <= filled.keys():
        try:
            check(spec, filled)
        except ToolError as error:
            raise PluginError(str(error)) from error
    return name, {"say": _SLOT.sub(r"{\1}", say), "arguments": filled, "slots": kinds}


def _kinds(say: str, arguments: Mapping[str, Any], spec: ToolSpec) -> dict[str, str]:
    """The kind of each slot of an utterance."""
    bare = _SLOT.sub(" ", say)
    if "{" in bare or "}" in bare:
        raise PluginError("write a slot as {name} or {name:kind}.")
    if not Utterance(bare).tokens:
        raise PluginError("say must contain a word besides its slots.")
    properties = spec.parameters.get("properties", {})
    kinds: dict[str, str] = {}
    for slot, kind in _SLOT.findall(say):
        if kind and kind not in KINDS:
            raise PluginError(unknown_name("kind of slot", kind, KINDS))
        if slot in kinds:
            raise PluginError(f"the slot {slot} occurs twice.")
        if slot not in properties and slot not in _slots_in(arguments):
            raise PluginError(f"{unknown_name('parameter', slot, properties)} Or use the slot in arguments.")
        kinds[slot] = kind or kind_of(slot, properties.get(slot, {}))
    return kinds


def _check_arguments(arguments: Mapping[str, Any], kinds: Mapping[str, str], spec: ToolSpec) -> None:
    for slot in _slots_in(arguments):
        if slot not in kinds:
            raise PluginError(f"arguments use {{{slot}}}, which is not in say.")
    properties = spec.parameters.get("properties", {})
    for parameter in arguments:
        if parameter not in properties and not spec.parameters.get("additionalProperties"):
            raise PluginError(unknown_name("parameter", parameter, properties))


def _slots_in(arguments: Mapping[str, Any]) -> set[str]:
    return {match[1] for value in arguments.values() if isinstance(value, str) for match in _SLOT.finditer(value)}


class Match(Record):
    """A phrase found in a request: the arguments of the call, and how well the request matches.

    `words` is the number of words that phrase and request share, and `typed` that of slots filled with a value of
    recognisable form. `telling` counts the words that are not merely those of a question, such as `how do`. `free` has
    the first token and the end of each arbitrary text, which the other slots accepted.
    """

    arguments: Mapping[str, Any]
    words: int
    typed: int
    telling: int = 0
    free: tuple[tuple[int, int], ...] = ()


class Phrase:
    """One entry of a tool, prepared for matching requests."""

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self._arguments: Mapping[str, Any] = entry["arguments"]
        self._kinds: Mapping[str, str] = entry["slots"]
        parts: list[tuple[str, bool]] = []
        for number, piece in enumerate(_SLOT.split(entry["say"])):
            if number % 3 == 1:
                parts.append((piece, True))
            elif number % 3 == 0:
                parts += [(token.word, False) for token in Utterance(piece).tokens]
        needed = [part for part in parts if part[1] or part[0] not in POLITE_WORDS]
        # A phrase that consists of polite words only, such as `show {path}`, is matched by them.
        self._parts = needed if any(not is_slot for _, is_slot in needed) else parts
        self.words = frozenset(word for word, is_slot in self._parts if not is_slot)
        """The words that identify it, normalized."""

    @property
    def is_plain(self) -> bool:
        """Whether its words ask for the tool itself, without an argument."""
        return not self._arguments

    def match(self, said: Utterance) -> Match | None:
        """The call that a request means, if it consists of this phrase only."""
        spans = self._spans(said, 0, 0)
        if spans is None:
            return None
        values = {slot: said.value(self._kinds[slot], *span) for slot, span in spans.items()}
        filled = {name: _filled(value, values) for name, value in self._arguments.items()}
        return Match(
            arguments=filled,
            words=len(self.words),
            typed=sum(kind in TYPED for kind in self._kinds.values()),
            telling=len(self.words - ASKING_WORDS),
            free=tuple(sorted(span for slot, span in spans.items() if self._kinds[slot] not in TYPED)),
        )

    def _spans(self, said: Utterance, part: int, at: int) -> dict[str, tuple[int, int]] | None:
        """The tokens of each slot from `part` on, in a request from `at` on; the longest match."""
        tokens = said.tokens
        if part == len(self._parts):
            return {} if all(token.word in POLITE_WORDS for token in tokens[at:]) else None
        if at == len(tokens):
            return None
        text, is_slot = self._parts[part]
        if is_slot:
            for end in range(len(tokens), at, -1):
                if said.value(self._kinds[text], at, end) is not None:
                    rest = self._spans(said, part + 1, end)
                    if rest is not None:
                        return {text: (at, end), **rest}
        elif tokens[at].word == text and tokens[at].kind != "quoted":
            rest = self._spans(said, part + 1, at + 1)
            if rest is not None:
                return rest
        is_another = is_slot and self._kinds[text] in ("name", "place") and tokens[at].word in _OF_OTHERS
        return self._spans(said, part, at + 1) if tokens[at].word in POLITE_WORDS and not is_another else None


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    """An argument with its slots filled; one that consists of a single slot keeps the type of the value."""
    if not isinstance(value, str):
        return value
    whole = _SLOT.fullmatch(value)
    return values[whole[1]] if whole else _SLOT.sub(lambda slot: str(values[slot[1]]), value)
