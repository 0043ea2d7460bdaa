"""Errors of HTTP requests, explained for the model, and the rules for redirects."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..api.errors import RequestFailed
from ..http.retry_times import after_headers
from ..util.terminal_text import disarm
from ..util.text import one_line
from ..util.untrusted_json import parse_json
from .addresses import shown
from .charsets import decoded

if TYPE_CHECKING:
    import httpx

_REASON = 80
_SAID = 300
"""The maximum number of characters of a service's error message."""
_ERROR_BODY = 16 * 1024
"""The maximum number of bytes of an error response that are searched for it."""
_LONGEST_WAIT = 999_999_999
_COME_BACK = (403, 429, 503)
"""Statuses at which a service may say when to retry; some answer 403 to too many requests."""
_WHAT_TO_DO = {
    400: "Check the request",
    401: "It requires a login, or a different key. Use another source",
    402: "It requires payment. Use another source",
    403: "It refuses programs, or refuses this key. Use another source",
    404: "There is nothing at that address. Check it, or search for the page",
    405: "It does not accept this kind of request. Check the address",
    407: "The proxy of this machine requires a login. Tell the user",
    410: "It was removed permanently. Search for another source",
    413: "The request was too large. Send less",
    414: "The address is too long. Use a shorter one",
    422: "Check the request",
    429: "It gets too many requests. Wait, or use another source",
    451: "It is blocked for legal reasons. Use another source",
}
_SAYING = (
    "message",
    "error_message",
    "error_description",
    "detail",
    "error",
    "title",
    "reason",
    "description",
    "errors",
)
"""Where services put the error message in JSON, the clearest first."""
_KEPT_HEADERS = frozenset({"accept", "accept-encoding", "accept-language", "connection", "host", "user-agent"})
"""The headers that a request to another server keeps: none that may hold a key."""
_PORTS = {"http": 80, "https": 443}


@contextmanager
def explained(url: httpx.URL) -> Iterator[None]:
    """Raise errors of httpx as a `RequestFailed` that says what to do, with the address that failed."""
    import httpx

    try:
        yield
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise RequestFailed(_in_words(error, _address(error, url))) from error


def _address(error: Exception, url: httpx.URL) -> httpx.URL:
    import httpx

    try:
        return error.request.url if isinstance(error, httpx.RequestError) else url
    except RuntimeError:  # there was no request yet
        return url


def _in_words(error: Exception, url: httpx.URL) -> str:
    import httpx

    if isinstance(error, httpx.ConnectTimeout):
        return f"{shown(url)} cannot be reached: {_text(error)}. Check the address, or try again later."
    if isinstance(error, httpx.TimeoutException):
        return f"{shown(url)} did not answer in time. Try again later, or use another source."
    if isinstance(error, (httpx.UnsupportedProtocol, httpx.InvalidURL)):
        return f"{shown(url)} leads to an address that is not a web address. Use another source."
    if isinstance(error, httpx.RemoteProtocolError) and isinstance(error.__context__, httpx.InvalidURL):
        return f"{shown(url)} redirects to something that is not an address. Use another source."
    if isinstance(error, httpx.DecodingError):
        return f"{shown(url)} sent something that cannot be decompressed: {_text(error)}. Use another source."
    if isinstance(error, httpx.ProxyError):
        return f"The proxy refuses connections to {url.host}: {_text(error)}. Tell the user, who configured this proxy."
    if isinstance(error, httpx.ConnectError):
        return _unreachable(url, error)
    if isinstance(error, httpx.LocalProtocolError):
        return f"The request to {shown(url)} cannot be sent: {_text(error)}. Change it."
    return f"The connection to {shown(url)} failed: {_text(error)}. Check the address, or try again later."


def _unreachable(url: httpx.URL, error: httpx.ConnectError) -> str:
    import socket
    import ssl

    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            why = one_line(cause.verify_message, _SAID)
            return (
                f"{url.host} has an invalid certificate ({why}), so it may not be the real {url.host}. Send nothing "
                "there, and use another source."
            )
        if isinstance(cause, ssl.SSLError):
            why = one_line(cause.reason or str(cause), _SAID)
            return f"No secure connection to {url.host} can be made ({why}). Use another address."
        if isinstance(cause, socket.gaierror):
            return (
                f"The host {url.host} does not exist, or its address cannot be looked up ({_text(error)}). Check its "
                "spelling, or try again later."
            )
    return f"{shown(url)} cannot be reached: {_text(error)}. Check the address, or try again later."


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and its causes."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _text(error: Exception) -> str:
    return one_line(str(error), _SAID) or type(error).__name__


async def refusal(response: httpx.Response) -> RequestFailed:
    """The error for an unsuccessful status: its meaning, the service's message, and what to do."""
    status = response.status_code
    otherwise = "It has a problem. Try again later" if status >= 500 else "Check the address"
    what = _WHAT_TO_DO.get(status, otherwise)
    wait = after_headers(response.headers, {}) if status in _COME_BACK else None
    asked = f" (it asks to wait {wait:,.0f} s)" if wait and wait <= _LONGEST_WAIT else ""
    reason = one_line(response.reason_phrase, _REASON)
    said = await _said(response)
    text = f"{shown(response.url)} answered {status} {reason}".rstrip() + f". {what}{asked}."
    return RequestFailed(f"{text} It says: {said}" if said else text, status=status, retry_after=wait)


async def _said(response: httpx.Response) -> str:
    """The error message of a service on one line; empty for a web page."""
    import httpx

    content = b""
    try:
        async for part in response.aiter_bytes():
            content += part
            if len(content) > _ERROR_BODY:
                break
    except httpx.HTTPError:
        pass  # the part received so far may be enough
    kind = response.headers.get("content-type", "")
    text = decoded(content[:_ERROR_BODY], kind)
    try:
        found = _message(parse_json(text))
    except ValueError:
        found = text if kind.startswith("text/plain") else ""
    return one_line(disarm(found), _SAID)


def _message(value: Any, depth: int = 4) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and depth:
        return _message(value[0], depth - 1)
    if isinstance(value, dict) and depth:
        named = (_message(value[name], depth - 1) for name in _SAYING if name in value)
        return next(filter(None, named), "")
    return ""


def redirected(before: httpx.Request, after: httpx.Request) -> httpx.Request:
    """The request for a redirect, without headers that are meant for the first server alone.

    Raises:
        RequestFailed: the target is not a web address, or posted data would be sent to another server.
    """
    if after.url.scheme not in _PORTS:
        raise RequestFailed(f"{shown(after.url)} leads to an address that is not a web address. Use another source.")
    if _is_same_server(before.url, after.url):
        return after
    if after.method not in ("GET", "HEAD"):
        raise RequestFailed(
            f"{shown(before.url)} redirects the request to another server, {shown(after.url)}; the request was not "
            "sent there. If that address is right, use it."
        )
    for name in [name for name in after.headers if name.lower() not in _KEPT_HEADERS]:
        del after.headers[name]
    return after


def _is_same_server(before: httpx.URL, after: httpx.URL) -> bool:
    """Whether a redirect stays on its server; a change from http to https there is allowed."""
    ports = [url.port or _PORTS.get(url.scheme) for url in (before, after)]
    is_upgrade = (before.scheme, after.scheme) == ("http", "https") and ports == [80, 443]
    return before.host == after.host and ((before.scheme, ports[0]) == (after.scheme, ports[1]) or is_upgrade)
