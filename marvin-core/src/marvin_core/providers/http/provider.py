"""The common part of adapters for HTTP services: one request, its streamed answer, typed errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit, urlunsplit

from ...api.errors import BadRequest, ModelNotFound, ProviderError
from ...api.providers import ClientFactory, Delta, Endpoint, Request, ServedModel
from ...util.threads import in_thread
from ...util.untrusted_json import parse_json
from ..wrapper import EndpointProvider
from .images import without_images

if TYPE_CHECKING:
    import httpx

    from .answer_stream import AnswerStream

_NOT_ALLOWED = (401, 403)
_REFUSALS = (400, 422)
"""The statuses with which services refuse a field of a request."""
_ERROR_BODY = 64 * 1024
_MODEL_LIST = 4 * 1024 * 1024
_ADAPTATIONS = 8
"""The maximum number of immediate retries of a request, each without a feature that the service refused."""


class HttpProvider(EndpointProvider, ABC):
    """A model behind `POST {base_url}{path}`. The base URL may already contain that path."""

    path: str

    def __init__(self, endpoint: Endpoint, client: ClientFactory) -> None:
        super().__init__(endpoint)
        self._make_client = client
        self._timeouts = endpoint.timeouts
        self._client: httpx.AsyncClient | None = None
        self._built: tuple[dict[str, str], httpx.URL, httpx.Headers] | None = None
        """The headers of an earlier request, and the client's form of them and of the address."""
        self._models_url, self._url = _urls(endpoint.base_url, self.path)
        self._sees = True
        self._window = endpoint.context_window

    @property
    def context_window(self) -> int | None:
        return self._window

    async def find_window(self) -> int | None:
        """The context window in tokens. Adapters whose service reports it query it. Raises no error of the service."""
        if self._window is None and self._endpoint.look_up_window is not None:
            self._window = await in_thread(self._endpoint.look_up_window)
        return self._window

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    @abstractmethod
    def _body(self, request: Request) -> bytes:
        """The JSON of a request."""

    @abstractmethod
    def _answer(self, request: Request) -> AnswerStream:
        """The reader of the response to a request."""

    async def _adapted(self, request: Request, status: int, said: bytes) -> bool:
        """Whether the service refused a feature that is now left out, so that a retry makes sense."""
        return False

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """The answer, piece by piece; see `Provider.stream`."""
        begin = _now()
        response = await self._open(request)
        try:
            answer = self._answer(request)
            async with aclosing(self._read(response, answer, begin + self._timeouts.answer)) as pieces:
                async for data in pieces:
                    for delta in answer.feed(data):
                        yield delta
                    if answer.failure is not None:
                        raise answer.failure
            for delta in answer.finish():
                yield delta
            if answer.failure is not None:
                raise answer.failure
        finally:
            await response.aclose()

    async def _read(self, response: httpx.Response, answer: AnswerStream, end: float) -> AsyncGenerator[bytes, None]:
        """The body up to its end, or until the answer is complete."""
        import asyncio

        import httpx

        # Not `aiter_raw`, which is one more generator between each piece and its reader.
        body = cast("AsyncGenerator[bytes, None]", aiter(cast("httpx.AsyncByteStream", response.stream)))
        silence = self._connected().timeout.read or self._timeouts.answer
        # Silence is counted here, by what comes of the answer, and no more by the bytes.
        response.request.extensions["timeout"]["read"] = None
        begun, seen, last = False, 0, _now()
        try:
            async with aclosing(body):
                while not answer.done:
                    async with asyncio.timeout_at(min(last + silence, end)):
                        data = await anext(body, None)
                    if data is None:
                        return
                    begun = True
                    yield data
                    if answer.progress != seen:
                        seen, last = answer.progress, _now()
                    elif _now() > last + silence:
                        raise TimeoutError
                    if last > end:
                        raise TimeoutError
                # Read to its end, a response leaves its connection free for the next request.
                async with asyncio.timeout(self._timeouts.stream_end):
                    async for _ in body:
                        pass
        except TimeoutError:
            if not answer.is_complete:
                raise self._late(end, silence, begun=begun) from None
        except httpx.HTTPError as error:
            if not answer.is_complete:
                raise self._failed(error, begun=begun) from None

    def _late(self, end: float, silence: float, *, begun: bool) -> ProviderError:
        import httpx

        from .past_limits import lifeless, too_long

        if _now() >= end:
            return too_long(self._endpoint, self._url, self._timeouts.answer)
        if begun:
            return lifeless(self._endpoint, self._url, silence)
        return self._failed(httpx.ReadTimeout(""), begun=False)

    async def _open(self, request: Request) -> httpx.Response:
        """Send the request; return the response when it has begun, if it is successful."""
        client = self._connected()
        import httpx  # only now: who makes the client imports it without its command line, which takes longer

        from ...http.transport import SENT

        for left in reversed(range(_ADAPTATIONS + 1)):
            headers, body = await self._sendable_headers(), self._body(self._seen(request))
            try:
                # What reads the answer is imported while the service works on it.
                sent = self._request(client, headers, body)
                sent.extensions[SENT] = partial(self._answer, request)
                response = await client.send(sent, stream=True)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise self._failed(error, begun=False) from None
            if response.is_success:
                return response
            said = await self._error_body(response)
            adapted = left and (
                await self._adapted(request, response.status_code, said)
                or self._looks_away(request, response, said)
                or self._defers_no_more(request, response.status_code, said)
            )
            if not adapted:
                raise await self._refusal(response, said)
        raise AssertionError("the last refusal is raised")

    def _request(self, client: httpx.AsyncClient, headers: dict[str, str], body: bytes) -> httpx.Request:
        """A request in the client's form; if it resembles an earlier one, only its length is new."""
        import httpx

        if self._built is None or self._built[0] != headers or client.cookies:
            built = client.build_request("POST", self._url, content=body, headers=headers)
            self._built = None if client.cookies else (headers, built.url, built.headers)
            return built
        _, url, same = self._built
        known = httpx.Headers(same)
        known["Content-Length"] = str(len(body))
        limits = {"timeout": client.timeout.as_dict()}
        return httpx.Request("POST", url, headers=known, stream=httpx.ByteStream(body), extensions=limits)

    def _seen(self, request: Request) -> Request:
        return request if self._sees else without_images(request)

    def _looks_away(self, request: Request, response: httpx.Response, said: bytes) -> bool:
        """Whether the model turned out to accept no images, and receives none from now on."""
        from .error_mapping import refuses_images

        if not (self._sees and refuses_images(self._endpoint, response.status_code, response.headers, said)):
            return False
        self._sees = without_images(request) is request
        return not self._sees

    def _defers_no_more(self, request: Request, status: int, said: bytes) -> bool:
        """Whether the service may have refused deferred tools, and receives none from now on."""
        if not request.waiting or status not in _REFUSALS:
            return False
        from .tool_forms import may_refuse_waiting

        return may_refuse_waiting(said) and self._stop_deferring()

    def _stop_deferring(self) -> bool:
        """Define no deferred tools from now on; false if none were defined anyway."""
        return False

    def _connected(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = self._make_client()
        return self._client

    async def _headers(self) -> dict[str, str]:
        """The headers of a request."""
        headers = {"content-type": "application/json", "accept": "text/event-stream"}
        headers.update(self._endpoint.headers or {})
        if self._endpoint.key:
            headers["authorization"] = f"Bearer {self._endpoint.key.reveal().strip()}"
        return headers

    async def _sendable_headers(self) -> dict[str, str]:
        headers = await self._headers()
        for name, value in headers.items():
            # Checked here, as the errors of the libraries below would show the value.
            if not (value.isascii() and value.isprintable()):
                from .error_mapping import unsendable

                raise unsendable(self._endpoint, name)
        return headers

    async def _error_body(self, response: httpx.Response) -> bytes:
        """The body of an error, up to limits of size and time."""
        import asyncio

        import httpx

        said = bytearray()
        try:
            async with asyncio.timeout(self._timeouts.http):
                await gather(response, said, _ERROR_BODY)
        except (TimeoutError, httpx.HTTPError):
            pass  # what has come explains more than the failure to read on
        finally:
            await response.aclose()
        return bytes(said)

    async def _refusal(self, response: httpx.Response, said: bytes) -> ProviderError:
        from . import error_mapping

        status = response.status_code
        error = error_mapping.from_status(self._endpoint, self._url, status, response.headers, said)
        if isinstance(error, ModelNotFound):
            return error_mapping.not_served(self._endpoint, error, await self._served())
        if isinstance(error, BadRequest) and status == 404:
            # Either the path or the model: the list of models tells, where there is one.
            served = await self._served()
            if served and self.model not in served:
                return error_mapping.not_served(self._endpoint, error, served)
        return error

    async def served(self) -> list[ServedModel]:
        """The models that the service lists; see `Lists`."""
        import asyncio

        import httpx

        from .error_mapping import from_status, from_transport

        headers, timeouts, url = await self._sendable_headers(), self._timeouts, self._models_url
        said = bytearray()
        try:
            async with asyncio.timeout(timeouts.model_list):
                async with self._connected().stream("GET", url, headers=headers) as response:
                    await gather(response, said, _MODEL_LIST)
        except TimeoutError:
            late = httpx.ReadTimeout("")
            raise from_transport(self._endpoint, url, late, begun=False, silence=timeouts.model_list) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._failed(error, begun=False) from None
        if response.status_code in _NOT_ALLOWED or response.is_server_error:
            raise from_status(self._endpoint, url, response.status_code, response.headers, bytes(said))
        try:
            return _models_in(parse_json(said))
        except ValueError:
            return []

    async def _served(self) -> list[str]:
        """Like `served`; empty if that fails."""
        return [model.name for model in _models_in(await self._fetched("GET", self._models_url))]

    async def _fetched(self, method: str, url: str, content: bytes | None = None) -> Any:
        """The JSON response to a small request; None if there is none."""
        import asyncio

        import httpx

        answer = bytearray()
        headers = await self._sendable_headers()
        try:
            async with asyncio.timeout(self._timeouts.model_list):
                async with self._connected().stream(method, url, headers=headers, content=content) as response:
                    await gather(response, answer, _MODEL_LIST)
            return parse_json(answer)
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, ValueError):
            return None

    def _failed(self, error: Exception, *, begun: bool) -> ProviderError:
        from .error_mapping import from_transport

        silence = self._connected().timeout.read
        return from_transport(self._endpoint, self._url, error, begun=begun, silence=silence)


def _models_in(document: Any) -> list[ServedModel]:
    from .model_lists import models_in

    return models_in(document)


def _now() -> float:
    import asyncio

    return asyncio.get_running_loop().time()


def call_ids(request: Request) -> set[str]:
    """The ids used by the calls of a conversation."""
    return {call.id for message in request.messages for call in message.calls}


async def gather(response: httpx.Response, into: bytearray, limit: int) -> None:
    """Read a response, up to `limit` bytes."""
    async with aclosing(cast("AsyncGenerator[bytes, None]", response.aiter_bytes())) as body:
        async for data in body:
            into += data[: limit - len(into)]
            if len(into) >= limit:
                return


def _urls(base_url: str, path: str) -> tuple[str, str]:
    """The URLs of the list of models and of requests; both keep the query of the base URL."""
    try:
        parts = urlsplit(base_url.strip())
    except ValueError:
        return base_url, base_url  # no URL: the first request says so
    root = parts.path.rstrip("/").removesuffix(path)
    models, requests = (parts._replace(path=root + end) for end in ("/models", path))
    return urlunsplit(models), urlunsplit(requests)
