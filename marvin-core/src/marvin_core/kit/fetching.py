"""Bounded HTTP requests to services and web pages, with errors explained for the model."""

from __future__ import annotations

import asyncio
import json as json_module
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from ..api.errors import RequestFailed, ToolError
from ..api.record import Record
from ..api.timeouts import Timeouts
from ..util.text import one_line
from ..util.untrusted_json import parse_json
from .addresses import shown, web_address
from .charsets import decoded
from .failures import explained, redirected, refusal

if TYPE_CHECKING:
    import httpx

    from .rate_limit import RateLimit

_TRIES = 3
_REDIRECTS = 10
_BEGINNING = 120
"""The maximum number of characters of an unexpected answer in an error."""
_OVERLOADED = 503
_JSON = "application/json"


class Fetched(Record):
    """A complete response.

    `url` is the final address after redirects, without user and password. `kind` is its media type in lower case,
    without parameters, as in `text/html`; empty if the server sent none. `headers` have lower-case
    names.
    """

    url: str
    status: int
    kind: str
    headers: Mapping[str, str]
    content: bytes

    @property
    def short_url(self) -> str:
        """The address for display: cut if it is long."""
        return shown(web_address(self.url))

    @property
    def text(self) -> str:
        """The decoded text, in the encoding that the server or the page declares, else the most likely one."""
        return decoded(self.content, self.headers.get("content-type", ""))

    def json(self) -> Any:
        """The parsed JSON; NaN and the infinities, which are not valid JSON, become null.

        Raises:
            RequestFailed: it is not JSON, is nested too deeply, or holds too many values.
        """
        if not self.content.strip():
            raise RequestFailed(f"{self.short_url} sent an empty answer instead of JSON. Try another source.")
        try:
            return parse_json(self.text)
        except ValueError as error:
            what = "a web page" if self.kind == "text/html" else f"{self.kind or 'something'} that is not valid JSON"
            begins = one_line(self.text[: 4 * _BEGINNING], _BEGINNING)
            why = one_line(str(error), _BEGINNING)
            raise RequestFailed(
                f"{self.short_url} sent {what} ({why}). It begins: {begins}. Try another source."
            ) from error


class RequestOptions(TypedDict, total=False):
    """The options of a request; all are optional.

    `params` are added to the query of the address; one with the value None is left out.
    `headers` are sent in addition to the default ones; a redirect to another server does not get them.
    `kinds` are the accepted media types, as in `application/json` or `image/*`; a response with another one is an
    error that names it. `largest` is the maximum size of a decompressed response in bytes, if less than `limits.body`.
    `timeout` is for the whole request, in seconds; `timeouts.http` by default. `patience` is the maximum total wait,
    in seconds, if a service asks to retry later; 0 disables it, and the default is `timeouts.http_patience`.
    `turns` limits the rate of requests to a host, see `RateLimit`.
    """

    params: Mapping[str, str | float | None]
    headers: Mapping[str, str]
    kinds: Sequence[str]
    largest: int
    timeout: float
    patience: float
    turns: RateLimit


async def fetch(http: httpx.AsyncClient, url: str, **options: Unpack[RequestOptions]) -> Fetched:
    """GET an address. Redirects are followed, each with the same checks as the address itself.

    If the service reports too many requests and says when to retry, this waits within `patience` and retries,
    at most twice.

    Args:
        http: `ToolContext.http`.

    Raises:
        RequestFailed: there is no response, an error, or an unexpected one; the text says what to do.
        AddressRefused: the address, or a redirect, is of this machine or of a private network.
        ToolError: the address is not a web address.
    """
    return await _answer(http, "GET", url, b"", options)


async def fetch_json(http: httpx.AsyncClient, url: str, **options: Unpack[RequestOptions]) -> Any:
    """GET JSON. Raises as `fetch` and `Fetched.json`."""
    return (await fetch(http, url, **_with_header(options, "accept", _JSON))).json()


