"""New messages of the topics that a profile is subscribed to.

Facts of the service: https://docs.ntfy.sh/subscribe/api/
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from marvin_core import Clock, JsonFile, Record, fetch, in_thread, one_line

from .subscriptions import ProfileContext, Subscription, server, subscriptions

if TYPE_CHECKING:
    import httpx

_LARGEST = 1_000_000
_MOST = 50
"""Messages that are told at once."""
_IDS = 200
"""Newest messages of a topic that are remembered as told."""
_TEXT = 500
_OVERLAP = 10
"""Seconds that are asked for again: clocks differ, and messages come in late."""


class MessageContext(ProfileContext, Protocol):
    """What asking for messages takes, of tools and hooks."""

    @property
    def http(self) -> httpx.AsyncClient: ...
    @property
    def clock(self) -> Clock: ...


class Message(Record):
    """A message as people are shown it; `time` is in seconds since the epoch."""

    id: str
    topic: str
    time: float
    text: str


async def new_messages(context: MessageContext, timeout: float) -> tuple[Sequence[Message], int]:
    """What came since the last time, the oldest first, and how many more there were. They count as told from now on.

    Args:
        timeout: for the server, in seconds.

    Raises:
        RequestFailed: the server cannot be reached, or refuses.
        ToolError: what is kept is damaged.
    """
    entries = await subscriptions(context).read()
    if not entries:
        return (), 0
    told = _told(context)
    known = await told.read()
    since = min(_since(entry, known.get(entry["topic"])) for entry in entries)
    place = server(context)
    topics = ",".join(entry["topic"] for entry in entries)
    answer = await fetch(
        context.http,
        f"{place.address.rstrip('/')}/{topics}/json",
        params={"poll": "1", "since": str(int(since))},
        headers=place.headers(),
        largest=_LARGEST,
        timeout=timeout,
        patience=0,
    )
    found = await in_thread(lambda: _messages(answer.text, {entry["topic"]: entry for entry in entries}))

    # Under the lock, so that of several chats only one tells a message.
    def fresh(known: dict[str, Any]) -> list[Message]:
        new = [message for message in found if _is_new(message, known.get(message.topic))]
        by_topic = {entry["topic"]: entry for entry in entries}
        new = [message for message in new if message.time >= _since(by_topic[message.topic], known.get(message.topic))]
        for message in new:
            before = known.get(message.topic) or {}
            known[message.topic] = {
                "time": max(message.time, before.get("time", 0)),
                "ids": [*before.get("ids", ()), message.id][-_IDS:],
            }
        return new

    new = await told.change(fresh)
    return new[-_MOST:], max(0, len(new) - _MOST)


def _told(context: MessageContext) -> JsonFile[dict[str, Any]]:
    """Up to where the messages of topics were told, in a file for each profile."""
    name = f"told-{context.profile_folder.name}.json"
    return JsonFile(context.folders.state / name, dict, _check, timeouts=context.timeouts)


def _check(topics: dict[str, Any]) -> None:
    for topic in topics.values():
        if not (isinstance(topic["time"], (int, float)) and isinstance(topic["ids"], list)):
            raise ValueError(f"{topic!r} is no state of a topic")


def _since(entry: Subscription, told: Any) -> float:
    """From when on a topic is of interest: since it was subscribed, or a little before what was told last."""
    subscribed = float(entry.get("since") or 0)
    return max(subscribed, told["time"] - _OVERLAP) if told else subscribed


def _is_new(message: Message, told: Any) -> bool:
    return not told or message.id not in told["ids"]


def _messages(text: str, entries: dict[str, Subscription]) -> list[Message]:
    """The messages in the lines of an answer; whatever else stands there is passed over."""
    found = {}
    for line in text.splitlines():
        try:
            data = json.loads(line)
            if data["event"] == "message" and data["topic"] in entries:
                message = Message(
                    id=str(data["id"])[:64],
                    topic=data["topic"],
                    time=float(data["time"]),
                    text=_text(data, entries[data["topic"]]),
                )
                found[message.id] = message
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
            continue
    return sorted(found.values(), key=lambda message: message.time)


def _text(data: dict[str, Any], entry: Subscription) -> str:
    """A message in one line: where it is from, its title, its text, and the name of what is attached."""
    attachment = data.get("attachment")
    file = attachment.get("name") if isinstance(attachment, dict) else None
    parts = [entry.get("label") or data["topic"], data.get("title"), data.get("message"), file and f"[file {file}]"]
    return one_line(": ".join(str(part) for part in parts if part), _TEXT)
