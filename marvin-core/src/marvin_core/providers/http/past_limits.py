"""The errors for answers that are too large, take too long, or make no progress."""

from __future__ import annotations

from ...api.errors import StreamBroken, Unreachable
from ...api.providers import Endpoint
from .error_reports import shown_url

_WHAT = {
    "event": "sent an event or line of more than {:,} bytes",
    "document": "sent a document of more than {:,} bytes",
    "values": "sent a single event of more than {:,} objects and lists",
    "answer": "sent an answer of more than {:,} characters",
    "arguments": "sent calls with more than {:,} characters of arguments",
    "stream": "sent more than {:,} bytes",
}


def too_large(endpoint: Endpoint, url: str, name: str, limit: int) -> StreamBroken:
    """The error for an answer that exceeds the limit of this name."""
    return _past(endpoint, url, _WHAT[name].format(limit), f"limits.{name}")


def too_long(endpoint: Endpoint, url: str, seconds: float) -> StreamBroken:
    """The error for an answer that exceeds the maximum duration."""
    return _past(endpoint, url, f"did not end its answer within {seconds:g} s", "timeouts.answer")


def _past(endpoint: Endpoint, url: str, what: str, setting: str) -> StreamBroken:
    return StreamBroken(
        f"{_service(endpoint, url)} {what}, which is over the limit. Ask for less at a time, or choose another model "
        f"(/model, --model); {setting} in config.yaml changes the limit.",
        provider=endpoint.provider,
        final=True,
    )


def lifeless(endpoint: Endpoint, url: str, seconds: float) -> Unreachable:
    """The error for an answer without progress on a connection that is kept alive."""
    return Unreachable(
        f"{_service(endpoint, url)} sent no part of an answer for {seconds:g} s, only keep-alive data. Try again, or "
        "choose another model (/model, --model).",
        provider=endpoint.provider,
        sent=True,
    )


def _service(endpoint: Endpoint, url: str) -> str:
    """The service, and its address if it has one."""
    return f"{endpoint.provider} ({shown_url(url)})" if url else endpoint.provider