async def post(
    http: httpx.AsyncClient,
    url: str,
    *,
    json: Any = None,
    form: Mapping[str, str] | None = None,
    content: bytes = b"",
    **options: Unpack[RequestOptions],
) -> Fetched:
    """POST JSON, form fields, or bytes.

    It is sent again only if the service says that it did not process it (429, or 403 with a time), and never to another
    server: a redirect that requires that is an error.

    Raises:
        RequestFailed, AddressRefused, ToolError: as `fetch`; the last also for values that JSON cannot represent.
    """
    kind = ""
    if json is not None:
        kind, content = _JSON, _json_bytes(json)
    elif form is not None:
        from urllib.parse import urlencode

        kind = "application/x-www-form-urlencoded"
        content = urlencode({_sendable(name): _sendable(value) for name, value in form.items()}).encode()
    return await _answer(http, "POST", url, content, _with_header(options, "content-type", kind) if kind else options)


async def post_json(http: httpx.AsyncClient, url: str, json: Any, **options: Unpack[RequestOptions]) -> Any:
    """POST JSON, and parse the JSON response. Raises as `post` and `Fetched.json`."""
    options = _with_header(_with_header(options, "accept", _JSON), "content-type", _JSON)
    return (await post(http, url, content=_json_bytes(json), **options)).json()


async def delete(http: httpx.AsyncClient, url: str, *, json: Any = None, **options: Unpack[RequestOptions]) -> Fetched:
    """DELETE an address, with a JSON body if the service requires one.

    It is sent again if the service says that it did not process it, like `post`, and never to another server.

    Raises:
        RequestFailed, AddressRefused, ToolError: as `post`.
    """
    if json is None:
        return await _answer(http, "DELETE", url, b"", options)
    return await _answer(http, "DELETE", url, _json_bytes(json), _with_header(options, "content-type", _JSON))


@asynccontextmanager
async def open_url(
    http: httpx.AsyncClient, url: str, *, headers: Mapping[str, str] | None = None, raw: bool = False
) -> AsyncIterator[httpx.Response]:
    """GET with a streamed body, for content that is too large for memory.

    Read it with `aiter_bytes()`, or with `raw` unmodified, for a file, with `aiter_raw()`: then `limits.download`
    bounds it. Errors while reading are explained as well.

    Raises:
        RequestFailed, AddressRefused, ToolError: as `fetch`.
    """
    extensions = {"marvin_body": "raw"} if raw else {}
    address = web_address(url)
    with explained(address):
        request = _built(http, "GET", address, b"", {"headers": headers or {}}, extensions)
        async with _followed(http, request) as response:
            yield response


def _with_header(options: RequestOptions, name: str, value: str) -> RequestOptions:
    """The options with a header, if they do not have it."""
    given = {header.lower(): one for header, one in options.get("headers", {}).items()}
    return {**options, "headers": {name: value, **given}}


async def _answer(http: httpx.AsyncClient, method: str, url: str, content: bytes, options: RequestOptions) -> Fetched:
    """A response, with retries when the service asks for them."""
    address = web_address(url)
    patience = options.get("patience", _timeouts(http).http_patience)
    turns = options.get("turns")
    tries = 0
    while True:
        tries += 1
        if turns is not None:
            await turns.wait(address.host)
        try:
            return await _once(http, method, address, content, options)
        except RequestFailed as error:
            pause = error.retry_after
            if turns is not None and pause:
                await turns.postpone(address.host, pause)
            is_repeatable = method == "GET" or error.status != _OVERLOADED  # with the others it may have been processed
            if pause is None or pause > patience or tries == _TRIES or not is_repeatable:
                raise
        patience -= pause
        await asyncio.sleep(pause)


