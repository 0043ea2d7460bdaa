"""OAuth 2.1 login of a server: the provider of the official SDK with stored logins."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, ValidationError

from ...api.config import McpServer
from ...util.threads import in_thread
from .browser import Browser
from .kept import Logins

_EARLY = 60
"""A token is renewed this many seconds before it expires, so that none expires in transit."""
_FROM_CONFIG = "client_secret_post"


class Kept:
    """The `TokenStorage` of the SDK's provider.

    It stores more than the provider requires. Without the expiry time the provider would use a token for ever, and
    without the address of the login service it would look for one at the server.
    """

    def __init__(self, server: McpServer, logins: Logins) -> None:
        self._server = server
        self._logins = logins
        self.provider: OAuthClientProvider | None = None

    @property
    def access_token(self) -> str:
        """The stored token; empty without one."""
        tokens = self._logins.of(self._server).get("tokens")
        return str(tokens.get("access_token", "")) if isinstance(tokens, dict) else ""

    async def get_tokens(self) -> OAuthToken | None:
        """Return the stored tokens, and set the provider's data about them."""
        entry = self._logins.of(self._server)
        try:
            found = OAuthToken.model_validate(entry["tokens"])
            context = self._context
            context.token_expiry_time = float(entry["expires"]) - _EARLY if entry.get("expires") else None
            if entry.get("service"):
                context.oauth_metadata = OAuthMetadata.model_validate(entry["service"])
            if entry.get("resource"):
                context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(entry["resource"])
                context.auth_server_url = str(context.protected_resource_metadata.authorization_servers[0])
        except (KeyError, IndexError, TypeError, ValueError):
            return None
        return found

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store tokens."""
        context = self._context
        expires = time.time() + tokens.expires_in if tokens.expires_in else 0
        if expires:
            context.token_expiry_time = expires - _EARLY
        service, resource = context.oauth_metadata, context.protected_resource_metadata
        await self._keep(
            tokens=tokens.model_dump(mode="json", exclude_none=True),
            expires=expires,
            service=None if service is None else service.model_dump(mode="json", exclude_none=True),
            resource=None if resource is None else resource.model_dump(mode="json", exclude_none=True),
        )

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """The registered client: the configured one, else that of an earlier login."""
        server = self._server
        if server.client_id:
            return OAuthClientInformationFull(
                client_id=server.client_id,
                client_secret=server.client_secret or None,
                redirect_uris=self._context.client_metadata.redirect_uris,
                token_endpoint_auth_method=self._method() if server.client_secret else "none",
            )
        try:
            return OAuthClientInformationFull.model_validate(self._logins.of(server)["client"])
        except (KeyError, ValidationError):
            return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Store the registered client."""
        await self._keep(client=client_info.model_dump(mode="json", exclude_none=True))

    def settle_method(self) -> None:
        """Set how the configured client sends its secret, now that the login service is known."""
        if self._server.client_secret:
            self._context.client_info.token_endpoint_auth_method = self._method()

    def _method(self) -> str:
        """How the configured client sends its secret: as the login service requires, else in the form."""
        service = self._context.oauth_metadata
        known = (service.token_endpoint_auth_methods_supported if service is not None else None) or [_FROM_CONFIG]
        return _FROM_CONFIG if _FROM_CONFIG in known else known[0]

    @property
    def _context(self) -> Any:
        assert self.provider is not None
        return self.provider.context

    async def _keep(self, **values: Any) -> None:
        await in_thread(partial(self._logins.keep, self._server, values))


class Login(OAuthClientProvider):
    """The provider, which renews a login in one process at a time: a refresh token may be valid only once.

    Args:
        browser: asks the user to log in, if possible.
    """

    def __init__(self, server: McpServer, logins: Logins, browser: Browser) -> None:
        self._kept = Kept(server, logins)
        self._logins = logins
        self._browser = browser
        metadata = OAuthClientMetadata(client_name="Marvin", redirect_uris=[AnyUrl(browser.address)])
        super().__init__(server.url, metadata, self._kept, browser.open, self._came_back)
        self._kept.provider = self

    async def _came_back(self) -> AuthorizationCodeResult:
        given = await self._browser.came_back()
        self._kept.settle_method()
        return AuthorizationCodeResult(code=given["code"], state=given.get("state"), iss=given.get("iss"))

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Uses the SDK's own flow, which serializes requests, only if a token is needed."""
        renewed = False
        while True:
            if not self._initialized:
                await self._initialize()
            if not self.context.is_token_valid() and self.context.can_refresh_token():
                renewed = True
                flow = super()._auth_flow(request)
                try:
                    sent = await anext(flow)
                    if sent is not request:
                        async with self._logins.renewing():
                            if self._is_newer():
                                self._initialized = False
                            else:
                                await flow.asend((yield sent))
                finally:
                    await flow.aclose()
                continue
            self._add_auth_header(request)
            used = self.context.current_tokens
            answer = yield request
            if answer.status_code == 401 and self._may_renew(renewed):
                continue
            if not _wants_login(answer):
                return
            break
        self._browser.check()  # before anything is registered
        flow = super()._auth_flow(request)
        try:
            sent = await anext(flow)
            if self.context.current_tokens is used:
                sent = await flow.asend(answer)
            while True:
                sent = await flow.asend((yield sent))
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()

    def _is_newer(self) -> bool:
        """Whether another process has renewed the login meanwhile."""
        spent = self.context.current_tokens
        return spent is not None and self._kept.access_token not in ("", spent.access_token)

    def _may_renew(self, renewed: bool) -> bool:
        """Whether a rejected token may have been revoked; it then counts as expired."""
        if renewed or not self.context.can_refresh_token():
            return False
        self.context.token_expiry_time = 1.0
        return True


def _wants_login(answer: httpx2.Response) -> bool:
    said = answer.headers.get("www-authenticate", "")
    return answer.status_code == 401 or (answer.status_code == 403 and "insufficient_scope" in said)
