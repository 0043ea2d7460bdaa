"""The adapter for Codex with a ChatGPT account: the Responses API with a login instead of a key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...api.errors import AuthFailed, ProviderError
from ...api.providers import ClientFactory, Endpoint, Provider, Request
from ..responses.provider import Responses
from .tokens import Login, Tokens, log_in

if TYPE_CHECKING:
    import httpx


def create(endpoint: Endpoint, client: ClientFactory) -> Provider:
    """The provider for an endpoint; its `profile_folder` holds the login."""
    return Codex(endpoint, client)


class Codex(Responses):
    """A model of ChatGPT's service. An expired login is renewed once; after that the user is asked to log in again."""

    without = ("max_output_tokens", "breakpoint", "retention")
    unlimited = True

    def __init__(self, endpoint: Endpoint, client: ClientFactory) -> None:
        super().__init__(endpoint, client)
        self._login = Login(endpoint, self._connected)
        self._used: Tokens | None = None
        self._renewed_for: Request | None = None

    async def aclose(self) -> None:
        """Close the connections."""
        await self._login.aclose()
        await super().aclose()

    async def _headers(self) -> dict[str, str]:
        tokens = self._used = await self._login.tokens()
        if self._endpoint.learn is not None:
            self._endpoint.learn(tokens.access)
            self._endpoint.learn(tokens.refresh)
        # The key of the endpoint is what no error may show.
        self._endpoint = self._endpoint.replace(key=tokens.access)
        own = {"originator": "marvin", "openai-beta": "responses=experimental"}
        if tokens.account:
            own["chatgpt-account-id"] = tokens.account
        return {**own, **await super()._headers()}

    async def _adapted(self, request: Request, status: int, said: bytes) -> bool:
        if status == 401 and self._used is not None and request is not self._renewed_for:
            self._renewed_for = request
            await self._login.renewed(self._used)
            return True
        return await super()._adapted(request, status, said)

    async def _refusal(self, response: httpx.Response, said: bytes) -> ProviderError:
        error = await super()._refusal(response, said)
        if not isinstance(error, AuthFailed):
            return error
        from ..http.error_reports import report_of

        status = response.status_code
        message = report_of(self._endpoint, status, response.headers, said).message
        text = f"{self.name} did not accept the login ({status}): {message} {log_in()}"
        return AuthFailed(text, provider=self.name, status=status)
