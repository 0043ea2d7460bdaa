"""The ntfy topics that a profile is subscribed to, and the topic for alarms."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

from marvin_core import JsonFile, NtfyServer, PackContext, is_topic, web_address

Subscription: TypeAlias = dict[str, Any]
"""`topic`; `label`, its name for people; `since`, the time from which its messages count, in seconds since the
epoch."""

TOKEN = "NTFY_TOKEN"  # noqa: S105  # the name of a variable


class ProfileContext(PackContext, Protocol):
    """The parts of a context that concern the profile."""

    @property
    def profile_folder(self) -> Any: ...


def subscriptions(context: ProfileContext) -> JsonFile[list[Subscription]]:
    """The file of the subscriptions of a profile."""
    return JsonFile(context.profile_folder / "ntfy_subscriptions.json", list, _check, timeouts=context.timeouts)


def _check(entries: list[Any]) -> None:
    for entry in entries:
        if not (isinstance(entry, dict) and isinstance(entry.get("topic"), str) and is_topic(entry["topic"])):
            raise ValueError(f"{entry!r} is not a subscription")
        if not (isinstance(entry.get("label") or "", str) and isinstance(entry.get("since") or 0, (int, float))):
            raise ValueError(f"{entry!r} is not a subscription")


def server(context: PackContext) -> NtfyServer:
    """The ntfy server that the user configured."""
    from ..settings import LifeSettings  # it needs pydantic, which a chat without subscriptions does not load

    return NtfyServer(address=context.settings(LifeSettings).ntfy, token=context.secret(TOKEN, None) or "")


def shown(place: NtfyServer) -> str:
    """A server's URL for people and models: without user and password."""
    return str(web_address(place.address).copy_with(userinfo=b"")).rstrip("/")


async def alarm_topic(context: ProfileContext) -> str:
    """The topic of alarms and reminders: the configured one, else the only subscribed one, else none."""
    from ..settings import LifeSettings

    chosen = context.settings(LifeSettings).alarm_topic
    if chosen:
        return chosen
    topics = [entry["topic"] for entry in await subscriptions(context).read()]
    return topics[0] if len(topics) == 1 else ""
