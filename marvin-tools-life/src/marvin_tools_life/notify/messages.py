"""New messages of the topics that a profile is subscribed to.

Facts of the service: https://docs.ntfy.sh/subscribe/api/
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from marvin_core import Clock, JsonFile, Record, RequestFailed, in_thread, one_line, open_url

from .subscriptions import ProfileContext, Subscription, server, shown, subscriptions

if TYPE_CHECKING:
    import httpx

_LARGEST = 1_000_000
"""Bytes of an answer that are read. What is behind them is asked for the next time."""
_MOST = 50
"""Messages that are told at once."""
_TEXT = 500
_OVERLAP = 10
"""Seconds that are asked for again: messages come in late."""
_DAY = 86_400
_LATEST = 10**11
"""Seconds since the epoch, some thousand years from now: a later time is none."""
_ID = 64
_STEPS = 20
"""In how many steps an answer is waited for."""


class MessageContext(ProfileContext, Protocol):
    """What asking for messages takes, of tools and hooks."""

    @property
    def http(self) -> httpx.AsyncClient: ...
    @property
    def clock(self) -> Clock: ...


class Message(Record):
    """A message as people are shown it; `time` is in seconds since the epoch, by the clock of the server."""

    id: str
    topic: str
    time: float
    text: str


class Answer(Record):
    """What a server has for the topics of a profile, the oldest first; `upto` is up to when that is all there is."""

    profile: str
    entries: Sequence[Subscription]
    messages: Sequence[Message]
    upto: float


async def ask(context: MessageContext, timeout: float) -> Answer:
    """What came since the last time. It counts as told once it was taken with `take`.

    Args:
        timeout: for the server, in seconds.

    Raises:
        RequestFailed: the server cannot be reached, or refuses.
        ToolError: what is kept is damaged, or the address of the server is none.
    """
    profile = context.profile_folder.name
    entries = await subscriptions(context).read()
    if not entries:
        return Answer(profile=profile, entries=(), messages=(), upto=0.0)
    known, now = await _told(context, profile).read(), context.clock.now()
    since = min(_since(entry, known.get(entry["topic"]), now) for entry in entries)
    place = server(context)
    topics = ",".join(entry["topic"] for entry in entries)
    url = f"{place.address.rstrip('/')}/{topics}/json?poll=1&since={int(since)}"
    content, is_whole = await _within(timeout, _content(context.http, url, place.headers()), shown(place))
    messages, upto = await in_thread(lambda: _messages(content, entries, is_whole=is_whole))
    return Answer(profile=profile, entries=entries, messages=messages, upto=upto)


async def take(context: MessageContext, answer: Answer) -> tuple[Sequence[Message], int]:
    """The messages of an answer that nobody was told, and how many older ones there were. They count as told then.

    Raises:
        ToolError: what is kept is damaged.
    """
    if not answer.entries:
        return (), 0
    now = context.clock.now()

    # Under the lock, so that of several chats only one tells a message.
    def fresh(known: dict[str, Any]) -> list[Message]:
        new: list[Message] = []
        for entry in answer.entries:
            told = known.get(entry["topic"])
            own = [message for message in answer.messages if message.topic == entry["topic"]]
            new += [message for message in own if _is_new(message, entry, told, now)]
            known[entry["topic"]] = _state(told, own, answer.upto, now)
        for topic in known.keys() - {entry["topic"] for entry in answer.entries}:
            del known[topic]
        return sorted(new, key=lambda message: message.time)

    new = await _told(context, answer.profile).change(fresh)  # another profile may be in use by now
    return new[-_MOST:], max(0, len(new) - _MOST)


async def _within(limit: float, asked: Coroutine[Any, Any, tuple[bytes, bool]], place: str) -> tuple[bytes, bool]:
    """An answer, waited for as long as the program is at work: a chat in a pipe stands still between two prompts.

    What came meanwhile is there when it goes on, and no clock that went on counts.
    """
    task = asyncio.ensure_future(asked)
    try:
        for _ in range(_STEPS):
            if (await asyncio.wait({task}, timeout=limit / _STEPS))[0]:
                return task.result()
        raise RequestFailed(f"{place} did not answer within {limit:g} s. Try again later.")
    finally:
        task.cancel()


async def _content(http: httpx.AsyncClient, url: str, headers: Mapping[str, str]) -> tuple[bytes, bool]:
    """The lines that a server sends, and whether these are all of them."""
    content = bytearray()
    async with open_url(http, url, headers=headers) as response:
        async for part in response.aiter_bytes():
            content += part
            if len(content) > _LARGEST:
                return bytes(content[: content.rfind(b"\n") + 1]), False
    return bytes(content), True


def _told(context: MessageContext, profile: str) -> JsonFile[dict[str, Any]]:
    """Up to where the messages of topics were told, in a file for each profile."""
    return JsonFile(context.folders.state / f"told-{profile}.json", dict, _check, timeouts=context.timeouts)


def _check(topics: dict[str, Any]) -> None:
    for topic in topics.values():
        if not (isinstance(topic, dict) and _is_time(topic.get("time")) and isinstance(topic.get("ids"), dict)):
            raise ValueError(f"{topic!r} is not a state of a topic")
        if not all(map(_is_time, topic["ids"].values())):
            raise ValueError(f"{topic!r} has a message without a time")


def _is_time(value: object) -> bool:
    return isinstance(value, (int, float)) and 0 <= value <= _LATEST


def _since(entry: Subscription, told: Any, now: float) -> float:
    """From when on a topic is of interest: since it was subscribed, or a little before what was told last.

    A time that is yet to come was written while a clock was wrong, and counts for nothing.
    """
    subscribed = float(entry.get("since") or 0)
    last = float(told["time"]) - _OVERLAP if told else 0.0
    return max((time for time in (subscribed, last) if time <= now + _DAY), default=0.0)


def _is_new(message: Message, entry: Subscription, told: Any, now: float) -> bool:
    return message.time >= _since(entry, told, now) and not (told and message.id in told["ids"])


def _state(told: Any, own: Sequence[Message], upto: float, now: float) -> dict[str, Any]:
    """How far a topic was told: a time, and the ids of messages that may come again."""
    before = told or {"time": 0.0, "ids": {}}
    times = [time for time in (before["time"], upto) if time <= now + _DAY]
    time = max([*times, *(message.time for message in own)], default=0.0)
    ids = {name: at for name, at in before["ids"].items() if at >= time - _OVERLAP}
    return {"time": time, "ids": {**ids, **{message.id: message.time for message in own}}}


def _messages(content: bytes, entries: Sequence[Subscription], *, is_whole: bool) -> tuple[Sequence[Message], float]:
    """The messages in the lines of an answer, and up to when these are all; what else stands there is passed over."""
    by_topic = {entry["topic"]: entry for entry in entries}
    found: dict[tuple[str, str], Message] = {}
    times: list[float] = []
    for line in content.split(b"\n"):  # a message may hold what other ways to part lines take for an end
        message = _message(line, by_topic)
        if message is not None:
            times.append(message.time)
            found[message.topic, message.id] = message
    # Of an answer that was cut, all up to its end is known only where the topics are not one behind the other.
    is_known = is_whole or times == sorted(times)
    messages = sorted(found.values(), key=lambda message: message.time)
    return messages, max(times, default=0.0) if is_known else 0.0


def _message(line: bytes, by_topic: Mapping[str, Subscription]) -> Message | None:
    try:
        data = json.loads(line)
        if data["event"] != "message" or data["topic"] not in by_topic or not _is_time(data["time"]):
            return None
        text = _text(data, by_topic[data["topic"]])
        return Message(id=str(data["id"])[:_ID], topic=data["topic"], time=float(data["time"]), text=text)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _text(data: dict[str, Any], entry: Subscription) -> str:
    """A message in one line: where it is from, its title, its text, and the name of what is attached."""
    attachment = data.get("attachment")
    file = attachment.get("name") if isinstance(attachment, dict) else None
    parts = [entry.get("label") or data["topic"], data.get("title"), data.get("message"), file and f"[file {file}]"]
    return one_line(": ".join(str(part) for part in parts if part), _TEXT)
