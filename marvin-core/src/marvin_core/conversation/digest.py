"""Summarises messages without a model: for summaries, for the index of backups, and as plain text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ..api.messages import Image, Message, Text, ToolCall
from ..util.text import one_line
from ..util.untrusted_json import parse_json
from .plan import level, shorten, summary_body, without_lasting

_REQUESTS, _FINDINGS, _ERRORS, _FILES = 30, 15, 10, 40
"""The maximum number of entries in each list."""
_LINE = 200
"""The maximum length of an entry in characters."""
_PATH_LIMIT = 200
_PATH_KEYS = frozenset("path paths file files file_path filename source destination target".split())
_PATCHED = re.compile(r"^(?:\*\*\* (?:Add|Update|Delete) File: |[+]{3} (?:b/)?)(\S.*)$", re.MULTILINE)
_WORD = re.compile(r"[^\W\d_][\w-]{4,30}")
_COMMON = frozenset(
    "about above after again against being below between could doing during error every first found further having"
    " other please really right should since still their there these thing things those three through under until"
    " using where which while would write"
    " aller alles andere dieser dieses einen einer keine nicht sollte wurde werden".split()
)


def digest(messages: Sequence[Message], limit: int) -> str:
    """The requests, actions and findings, as lists; the content of an earlier summary comes first.

    Args:
        limit: the maximum length in characters; a longer text keeps its head and tail.
    """
    earlier = [summary_body(message) for message in messages if message.is_summary]
    said = [message for message in messages if not message.is_summary]
    parts = [*earlier, *_sections(said)]
    return shorten("\n\n".join(part for part in parts if part), limit, "the backup")


def _sections(messages: Sequence[Message]) -> Iterator[str]:
    yield _listed("The user asked for:", requests(messages), _REQUESTS, short_line)
    touched = files(messages)
    yield _listed("Files in calls of tools:", [f"{name} ({_counted(by)})" for name, by in touched.items()], _FILES)
    outputs = [output for message in messages for output in message.outputs]
    called = Counter(call.name for message in messages for call in message.calls)
    if called:
        failed = Counter(output.name for output in outputs if output.is_error)
        told = [f"{n} {count}" + (f" ({failed[n]} failed)" if failed[n] else "") for n, count in called.most_common()]
        yield f"Tools called: {', '.join(told)}."
    errors = [f"{output.name}: {short_line(output.text)}" for output in outputs if output.is_error]
    yield _listed("Errors:", errors, _ERRORS)
    answers = (message.text for message in messages if message.role == "assistant")
    yield _listed("The assistant said:", [text for text in answers if text.strip()], _FINDINGS, short_line)


def short_line(text: str) -> str:
    """A text on one line of at most 200 characters."""
    return one_line(text, _LINE)


def _listed(title: str, entries: Sequence[str], most: int, line: Callable[[str], str] = str) -> str:
    """A list with a title; a long one keeps a third from its beginning, and the rest from its end.

    Args:
        line: formats the line of a shown entry.
    """
    if not entries:
        return ""
    shown = list(entries)
    if len(shown) > most:
        head = most // 3
        shown = [*shown[:head], f"... {len(shown) - most:,} more ...", *shown[len(shown) - (most - head) :]]
    return "\n".join([title, *(f"- {line(entry)}" for entry in shown)])


def _counted(by: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in by.most_common())


def requests(messages: Iterable[Message]) -> list[str]:
    """The requests of the user."""
    texts = (message.text for message in messages if message.role == "user" and not message.is_summary)
    return [text for text in texts if text.strip()]


def files(messages: Iterable[Message]) -> dict[str, Counter[str]]:
    """The paths in calls, oldest first, each with the tools of these calls."""
    found: dict[str, Counter[str]] = {}
    for message in messages:
        for call in message.calls:
            for path in dict.fromkeys(_paths(call)):
                found.setdefault(path, Counter())[call.name] += 1
    return found


def _paths(call: ToolCall) -> Iterator[str]:
    try:
        arguments = parse_json(call.arguments)
    except ValueError:
        return
    for name, value in arguments.items() if isinstance(arguments, dict) else ():
        for text in value if isinstance(value, list) else [value]:
            if not isinstance(text, str):
                continue
            if name in _PATH_KEYS and text and len(text) <= _PATH_LIMIT and "\n" not in text:
                yield text
            elif "\n" in text:
                yield from (path.strip() for path in _PATCHED.findall(text) if len(path) <= _PATH_LIMIT)


def errors(messages: Iterable[Message], most: int) -> list[str]:
    """The errors of calls, one short line each, newest first, without duplicates."""
    outputs = (output for message in messages for output in message.outputs if output.is_error)
    newest = dict.fromkeys(reversed([(output.name, output.text) for output in outputs]))
    return [f"{name}: {one_line(text, _LINE)}" for name, text in [*newest][:most]]


def findings(messages: Iterable[Message], most: int) -> list[str]:
    """The findings of the model, one short line each: its newest answers; if there are few, also earlier texts."""
    said = [message for message in messages if message.role == "assistant" and message.text.strip()]
    ranked = sorted(range(len(said)), key=lambda place: (bool(said[place].calls), -place))
    return [one_line(said[place].text, _LINE) for place in sorted(ranked[:most])]


def keywords(messages: Iterable[Message], most: int) -> list[str]:
    """The most frequent words of requests and answers, without stop words."""
    counted: Counter[str] = Counter()
    for message in messages:
        if message.role in ("user", "assistant"):
            counted.update(word for word in map(str.lower, _WORD.findall(message.text)) if word not in _COMMON)
    return [word for word, _ in counted.most_common(most)]


def as_text(messages: Sequence[Message], limit: int) -> str:
    """The messages as text for a summary by a model, at most about `limit` characters; the longest parts are cut."""
    parts = [part for message in messages for part in _parts(message)]
    overhead = sum(len(title) + 3 for title, _ in parts)
    cap = max(level([len(text) for _, text in parts], limit - overhead), _LINE)
    return "\n\n".join(f"{title}\n{shorten(text, cap, 'the backup')}" for title, text in parts)


def _parts(message: Message) -> Iterator[tuple[str, str]]:
    if message.is_summary:
        yield "EARLIER SUMMARY:", without_lasting(message.text.partition("\n\n")[2])
    elif message.text.strip():
        yield f"{message.role.upper()}:", message.text
    for call in message.calls:
        yield f"CALL OF {call.name}:", call.arguments
    for output in message.outputs:
        shown = [_shown(block) for block in output.content]
        yield f"OUTPUT OF {output.name}{' (error)' if output.is_error else ''}:", "\n".join(shown)


def _shown(block: Any) -> str:
    return block.text if isinstance(block, Text) else "(an image)" if isinstance(block, Image) else ""
