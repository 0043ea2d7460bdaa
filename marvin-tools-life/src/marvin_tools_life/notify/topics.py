"""The tools for ntfy: messages from and to the user's phone and other programs."""

from __future__ import annotations

import secrets
from importlib.resources import files
from typing import Annotated
from urllib.parse import urlsplit

from marvin_core import (
    Push,
    RequestFailed,
    ToolContext,
    ToolError,
    ToolResult,
    call_of,
    did_you_mean,
    in_thread,
    is_topic,
    near_names,
    one_line,
    publish,
    tool,
)

from .messages import new_messages
from .subscriptions import Subscription, alarm_topic, server, subscriptions

_WORDS = 5
_LABEL = 60
_MOST = 50


@tool(access=["write"])
async def generate_ntfy_topic(
    label: Annotated[str, "What it is for"] = "",
    *,
    context: ToolContext,
) -> ToolResult:
    """Make up a topic of five random words on ntfy and subscribe to it. Who knows its name can read and write it."""
    words = await in_thread(lambda: files(__package__).joinpath("words.txt").read_text(encoding="ascii").split())
    topic = "-".join(secrets.choice(words) for _ in range(_WORDS))
    await _subscribe(context, topic, label)
    address = f"{server(context).address.rstrip('/')}/{topic}"
    text = (
        f"The topic {topic} is made and subscribed. On the phone, subscribe to it in the ntfy app, or open {address}."
    )
    return ToolResult(content=text, undo=call_of(ntfy_unsubscribe, topic=topic))


@tool(access=["write"])
async def ntfy_subscribe(
    topic: Annotated[str, "Its name or address"],
    label: Annotated[str, "What it is called"] = "",
    *,
    context: ToolContext,
) -> ToolResult:
    """Subscribe to a topic on ntfy: its new messages are shown at each prompt."""
    name = _name(topic)
    await _subscribe(context, name, label)
    return ToolResult(content=f"Subscribed to {name}.", undo=call_of(ntfy_unsubscribe, topic=name))


@tool(access=["write"])
async def ntfy_unsubscribe(topic: Annotated[str, "Its name or label"], *, context: ToolContext) -> ToolResult:
    """Unsubscribe from a topic."""

    def remove(entries: list[Subscription]) -> Subscription:
        entry = _found(entries, topic)
        entries.remove(entry)
        return entry

    entry = await subscriptions(context).change(remove)
    undo = call_of(ntfy_subscribe, topic=entry["topic"], label=entry.get("label") or "")
    return ToolResult(content=f"Unsubscribed from {entry['topic']}.", undo=undo)


@tool(access=["net", "write"])
async def ntfy_publish(
    topic: Annotated[str, "Its name, or the label of a subscription"],
    message: Annotated[str, "The text"],
    title: Annotated[str, "A line above it"] = "",
    *,
    context: ToolContext,
) -> str:
    """Send a push notification to everybody who is subscribed to a topic on ntfy. It cannot be taken back."""
    entries = await subscriptions(context).read()
    labels = {(entry.get("label") or "").casefold(): entry["topic"] for entry in entries}
    name = labels.get(topic.strip().casefold()) or _name(topic)
    await publish(context.http, Push(topic=name, text=message, title=title), server(context))
    return f"Sent to {name}."


@tool(access=["net"])
async def ntfy_list(*, context: ToolContext) -> str:
    """List the subscriptions on ntfy, and the messages that are new."""
    entries = await subscriptions(context).read()
    if not entries:
        return "No topic is subscribed. generate_ntfy_topic makes one, ntfy_subscribe takes an existing one."
    alarms = await alarm_topic(context)
    lines = [
        one_line(entry["topic"] + (f" ({entry['label']})" if entry.get("label") else ""))
        + (", for alarms and reminders" if entry["topic"] == alarms else "")
        for entry in entries
    ]
    try:
        messages, more = await new_messages(context, context.timeouts.http)
    except RequestFailed as error:
        return "\n".join([*lines, f"New messages cannot be had: {error}"])
    lines += [f"New: {message.text}" for message in messages] or ["No new messages."]
    return "\n".join([*lines, f"{more} older ones are left out."] if more else lines)


async def _subscribe(context: ToolContext, topic: str, label: str) -> None:
    label = one_line(label)
    if len(label) > _LABEL:
        raise ToolError(f"The label has {len(label)} characters. Use {_LABEL} at most.")
    now = context.clock.now()

    def add(entries: list[Subscription]) -> None:
        if any(entry["topic"] == topic for entry in entries):
            raise ToolError(f"{topic} is subscribed already. ntfy_list tells what is new there.")
        if label and any((entry.get("label") or "").casefold() == label.casefold() for entry in entries):
            raise ToolError(f"Another topic has the label {label!r} already. Choose another label.")
        if len(entries) >= _MOST:
            raise ToolError(f"{_MOST} topics are subscribed, which is the most. Unsubscribe from one first.")
        entries.append({"topic": topic, "label": label, "since": int(now)})

    await subscriptions(context).change(add)


def _name(text: str) -> str:
    """The topic that a name or an address means."""
    written = text.strip()
    name = urlsplit(written if "://" in written else f"//{written}").path.strip("/") if "/" in written else written
    if not is_topic(name):
        raise ToolError(
            f"{one_line(written, 80)!r} cannot be a topic. Use up to 64 letters, digits, '-' and '_', without spaces."
        )
    return name


def _found(entries: list[Subscription], wanted: str) -> Subscription:
    folded = wanted.strip().casefold()
    for entry in entries:
        if folded and folded in (entry["topic"].casefold(), (entry.get("label") or "").casefold()):
            return entry
    name = wanted.strip().rstrip("/").rpartition("/")[2]
    for entry in entries:
        if entry["topic"] == name:
            return entry
    topics = [entry["topic"] for entry in entries]
    if not topics:
        raise ToolError(f"{one_line(wanted, 80)!r} is not subscribed; no topic is. Use ntfy_subscribe first.")
    near = did_you_mean(near_names(wanted, topics)) or f"Subscribed are: {', '.join(topics[:10])}."
    raise ToolError(f"{one_line(wanted, 80)!r} is not subscribed. {near}")
