"""Requests to services and pages of the web: bounded, and explained where they fail."""

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
"""Characters of an answer that an error shows where it is not what was expected."""
_OVERLOADED = 503
_JSON = "application/json"


class Fetched(Record):
    """A whole answer.

    `url` is where it came from, redirects followed, without a user and password in it. `kind` is its media type in
    lower case, without parameters, as in `text/html`; empty where the server did not say. `headers` have lower-case
    names.
    """

    url: str
    status: int
    kind: str
    headers: Mapping[str, str]
    content: bytes

    @property
    def short_url(self) -> str:
        """The address as texts show it: cut where it is long."""
        return shown(web_address(self.url))

    @property
    def text(self) -> str:
        """The content as text, in the encoding that the server or the page names, else the likeliest one."""
        return decoded(self.content, self.headers.get("content-type", ""))

    def json(self) -> Any:
        """The content as JSON; NaN and the infinities, which are no JSON, count as null.

        Raises:
            RequestFailed: it is none, or nested too deeply, or holds too many values.
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
    """What a request may be made with; each can be left out.

    `params` are added to the query of the address; one with the value None is left out.
    `headers` are sent besides those of every request; a redirect to another server does not get them.
    `kinds` are the media types that are of use, as in `application/json` or `image/*`; an answer of another one is an
    error that names it. `largest` is the most bytes of an answer, decompressed, where that is less than `limits.body`.
    `timeout` is for the whole of a request, in seconds; `timeouts.http` without it. `patience` is the longest that is
    waited, in seconds and in all, where a service asks to come back later; 0 is not at all, and without it
    `timeouts.http_patience` counts. `turns` makes requests wait for their turn at a host, see `RateLimit`.
    """

    params: Mapping[str, str | float | None]
    headers: Mapping[str, str]
    kinds: Sequence[str]
    largest: int
    timeout: float
    patience: float
    turns: RateLimit


async def fetch(http: httpx.AsyncClient, url: str, **options: Unpack[RequestOptions]) -> Fetched:
    """What is at an address (GET). Redirects are followed, each looked at as the address itself is.

    Where the service says that it gets too many requests and when to come back, that is waited for within `patience`,
    twice at most.

    Args:
        http: `ToolContext.http`.

    Raises:
        RequestFailed: there is no answer, an error, or not what was expected; the text says what to do.
        AddressRefused: the address, or one that it redirects to, is of this machine or of a private network.
        ToolError: the address is not a web address.
    """
    return await _answer(http, "GET", url, b"", options)


async def fetch_json(http: httpx.AsyncClient, url: str, **options: Unpack[RequestOptions]) -> Any:
    """The JSON at an address. Raises as `fetch` and `Fetched.json`."""
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
    """What a service answers to a POST of JSON, of the fields of a form, or of bytes.

    It is sent again only where the service says that it did not take it (429, or 403 with a time), and never to another
    server: a redirect that asks for that is an error.

    Raises:
        RequestFailed, AddressRefused, ToolError: as `fetch`; the last also for what JSON cannot hold.
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
    """The JSON that a service answers to a POST of JSON. Raises as `post` and `Fetched.json`."""
    options = _with_header(_with_header(options, "accept", _JSON), "content-type", _JSON)
    return (await post(http, url, content=_json_bytes(json), **options)).json()


async def delete(http: httpx.AsyncClient, url: str, *, json: Any = None, **options: Unpack[RequestOptions]) -> Fetched:
    """What a service answers to a DELETE, with JSON that says what of it is meant where it wants that.

    It is sent again where the service says that it did not take it, as `post` is, and never to another server.

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
    """An answer to a GET whose body is still to be read, for what is too large to be kept in memory.

    Read it with `aiter_bytes()`, or with `raw` as it comes, for a file, with `aiter_raw()`: then `limits.download`
    bounds it. What goes wrong while it is read is explained as well.

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
    """The options with a header, where they do not have it."""
    given = {header.lower(): one for header, one in options.get("headers", {}).items()}
    return {**options, "headers": {name: value, **given}}


async def _answer(http: httpx.AsyncClient, method: str, url: str, content: bytes, options: RequestOptions) -> Fetched:
    """An answer, waited for where the service asks to come back in a while."""
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
            is_repeatable = method == "GET" or error.status != _OVERLOADED  # it may have begun with the others
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
    """Those that the client of tools was made with; a client that is none of Marvin's has the usual ones."""
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
    """The answer to a request or to what it redirects to; a status that is no success is an error.

    Cookies live as long as that: some servers send whoever has none back to where they came from.
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
    """Whether a media type is the one that is wanted, or one of its family: `image/*`, `application/ld+json`."""
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
    """The text without halves of surrogate pairs, which models write at times and nothing can send."""
    return text.encode("utf-8", "replace").decode("utf-8")
