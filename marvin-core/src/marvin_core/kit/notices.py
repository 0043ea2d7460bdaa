"""Notifications to the user's devices by ntfy, the public service or a server of your own.

Facts of the service: https://docs.ntfy.sh/publish/#publish-as-json
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from ..api.errors import RequestFailed, ToolError
from ..api.record import Record
from ..util.patterns.topics import is_topic, refused_topic
from ..util.text import cut, storable
from .addresses import shown, web_address
from .fetching import post

if TYPE_CHECKING:
    import httpx

PushPriority: TypeAlias = Literal["min", "low", "default", "high", "max"]

NTFY = "https://ntfy.sh"
"""The public server; everybody who knows the name of a topic can read it."""
_MESSAGE_BYTES = 4_096
"""The maximum number of bytes of a message; a longer one would arrive as an attached file."""
_TITLE_CHARACTERS = 250
_TAGS = 10
_ANSWER_BYTES = 64 * 1024
_WHAT_TO_DO: Mapping[int, str] = {
    401: "The server does not know this user or token. Ask the user to check it.",
    403: "This topic does not accept notifications from you. Use another topic, or ask the user for a token.",
    404: "That is not an ntfy server. Ask the user to check its address.",
    413: "The notification is too large. Send a shorter one.",
    429: "Too many notifications were sent. Send fewer, or wait until tomorrow.",
}


class Push(Record):
    """A notification to a topic.

    `tags` are short names; names of emoji are shown as emoji, as in `warning`. `click` is an address to open when the
    notification is tapped.
    """

    topic: str
    text: str
    title: str = ""
    priority: PushPriority = "default"
    tags: tuple[str, ...] = ()
    click: str = ""


class NtfyServer(Record):
    """An ntfy server: its address, and a token (`tk_...`), or a user and password, if it requires one."""

    address: str = NTFY
    token: str = ""
    user: str = ""
    password: str = ""

    def headers(self) -> dict[str, str]:
        """The credentials header."""
        if self.token:
            return {"authorization": f"Bearer {self.token}"}
        if not self.user:
            return {}
        from base64 import b64encode

        return {"authorization": f"Basic {b64encode(f'{self.user}:{self.password}'.encode()).decode()}"}


async def publish(http: httpx.AsyncClient, push: Push, server: NtfyServer | None = None) -> str:
    """Publish a notification; returns its ID. A text of more than 4,096 bytes is cut.

    Args:
        http: `ToolContext.http`.
        server: the public server by default.

    Raises:
        RequestFailed: the server cannot be reached, or rejects the notification; the text says what to do.
        ToolError: the topic, the priority or the address is invalid.
    """
    server = server or NtfyServer()
    body = _body(push)
    try:
        answer = await post(
            http, str(web_address(server.address)), json=body, headers=server.headers(), largest=_ANSWER_BYTES
        )
    except RequestFailed as error:
        advice = _WHAT_TO_DO.get(error.status or 0)
        if advice is None:
            raise
        raise RequestFailed(
            f"The notification was not published. {advice} {error}", status=error.status, retry_after=error.retry_after
        ) from error
    published = answer.json()
    if not isinstance(published, dict) or published.get("topic") != push.topic:
        place = shown(web_address(server.address))
        raise RequestFailed(f"{place} did not confirm that the notification was published. Is it an ntfy server?")
    return str(published.get("id", ""))


def _body(push: Push) -> dict[str, Any]:
    if not is_topic(push.topic):
        raise ToolError(refused_topic(push.topic))
    if push.priority not in get_args(PushPriority):
        raise ToolError(f"{push.priority!r} is not a priority. Use one of {', '.join(get_args(PushPriority))}.")
    if not push.text.strip():
        raise ToolError("The notification has no text. Give a message.")
    body: dict[str, Any] = {
        "topic": push.topic,
        "message": _shortened(push.text),
        "priority": get_args(PushPriority).index(push.priority) + 1,
    }
    if push.title:
        body["title"] = cut(" ".join(push.title.split()), _TITLE_CHARACTERS)
    if push.tags:
        body["tags"] = [storable(tag) for tag in push.tags[:_TAGS]]
    if push.click:
        body["click"] = str(web_address(push.click))
    return body


def _shortened(text: str) -> str:
    data = storable(text).encode()
    if len(data) <= _MESSAGE_BYTES:
        return data.decode()
    return data[: _MESSAGE_BYTES - len("…".encode())].decode("utf-8", "ignore") + "…"
