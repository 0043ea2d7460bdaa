"""Compares a request of a replay with the recorded one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..api.providers import Request
from ..util.text import cut
from .cassette import RecordedRequest
from .form import request_value
from .places import Places, each_text
from .report import Report, diff_of
from .volatile import lasting

_EXACT = ("tool_choice", "thinking", "max_output_tokens", "output_schema")
_LONGEST = 20_000
"""The length up to which a message is compared line by line; for a longer one only the difference is reported."""


def prompt_place(value: Mapping[str, Any], prompt: str) -> int | None:
    """The index of the prompt in the messages of its first request; None if it is not there."""
    messages = value["messages"]
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].get("role") == "user" and _said(messages[place]) == prompt:
            return place
    return None


def _said(message: Mapping[str, Any]) -> str:
    return "".join(str(block.get("text", "")) for block in _blocks(message) if block.get("type") == "text")


def _blocks(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message.get("content")
    return [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []


def compare_requests(
    request: Request, recorded: RecordedRequest, to: tuple[Places, Report, str], *, strict: bool
) -> None:
    """Report how a request differs from the recorded one.

    Results of tools are left out: they are compared when the calls end.

    Args:
        to: the folders of this machine, the report, and the name of the request in it.
        strict: whether changed instructions and tools count as a difference, and not only as a note.
    """
    places, report, where = to
    if not recorded.value:
        return
    if not recorded.is_whole:
        report.differs("cassette", where, "its digest is not that of what stands there: the file was changed")
    now = each_text(request_value(request), places.hide)
    diff = _of_messages(recorded.value["messages"], now["messages"])
    if diff:
        report.differs("request", where, "the conversation is different", diff)
    for name in _EXACT:
        if recorded.value.get(name) != now[name]:
            told = f"{name} is {cut(repr(now[name]), 200)}, and was {cut(repr(recorded.value.get(name)), 200)}"
            report.differs("request", where, told)
    _around(recorded.value, now, (report, where), strict=strict)


def _around(before: Mapping[str, Any], now: Mapping[str, Any], to: tuple[Report, str], *, strict: bool) -> None:
    """Compare the system prompt and the tools: they depend on the packs, the instructions and the version of Marvin."""
    report, where = to
    diff = diff_of(str(before.get("system", "")), now["system"])
    if diff and strict:
        report.differs("request", where, "the system prompt is different", diff)
    elif diff:
        report.note("the system prompt is different (instructions, preferences, packs or version); --strict shows it")
    gone, more = _names(before) - _names(now), _names(now) - _names(before)
    if gone or more:
        told = "; ".join(
            f"{what}: {cut(', '.join(sorted(names)), 300)}" for what, names in (("gone", gone), ("new", more)) if names
        )
        if strict:
            report.differs("request", where, f"other tools are on offer ({told})")
        else:
            report.note("other tools are on offer; --strict shows them")


def _names(value: Mapping[str, Any]) -> set[str]:
    tools, waiting = value.get("tools"), value.get("waiting")
    offered = [one.get("name") for one in tools if isinstance(one, Mapping)] if isinstance(tools, list) else []
    return {str(name) for name in (*offered, *(waiting if isinstance(waiting, list) else ()))}


def _of_messages(before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> str:
    """A diff of two conversations, starting at the first message that differs."""
    old, new = [*map(_as_text, before)], [*map(_as_text, now)]
    while old and new and (old[0] == new[0] or lasting(old[0]) == lasting(new[0])):
        del old[0], new[0]
    while old and new and (old[-1] == new[-1] or lasting(old[-1]) == lasting(new[-1])):
        del old[-1], new[-1]
    return diff_of(cut("\n".join(old), _LONGEST), cut("\n".join(new), _LONGEST)) or ("..." if old or new else "")


def _as_text(message: Mapping[str, Any]) -> str:
    lines = [f"[{message.get('role')}]"]
    for block in _blocks(message):
        kind = block.get("type")
        if kind == "tool_output":
            lines.append(f"output of {block.get('name')}")
        elif kind == "tool_call":
            lines.append(f"call of {block.get('name')}: {block.get('arguments')}")
        elif kind == "image":
            lines.append(f"image {block.get('media_type')}, {len(str(block.get('data')))} characters")
        else:
            lines.append(str(block.get("text", "")))
    return "\n".join(lines)