async def _once(
    http: httpx.AsyncClient, method: str, address: httpx.URL, content: bytes, options: RequestOptions
) -> Fetched:
    limit = options.get("timeout", http.timeout.read or _timeouts(http).http)
    try:
        async with asyncio.timeout(limit):
            with explained(address):
                request = _built(http, method, address, content, options, {})
                async with _followed(http, request) as response:
                    return await _read(response, options)
    except TimeoutError as error:
        raise RequestFailed(
            f"{shown(address)} did not answer in time: the answer was not complete after {limit:g} s. Try again "
            "later, or use another source."
        ) from error


def _timeouts(http: httpx.AsyncClient) -> Timeouts:
    """The limits of the client of tools; the defaults for a client that is not one of Marvin's."""
    from ..http.limited import LimitedClient

    return http.timeouts if isinstance(http, LimitedClient) else Timeouts()


def _built(
    http: httpx.AsyncClient,
    method: str,
    address: httpx.URL,
    content: bytes,
    options: RequestOptions,
    extensions: dict[str, Any],
) -> httpx.Request:
    given = {name: value for name, value in options.get("params", {}).items() if value is not None}
    params = {name: _sendable(value) if isinstance(value, str) else value for name, value in given.items()}
    try:
        return http.build_request(
            method,
            address.copy_merge_params(params) if params else address,
            headers=dict(options.get("headers", {})),
            content=content or None,
            extensions=extensions,
        )
    except UnicodeEncodeError as error:
        raise ToolError(
            f"A header of the request holds {error.object[error.start]!a}, which is not allowed in headers. Remove it."
        ) from error


@asynccontextmanager
async def _followed(http: httpx.AsyncClient, request: httpx.Request) -> AsyncIterator[httpx.Response]:
    """The response after redirects; an unsuccessful status is an error.

    Cookies are kept until then: some servers redirect a client without cookies back to the same address.
    """
    from httpx import Cookies

    cookies = Cookies()
    for _ in range(_REDIRECTS + 1):
        response = await http.send(request, stream=True, follow_redirects=False)
        try:
            following = response.next_request
            if following is None:
                if not response.is_success:
                    raise await refusal(response)
                yield response
                return
            cookies.extract_cookies(response)
        finally:
            await response.aclose()
        request = redirected(request, following)
        cookies.set_cookie_header(request)
    raise RequestFailed(
        f"{shown(request.url)} redirects in a circle, or more than {_REDIRECTS} times. Use another address."
    )


async def _read(response: httpx.Response, options: RequestOptions) -> Fetched:
    url, kind = shown(response.url), response.headers.get("content-type", "").partition(";")[0].strip().lower()
    wanted = options.get("kinds", ())
    if wanted and kind and not any(_is_of(kind, one) for one in wanted):
        raise RequestFailed(f"{url} is {one_line(kind, _BEGINNING)}, not {' or '.join(wanted)}. Use another address.")
    largest = options.get("largest")
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_bytes():
        parts.append(part)
        size += len(part)
        if largest is not None and size > largest:
            raise RequestFailed(f"{url} is larger than {_megabytes(largest)}. Use something smaller.")
    headers = {name.lower(): value for name, value in response.headers.items()}
    whole = str(response.url.copy_with(userinfo=b"")) if response.url.userinfo else str(response.url)
    return Fetched(url=whole, status=response.status_code, kind=kind, headers=headers, content=b"".join(parts))


def _is_of(kind: str, wanted: str) -> bool:
    """Whether a media type matches the accepted one, or its family: `image/*`, `application/ld+json`."""
    if wanted.endswith("/*"):
        return kind.startswith(wanted[:-1])
    return kind == wanted or kind.endswith(f"+{wanted.partition('/')[2]}")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:g} MB" if size >= 100_000 else f"{size:,} bytes"


def _json_bytes(value: Any) -> bytes:
    try:
        return json_module.dumps(value, allow_nan=False).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolError(f"The data to send cannot be written as JSON: {error}. Leave that part out.") from error


def _sendable(text: str) -> str:
    """The text without unpaired surrogates, which models sometimes write and which cannot be encoded."""
    return text.encode("utf-8", "replace").decode("utf-8")
