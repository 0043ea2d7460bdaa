"""The adapter for services that speak OpenAI's chat completions format, as most home-run servers do."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit, urlunsplit

from ..errors import BadRequest, ModelNotFound, ProviderError
from .base import ClientFactory, Delta, Endpoint, Provider, Request
from .chat_stream import ChatStream
from .chat_wire import ChatWire

if TYPE_CHECKING:
    import httpx

_PATH = "/chat/completions"
_ERROR_BODY = 64 * 1024
_MODEL_LIST = 4 * 1024 * 1024


def create(endpoint: Endpoint, client: ClientFactory) -> Provider:
    """The provider for an endpoint; `client` is called when the first request is made."""
    return ChatCompletions(endpoint, client)


class ChatCompletions:
    """A model behind `POST {base_url}/chat/completions`. The base URL may name that path already."""

    def __init__(self, endpoint: Endpoint, client: ClientFactory) -> None:
        self._endpoint = endpoint
        self._make_client = client
        self._waits = endpoint.waits
        self._client: httpx.AsyncClient | None = None
        self._models_url, self._url = _urls(endpoint.base_url)
        self._wire = ChatWire(endpoint.provider, endpoint.model, endpoint.max_tools)
        self._ask_usage = True

    @property
    def name(self) -> str:
        return self._endpoint.provider

    @property
    def model(self) -> str:
        return self._endpoint.model

    @property
    def context_window(self) -> int | None:
        return self._endpoint.context_window

    @property
    def max_tools(self) -> int | None:
        return self._endpoint.max_tools

    async def aclose(self) -> None:
        """Close its connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """The answer, piece by piece; see `Provider.stream`."""
        response = await self._open(request)
        try:
            answer = ChatStream(self._endpoint, self._url, lambda: _call_ids(request))
            async with aclosing(self._read(response, answer)) as pieces:
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

    async def _read(self, response: httpx.Response, answer: ChatStream) -> AsyncGenerator[bytes, None]:
        """The body up to its end, or up to where the answer is complete anyway."""
        import asyncio

        import httpx

        body = cast("AsyncGenerator[bytes, None]", response.aiter_bytes())
        begun = False
        try:
            async with aclosing(body):
                async for data in body:
                    begun = True
                    yield data
                    if answer.done:
                        break
                # Read to its end, a response leaves its connection free for the next request.
                async with asyncio.timeout(self._waits.stream_end):
                    async for _ in body:
                        pass
        except TimeoutError:
            return
        except httpx.HTTPError as error:
            if not answer.is_complete:
                raise self._failed(error, begun=begun) from None

    async def _open(self, request: Request) -> httpx.Response:
        """Send the request and return the response as soon as it has begun, if it is a good one."""
        client, headers = self._connected(), self._headers()
        import httpx  # only now: who makes the client imports it without its command line, which takes longer

        while True:
            body = self._wire.body(request, ask_usage=self._ask_usage)
            try:
                sent = client.build_request("POST", self._url, content=body, headers=headers)
                response = await client.send(sent, stream=True)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise self._failed(error, begun=False) from None
            if response.is_success:
                return response
            said = await self._error_body(response)
            if not (self._ask_usage and response.status_code == 400 and b"stream_options" in said):
                raise await self._refusal(response, said)
            self._ask_usage = False  # a server that does not know the field: never sent to it again

    def _connected(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = self._make_client()
        return self._client

    def _headers(self) -> dict[str, str]:
        headers = {"content-type": "application/json", "accept": "text/event-stream"}
        headers.update(self._endpoint.headers or {})
        if self._endpoint.key:
            headers["authorization"] = f"Bearer {self._endpoint.key.reveal().strip()}"
        for name, value in headers.items():
            # Checked here, as the errors of the libraries below would show the value.
            if not (value.isascii() and value.isprintable()):
                from .failures import unsendable

                raise unsendable(self._endpoint, name)
        return headers

    async def _error_body(self, response: httpx.Response) -> bytes:
        """The body of an error, or as much of it as comes within bounds."""
        import asyncio

        import httpx

        said = bytearray()
        try:
            async with asyncio.timeout(self._waits.http):
                await _gather(response, said, _ERROR_BODY)
        except (TimeoutError, httpx.HTTPError):
            pass  # what has come explains more than the failure to read on
        finally:
            await response.aclose()
        return bytes(said)

    async def _refusal(self, response: httpx.Response, said: bytes) -> ProviderError:
        from . import failures

        status = response.status_code
        error = failures.from_status(self._endpoint, self._url, status, response.headers, said)
        if isinstance(error, ModelNotFound):
            return failures.not_served(self._endpoint, error, await self._served())
        if isinstance(error, BadRequest) and status == 404:
            # Either the path or the model: the list of models tells, where there is one.
            served = await self._served()
            if served and self.model not in served:
                return failures.not_served(self._endpoint, error, served)
        return error

    async def _served(self) -> list[str]:
        """The models that the service lists; empty where it does not say."""
        import asyncio
        import json

        import httpx

        listed = bytearray()
        ask = self._connected().stream("GET", self._models_url, headers=self._headers())
        try:
            async with asyncio.timeout(self._waits.model_list):
                async with ask as response:
                    await _gather(response, listed, _MODEL_LIST)
            entries = json.loads(listed)["data"]
            return [entry["id"] for entry in entries if isinstance(entry["id"], str)]
        except (TimeoutError, httpx.HTTPError, ValueError, KeyError, TypeError):
            return []

    def _failed(self, error: Exception, *, begun: bool) -> ProviderError:
        from .failures import from_transport

        silence = self._connected().timeout.read
        return from_transport(self._endpoint, self._url, error, begun=begun, silence=silence)


async def _gather(response: httpx.Response, into: bytearray, limit: int) -> None:
    async with aclosing(cast("AsyncGenerator[bytes, None]", response.aiter_bytes())) as body:
        async for data in body:
            into += data[: limit - len(into)]
            if len(into) >= limit:
                return


def _urls(base_url: str) -> tuple[str, str]:
    """The URLs of the list of models and of the completions; a query of the base URL is kept in both."""
    try:
        parts = urlsplit(base_url.strip())
    except ValueError:
        return base_url, base_url  # no URL: the first request says so
    path = parts.path.rstrip("/").removesuffix(_PATH)
    models, completions = (parts._replace(path=path + end) for end in ("/models", _PATH))
    return urlunsplit(models), urlunsplit(completions)


def _call_ids(request: Request) -> set[str]:
    return {call.id for message in request.messages for call in message.calls}
