"""Requests to services: their URL, rate limits, cache, error messages and health."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, TypeVar, Unpack
from urllib.parse import urlencode

from marvin_core import (
    Fetched,
    RateLimit,
    RequestFailed,
    ServiceHealth,
    ToolContext,
    ToolError,
    delete,
    fetch,
    in_thread,
    post,
)

from .. import __version__
from ..settings import WebSettings
from .cache import AnswerCache, answer_cache

if TYPE_CHECKING:
    from .catalog import Service

T = TypeVar("T")
Params: TypeAlias = Mapping[str, str | float | None]
"""Query parameters; those with the value None are left out."""

_LARGEST = 10_000_000
"""Bytes of an answer at most; the largest useful one, an area of Overpass, has some megabytes."""
_TELLING = (400, 404, 413, 414, 422)
"""Statuses that mean a wrong request rather than a failing service."""
_SHORTEST = 8
_BEGUN = 4
"""Characters at the start of a key that identify its kind; at the end of a truncated text they may be its rest."""
_SHARE = 0.5
"""The share of a call's remaining time that one request may take; the rest is for the next one."""
_OPEN = frozenset({"accept", "accept-language", "content-type", "user-agent"})
_SECRET = re.compile(r"key|token|secret|client_id|^code", re.IGNORECASE)
_QUERY = re.compile(r"(https?://[^\s?]{1,500})\?\S*")
"""Query strings are not shown: some services take their key there."""
_ACCEPT_JSON = {"accept": "application/json"}
_ACCEPT = {"accept-language": "en"}
_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)


class Asking(TypedDict, total=False):
    """Options of a request to a service, each optional.

    `params` are added to the query. `headers` are added to the default ones.
    `patience` is as of `RequestOptions`. `largest` is the most bytes of an answer.
    """

    params: Params
    headers: Mapping[str, str]
    patience: float
    largest: int


