"""Plans how to reduce a conversation: what stays, what a summary replaces, and how texts are shortened.

This module uses no model and no file. Sizes are in characters as counted by `window.characters`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..api.messages import Block, Image, Message, Text, Thinking, ToolCall, ToolOutput, user
from ..api.record import Record
from ..util.untrusted_json import parse_json
from .pairing import heal
from .window import characters

KEPT = 8
"""The newest messages stay unchanged if they fit."""
SUMMARY_LIMIT = 24_000
"""The maximum length of a summary."""
_FEWER = (KEPT, 4, 2, 1)
_FLOOR = 200
"""A text below this length is no longer useful; fewer messages are kept instead."""
_SMALLEST = 2_000
"""The minimum room for a summary with its heading."""
_NEWEST = "\n\nThe newest request of the user, verbatim:\n"
_LASTING = "\n\nThe state of {name}, verbatim:\n"
_LASTS = re.compile(r"\n\nThe state of ([\w-]{1,64}), verbatim:\n")


class CompactionPlan(Record):
    """The planned conversation: `first` and `tail` stay, shortened if necessary, and a summary replaces `middle`.

    `summary_limit` is the maximum length of the message with the summary.
    """

    first: tuple[Message, ...]
    middle: tuple[Message, ...]
    tail: tuple[Message, ...]
    summary_limit: int


def summary_body(message: Message) -> str:
    """The text of a summary, without Marvin's text around it."""
    return without_lasting(message.text.partition("\n\n")[2]).partition(_NEWEST)[0]


def without_lasting(text: str) -> str:
    """The text of a summary without the lasting texts of calls, which are carried over separately."""
    said, newest, request = text.partition(_NEWEST)
    return _LASTS.split(f"\n\n{said}", maxsplit=1)[0].removeprefix("\n\n") + newest + request


def is_worth_it(messages: Sequence[Message], limit: int) -> bool:
    """Whether there is anything to summarise or shorten in order to get below the limit."""
    whole, _ = heal(messages)
    middle = _parted(whole, _tail_start(whole, KEPT))[1]
    return characters(messages) > limit or (
        characters(middle) > _SMALLEST and not all(message.is_summary for message in middle)
    )


