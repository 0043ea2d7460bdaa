"""New messages of the topics that a profile is subscribed to.

Source: https://docs.ntfy.sh/subscribe/api/
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
"""Bytes of an answer that are read. The rest is requested the next time."""
_MOST = 50
"""Messages that are shown at once."""
_TEXT = 500
_OVERLAP = 10
"""Seconds that are requested again, as messages may arrive late."""
_DAY = 86_400
_LATEST = 10**11
"""Seconds since the epoch, some thousand years from now: later times are invalid."""
_ID = 64
_STEPS = 20
"""Steps in which an answer is waited for."""


class MessageContext(ProfileContext, Protocol):
    """The parts of a context that requesting messages needs, for tools and hooks."""

    @property
    def http(self) -> httpx.AsyncClient: ...
    @property
    def clock(self) -> Clock: ...


class Message(Record):
    """A message for people; `time` is in seconds since the epoch, by the server's clock."""

    id: str
    topic: str
    time: float
    text: str


class Answer(Record):
    """A server's messages for the topics of a profile, the oldest first; they are complete up to `upto`."""

    profile: str
    entries: Sequence[Subscription]
    messages: Sequence[Message]
    upto: float


async def ask(context: MessageContext, timeout: float) -> Answer:
    """The messages since the last request. They count as shown once `take` was called.

    Args:
        timeout: of the server, in seconds.

    Raises:
        RequestFailed: the server is unreachable, or refuses.
        ToolError: the stored state is damaged, or the server's URL is invalid.
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
    """The messages of an answer that were not shown yet, and the number of older ones. They count as shown then.

    Raises:
        ToolError: the stored state is damaged.
    """
    if not answer.entries:
        return (), 0
    now = context.clock.now()

    # Under the lock, so that only one of several chats shows a message.
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

    new = await _told(context, answer.profile).change(fresh)  # another profile may be active by now
    return new[-_MOST:], max(0, len(new) - _MOST)


async def _within(limit: float, asked: Coroutine[Any, Any, tuple[bytes, bool]], place: str) -> tuple[bytes, bool]:
    """An answer, with a timeout that counts only while the program runs: a chat in a pipe stops between prompts.

    An answer that arrived while it was stopped is there when it continues.
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
    """The lines of a server's answer, and whether they are complete."""
    content = bytearray()
    async with open_url(http, url, headers=headers) as response:
        async for part in response.aiter_bytes():
            content += part
            if len(content) > _LARGEST:
                return bytes(content[: content.rfind(b"\n") + 1]), False
    return bytes(content), True


def _told(context: MessageContext, profile: str) -> JsonFile[dict[str, Any]]:
    """The file with the last shown message of each topic, one for each profile."""
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
    """The time from which messages are requested: the subscription, or shortly before the last one that was shown.

    A time in the future was written with a wrong clock, and is ignored.
    """
    subscribed = float(entry.get("since") or 0)
    last = float(told["time"]) - _OVERLAP if told else 0.0
    return max((time for time in (subscribed, last) if time <= now + _DAY), default=0.0)


def _is_new(message: Message, entry: Subscription, told: Any, now: float) -> bool:
    return message.time >= _since(entry, told, now) and not (told and message.id in told["ids"])


def _state(told: Any, own: Sequence[Message], upto: float, now: float) -> dict[str, Any]:
    """What was shown of a topic: a time, and the ids of messages that may come again."""
    before = told or {"time": 0.0, "ids": {}}
    times = [time for time in (before["time"], upto) if time <= now + _DAY]
    time = max([*times, *(message.time for message in own)], default=0.0)
    ids = {name: at for name, at in before["ids"].items() if at >= time - _OVERLAP}
    return {"time": time, "ids": {**ids, **{message.id: message.time for message in own}}}


def _messages(content: bytes, entries: Sequence[Subscription], *, is_whole: bool) -> tuple[Sequence[Message], float]:
    """The messages in the lines of an answer, and the time up to which they are complete; other lines are skipped."""
    by_topic = {entry["topic"]: entry for entry in entries}
    found: dict[tuple[str, str], Message] = {}
    times: list[float] = []
    for line in content.split(b"\n"):  # a message may contain other line separators
        message = _message(line, by_topic)
        if message is not None:
            times.append(message.time)
            found[message.topic, message.id] = message
    # A truncated answer is complete up to its end only if the topics are not sent one after the other.
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
    """A message on one line: topic, title, text, and the attachment's name."""
    attachment = data.get("attachment")
    file = attachment.get("name") if isinstance(attachment, dict) else None
    parts = [entry.get("label") or data["topic"], data.get("title"), data.get("message"), file and f"[file {file}]"]
    return one_line(": ".join(str(part) for part in parts if part), _TEXT)
