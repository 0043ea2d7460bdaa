"""The errors for answers that are too large, take too long, or do not go on."""

from __future__ import annotations

from ...api.errors import StreamBroken, Unreachable
from ...api.providers import Endpoint
from .error_reports import shown_url

_WHAT = {
    "event": "an event or line of more than {:,} bytes",
    "document": "a document of more than {:,} bytes",
    "values": "a single event of more than {:,} objects and lists",
    "answer": "an answer of more than {:,} characters",
    "arguments": "calls with more than {:,} characters of arguments",
    "stream": "more than {:,} bytes",
}


def too_large(endpoint: Endpoint, url: str, name: str, limit: int) -> StreamBroken:
    """The error for an answer past the limit of this name."""
    return StreamBroken(
        f"{endpoint.provider} ({shown_url(url)}) sent {_WHAT[name].format(limit)}, which is the limit. Ask for less at "
        f"a time, or choose another model; limits.{name} in config.yaml changes the limit.",
        provider=endpoint.provider,
        final=True,
    )


def too_long(endpoint: Endpoint, url: str, seconds: float) -> StreamBroken:
    """The error for an answer that goes on for longer than any may."""
    return StreamBroken(
        f"The answer of {endpoint.provider} ({shown_url(url)}) did not end within {seconds:g} s. Ask for less at a "
        "time, or choose another model; timeouts.answer in config.yaml changes the limit.",
        provider=endpoint.provider,
        final=True,
    )


def lifeless(endpoint: Endpoint, url: str, seconds: float) -> Unreachable:
    """The error for an answer that does not go on, though the connection is kept alive."""
    return Unreachable(
        f"{endpoint.provider} ({shown_url(url)}) sent nothing of an answer for {seconds:g} s, only what keeps the "
        "connection alive. Try again, or choose another provider with --provider.",
        provider=endpoint.provider,
        sent=True,
    )