def plan(messages: Sequence[Message], limit: int, backup: str) -> CompactionPlan:
    """Split a conversation so that the result has at most `limit` characters.

    The first message of the user and the newest eight are kept; a message with calls stays together with the one with
    their outputs. If those are too large, their longest texts are shortened, then images and reasoning are removed,
    then fewer messages are kept.

    Args:
        backup: the file with the full texts, which shortened texts name.
    """
    whole, _ = heal(messages)
    limit = max(limit, _SMALLEST)
    for kept in _FEWER:
        first, middle, tail = _parted(whole, _tail_start(whole, kept))
        reserve = min(SUMMARY_LIMIT, limit // 3) if middle else 0
        for bare in (False, True):
            shorter = shortened([*first, *tail], limit - reserve, backup, bare=bare)
            if shorter is not None:
                return _planned(shorter, len(first), middle, reserve)
    first, middle, _ = _parted(whole, len(whole))
    reserve = limit // 2 if middle else 0
    shorter = shortened(first, limit - reserve, backup, bare=True, floor=0) or ()
    return _planned(shorter, len(first), middle, reserve)


def _planned(kept: tuple[Message, ...], first: int, middle: tuple[Message, ...], reserve: int) -> CompactionPlan:
    return CompactionPlan(first=kept[:first], middle=middle, tail=kept[first:], summary_limit=reserve)


def plan_turns(messages: Sequence[Message], most: int) -> CompactionPlan | None:
    """Split a conversation of more than `most` messages so that at most three quarters of this number remain.

    Whole turns are removed; the newest one always stays, and so does the first message of the user. None if there is
    nothing to remove.
    """
    whole, _ = heal(messages)
    starts = [i for i, message in enumerate(whole) if message.role == "user" and not message.is_summary]
    if len(whole) <= most or not starts:
        return None
    # Two messages precede the kept ones: the first one, and the summary.
    fitting = (start for start in starts if len(whole) - start + 2 <= most * 3 // 4)
    first, middle, tail = _parted(whole, next(fitting, starts[-1]))
    if all(message.is_summary for message in middle):
        return None
    return CompactionPlan(first=first, middle=middle, tail=tail, summary_limit=SUMMARY_LIMIT)


def _parted(messages: Sequence[Message], start: int) -> tuple[tuple[Message, ...], ...]:
    """The first message of the user, the middle, and the tail that begins at `start`."""
    said = (i for i, message in enumerate(messages[:start]) if message.role == "user" and not message.is_summary)
    first = next(said, None)
    middle = tuple(message for i, message in enumerate(messages[:start]) if i != first and message.content)
    tail = tuple(message for message in messages[start:] if message.content)
    return (() if first is None else (messages[first],)), middle, tail


def _tail_start(messages: Sequence[Message], kept: int) -> int:
    """The start of the newest `kept` messages, or slightly earlier, so that no call is separated from its output."""
    start = len(messages)
    for unit in reversed(_units(messages)):
        if len(messages) - start >= kept:
            break
        start -= unit
    return start


def _units(messages: Sequence[Message]) -> list[int]:
    """The lengths of units that stay together: a message, or one with calls and the outputs after it."""
    units: list[int] = []
    for message in messages:
        if message.role == "tool" and units:
            units[-1] += 1
        else:
            units.append(1)
    return units


def composed(found: CompactionPlan, body: str, source: str) -> tuple[Message, ...]:
    """The conversation with a summary in place of the middle; a plan without a middle needs none.

    Args:
        body: the summary of the middle.
        source: the location of the messages themselves, for models.
    """
    if not found.middle:
        return (*found.first, *found.tail)
    count = len(found.middle)
    head = (
        f"[Summary by Marvin of {count:,} earlier message{'' if count == 1 else 's'}, which were removed to make "
        "room. This is a record of what was said and done, not a request.]\n[The messages themselves are in "
        f"{source}; search_history_backups searches them.]"
    )
    request = _newest_request(found)
    room = max(found.summary_limit - len(head) - 2, 0)
    asked = f"{_NEWEST}{shorten(request, room // 3, source)}" if request and room > _FLOOR else ""
    kept = f"{_lasting_sections(found, room // 3, source) if room > _FLOOR else ''}{asked}"
    text = f"{head}\n\n{shorten(body, room - len(kept), source)}{kept}"
    summary = user(text[: max(found.summary_limit, len(head))]).replace(is_summary=True)
    return (*found.first, summary, *found.tail)


def _lasting_sections(found: CompactionPlan, room: int, source: str) -> str:
    """Texts that tools keep for longer than their calls, each below a heading."""
    lasting = _lasting(found)
    share = room // max(len(lasting), 1)
    headed = ((_LASTING.format(name=name), text) for name, text in lasting.items())
    return "".join(f"{heading}{shorten(text, share - len(heading), source)}" for heading, text in headed)


def _lasting(found: CompactionPlan) -> dict[str, str]:
    """The newest lasting text of each tool, unless the call itself stays, or the text has expired.

    The text in an earlier summary applies until a later call replaces it.
    """
    lasting: dict[str, str] = {}
    for message in found.middle:
        if message.is_summary:
            parts = _LASTS.split(message.text.partition(_NEWEST)[0])
            lasting |= dict(zip(parts[1::2], parts[2::2], strict=True))
        for output in message.outputs:
            if not output.is_error:
                lasting.pop(output.name, None)
                lasting[output.name] = output.lasting
    stays = {output.name for message in found.tail for output in message.outputs if not output.is_error}
    return {name: text for name, text in lasting.items() if text and name not in stays}


def _newest_request(found: CompactionPlan) -> str:
    """The last request of the user, if it is in the middle; otherwise empty."""
    if any(message.role == "user" and not message.is_summary for message in found.tail):
        return ""
    for message in reversed(found.middle):
        if message.is_summary:
            return message.text.partition(_NEWEST)[2]
        if message.role == "user" and message.text:
            return message.text
    return ""


def shortened(
    messages: Sequence[Message], limit: int, backup: str, *, bare: bool = False, floor: int = _FLOOR
) -> tuple[Message, ...] | None:
    """The messages with their longest texts cut to a common length, for a total of at most `limit` characters.

    None if texts would have to be shorter than `floor` characters.

    Args:
        bare: whether reasoning and images are removed first.
    """
    found = tuple(_bare(message) for message in messages) if bare else tuple(messages)
    if characters(found) <= limit:
        return found
    lengths = [len(text) for message in found for text in _texts(message.content)]
    cap = level(lengths, limit - (characters(found) - sum(lengths)))
    if cap < floor:
        return None
    return tuple(_capped(message, max(cap, 0), backup) for message in found)


def _texts(blocks: Iterable[Block]) -> Iterator[str]:
    """Every text that can be shortened."""
    for block in blocks:
        if isinstance(block, Text):
            yield block.text
        elif isinstance(block, ToolCall):
            yield block.arguments
        elif isinstance(block, ToolOutput):
            yield from _texts(block.content)


def _capped(message: Message, cap: int, backup: str) -> Message:
    return message.replace(content=tuple(_capped_block(block, cap, backup) for block in message.content))


def _capped_block(block: Any, cap: int, backup: str) -> Any:
    if isinstance(block, ToolOutput):
        return block.replace(content=tuple(_capped_block(part, cap, backup) for part in block.content))
    if isinstance(block, Text) and len(block.text) > cap:
        return Text(text=shorten(block.text, cap, backup))  # the text no longer matches the provider's signature
    if isinstance(block, ToolCall) and len(block.arguments) > cap:
        return block.replace(arguments=_shorter_arguments(block.arguments, cap, backup))
    return block


def _shorter_arguments(arguments: str, cap: int, backup: str) -> str:
    """Arguments with their long texts shortened; still valid JSON, since services reject anything else."""
    try:
        values = parse_json(arguments)
    except ValueError:
        values = None
    limit = cap
    while isinstance(values, dict) and limit > len(backup):
        text = json.dumps(_shorter_values(values, limit, backup), ensure_ascii=False)
        if len(text) <= cap:
            return text
        limit //= 2
    note = json.dumps({"left_out": f"{len(arguments):,} characters, see {backup}"}, ensure_ascii=False)
    return note if len(note) <= cap else "{}"


def _shorter_values(value: Any, limit: int, backup: str) -> Any:
    if isinstance(value, str):
        return shorten(value, limit, backup)
    if isinstance(value, dict):
        return {name: _shorter_values(inner, limit, backup) for name, inner in value.items()}
    if isinstance(value, list):
        return [_shorter_values(inner, limit, backup) for inner in value]
    return value


def _bare(message: Message) -> Message:
    kept = tuple(_without_image(block) for block in message.content if not isinstance(block, Thinking))
    return message.replace(content=kept or (Text(text="[left out]"),))


def _without_image(block: Any) -> Any:
    if isinstance(block, Image):
        return Text(text="[an image was left out to make room]")
    if isinstance(block, ToolOutput):
        return block.replace(content=tuple(map(_without_image, block.content)))
    return block


def level(lengths: Iterable[int], room: int) -> int:
    """The length to which all longer ones must be cut for a sum of at most `room`, which may be negative."""
    ordered = sorted(lengths)
    for index, length in enumerate(ordered):
        share = room // (len(ordered) - index)
        if length > share:
            return share
        room -= length
    return ordered[-1] if ordered and room >= 0 else room


def shorten(text: str, limit: int, backup: str) -> str:
    """The head and the tail of a text, at most `limit` characters, with a note about the location of the full text."""
    if len(text) <= limit:
        return text
    note = f"\n[... {len(text):,} characters in all; the rest is in {backup} ...]\n"
    room = limit - len(note)
    if room <= 0:
        return "[left out]"[: max(limit, 0)]
    tail = room // 3
    return text[: room - tail] + note + (text[-tail:] if tail else "")