class ServiceClient:
    """A service during one call of a tool.

    Each method takes `read`, which converts the answer to what the caller wants. It runs in a thread, and raises a
    ValueError, LookupError, TypeError or the like if the answer does not have the documented form.

    A request waits for the rate limit and times out after `timeouts.http` seconds, or sooner if the call has little
    time left, so that another service can be tried. A GET is retried when the service asks to wait, and an answer
    that `read` accepted is cached for `Service.cached` seconds. A server of the user's own has neither a rate limit
    nor a cache, and a trial does not read the cache. The outcome of each request is recorded in the service's
    health.

    All methods raise `RequestFailed` for no answer, an error, or an invalid answer. The text begins with the name of
    the service.
    """

    def __init__(self, context: ToolContext, service: Service) -> None:
        self.service = service
        self._context = context
        settings = context.settings(WebSettings)
        own: str = getattr(settings.services, service.name)
        self.url = (own or service.url).rstrip("/")
        self.is_own = bool(own)
        self.is_kept = False
        self._contact = settings.contact
        self._private: set[str] = set()
        self._health = _health(context)

    async def get(self, path: str, read: Callable[[Fetched], T], **options: Unpack[Asking]) -> T:
        """GET a path below the service's URL; returns `read` of the answer."""
        url, sent = self._address(path), self._options(options)
        kept = await self._cache()
        # Other headers, such as another key, get another cache entry.
        known_as = f"{url}?{urlencode(sorted((name, str(value)) for name, value in sent['params'].items()))}"
        known_as += f" {sorted(sent['headers'].items())}"
        found = await kept.get(known_as) if kept is not None else None
        self.is_kept = found is not None
        if found is not None:
            return await self._understood(found, read)

        async def ask() -> Fetched:
            return await fetch(self._context.http, url, **sent)

        answer, value = await self._asked(ask, read)
        if kept is not None:
            await kept.put(known_as, answer, self.service.cached)
        return value

    async def get_json(self, path: str, read: Callable[[Any], T], **options: Unpack[Asking]) -> T:
        """GET; returns `read` of the JSON answer."""
        return await self.get(path, lambda answer: read(answer.json()), **_with(options, _ACCEPT_JSON))

    async def post_json(self, path: str, value: Any, read: Callable[[Any], T], **options: Unpack[Asking]) -> T:
        """POST JSON; returns `read` of the JSON answer."""
        url, sent = self._address(path), self._options(_with(options, _ACCEPT_JSON))

        async def ask() -> Fetched:
            return await post(self._context.http, url, json=value, **sent)

        return (await self._asked(ask, lambda answer: read(answer.json())))[1]

    async def delete_json(self, path: str, value: Any, read: Callable[[Fetched], T], **options: Unpack[Asking]) -> T:
        """DELETE, with an optional JSON body; returns `read` of the answer."""
        url, sent = self._address(path), self._options(_with(options, _ACCEPT_JSON))

        async def ask() -> Fetched:
            return await delete(self._context.http, url, json=value, **sent)

        return (await self._asked(ask, read))[1]

    async def post_form(
        self, path: str, form: Mapping[str, str], read: Callable[[Fetched], T], **options: Unpack[Asking]
    ) -> T:
        """POST form fields; returns `read` of the answer."""
        url, sent = self._address(path), self._options(options)
        self._private |= _private({"params": form})

        async def ask() -> Fetched:
            return await post(self._context.http, url, form=form, **sent)

        return (await self._asked(ask, read))[1]

    async def unusable(self, why: str) -> RequestFailed:
        """The error for an answer that proved unusable after it was read: what was wrong, and what to do."""
        return await self._noted(RequestFailed(why))

    def _address(self, path: str) -> str:
        if not self.url:
            raise RequestFailed(
                f"{self.service.title} has no address. The user can set it as packs.web.services.{self.service.name} "
                f"in config.yaml, or as {self.service.variable}."
            )
        return f"{self.url}/{path}" if path else self.url

    def _options(self, options: Asking) -> Any:
        self._private |= _private(options)
        timeouts = self._context.timeouts
        sent: dict[str, Any] = {"timeout": timeouts.http, "patience": timeouts.http_patience, "largest": _LARGEST}
        sent |= {"params": {}, **_with(options, {**_ACCEPT, "user-agent": self._user_agent()})}
        sent["params"] = {name: value for name, value in sent["params"].items() if value is not None}
        if self.service.interval and not self.is_own:
            sent["turns"] = RateLimit(self._context.folders.cache, self.service.interval, timeouts=timeouts)
        return sent

    def _user_agent(self) -> str:
        contact = f"; {self._contact}" if self._contact else ""
        if self.service.browser:
            return f"Mozilla/5.0 (compatible; Marvin/{__version__}{contact})"
        return f"Marvin/{__version__} (terminal assistant{contact})"

    async def _cache(self) -> AnswerCache | None:
        if not self.service.cached or self.is_own or self._context.origin == "trial":
            return None
        return await answer_cache(self._context)

    async def _asked(self, ask: Callable[[], Awaitable[Fetched]], read: Callable[[Fetched], T]) -> tuple[Fetched, T]:
        share = self._context.time_left * _SHARE
        try:
            async with asyncio.timeout(share):
                answer = await ask()
        except TimeoutError as error:
            why = f"it did not answer in time, which was {share:.0f} s. Try again later, or use another source."
            raise await self._noted(RequestFailed(why)) from error
        except ToolError as error:
            raise await self._noted(error) from error
        value = await self._understood(answer, read)
        if self._health is not None:
            await self._health.worked(self.service.name, self.service.title)
        return answer, value

    async def _understood(self, answer: Fetched, read: Callable[[Fetched], T]) -> T:
        try:
            return await in_thread(lambda: read(answer))
        except RequestFailed as error:
            raise await self._noted(error) from error
        except _UNREADABLE as error:
            why = "its answer has an unexpected form. Try another source."
            raise await self._noted(RequestFailed(why)) from error

    async def _noted(self, error: ToolError) -> RequestFailed:
        """The error after the service's name, recorded in its health if the service is at fault."""
        status = error.status if isinstance(error, RequestFailed) else None
        text = _without(self._private, _QUERY.sub(r"\1", str(error)))
        if status not in _TELLING and self._health is not None:
            await self._health.failed(self.service.name, self.service.title, text)
        wait = error.retry_after if isinstance(error, RequestFailed) else None
        return RequestFailed(f"{self.service.title}: {text}", status=status, retry_after=wait)


def _health(context: ToolContext) -> ServiceHealth | None:
    """Where the health of services is recorded; None if it cannot be: the answer matters more."""
    try:
        return ServiceHealth(context.folders.state, context.timeouts)
    except ToolError:
        return None


def _without(secrets: Iterable[str], text: str) -> str:
    """A text without keys, also where a key is truncated."""
    for secret in sorted(secrets, key=len, reverse=True):
        *before_cuts, last = text.replace(secret, "***").split("…")
        text = "…".join([*(_without_end(part, secret) for part in before_cuts), last])
    return text


def _without_end(text: str, secret: str) -> str:
    """A text that does not end with the start of a key."""
    lengths = range(min(len(secret), len(text)), _BEGUN - 1, -1)
    length = next((size for size in lengths if text.endswith(secret[:size])), 0)
    return f"{text[:-length]}***" if length else text


def _private(options: Asking) -> set[str]:
    """The values in a request that may be keys: some services repeat a wrong key in their error, and it must not be
    stored."""
    values = [value for name, value in options.get("headers", {}).items() if name.lower() not in _OPEN]
    values += [str(value) for name, value in options.get("params", {}).items() if _SECRET.search(name)]
    return {part for value in values for part in value.split() if len(part) >= _SHORTEST}


def _with(options: Asking, headers: Mapping[str, str]) -> Asking:
    """The options with additional headers; existing ones are kept."""
    return {**options, "headers": {**headers, **options.get("headers", {})}}
