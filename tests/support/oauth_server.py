"""A server with tools behind a login, and the login service that belongs to it, by the server side of the official SDK.

    python oauth_server.py PORT [LIFETIME [NOTES]]

Whoever opens the page of the login is logged in at once. Tokens last LIFETIME seconds, and a token for renewing one
counts once. What the service is asked is written to NOTES, a word a line.
"""

from __future__ import annotations

import secrets
import sys
import time
from typing import Any

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl

PORT = int(sys.argv[1])
LIFETIME = int(sys.argv[2]) if len(sys.argv) > 2 else 3_600
NOTES = sys.argv[3] if len(sys.argv) > 3 else ""


def note(word: str) -> None:
    """Write down what was asked."""
    if NOTES:
        with open(NOTES, "a", encoding="ascii") as notes:
            notes.write(f"{word}\n")


class Provider:
    """The login service: everybody may register, and everybody is let in."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        """A client that registered."""
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Register one."""
        note("register")
        self.clients[str(client_info.client_id)] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        """Let the person in, and send the browser back."""
        note("authorize")
        code = secrets.token_urlsafe(20)
        self.codes[code] = AuthorizationCode(
            code=code,
            client_id=str(client.client_id),
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            expires_at=time.time() + 60,
            scopes=params.scopes or [],
            code_challenge=params.code_challenge,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client: Any, authorization_code: str) -> AuthorizationCode | None:
        """A code that was given out."""
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client: Any, authorization_code: AuthorizationCode) -> OAuthToken:
        """Tokens for a code, once."""
        note("exchange")
        del self.codes[authorization_code.code]
        return self._tokens(str(client.client_id), authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: Any, refresh_token: str) -> RefreshToken | None:
        """A token for renewing, unless it was used."""
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client: Any, refresh_token: RefreshToken, scopes: list[str]) -> OAuthToken:
        """New tokens."""
        note("refresh")
        if self.refresh.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant")
        return self._tokens(str(client.client_id), scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        """A token that lets in."""
        found = self.access.get(token)
        return found if found is not None and (found.expires_at or 0) > time.time() else None

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        """Take a token back."""
        self.access.pop(token.token, None)

    async def exchange_identity_assertion(self, client: Any, params: Any) -> OAuthToken:
        """No other service vouches for anybody here."""
        raise TokenError("unsupported_grant_type")

    def _tokens(self, client: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = f"access-{secrets.token_urlsafe(20)}", f"refresh-{secrets.token_urlsafe(20)}"
        ends = int(time.time()) + LIFETIME
        self.access[access] = AccessToken(
            token=access, client_id=client, scopes=scopes, expires_at=ends, resource=resource
        )
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client, scopes=scopes, resource=resource)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=LIFETIME, scope=" ".join(scopes))


PROVIDER = Provider()
server = MCPServer(
    "behind-a-login",
    auth_server_provider=PROVIDER,
    auth=AuthSettings(
        issuer_url=AnyHttpUrl(f"http://127.0.0.1:{PORT}"),
        resource_server_url=AnyHttpUrl(f"http://127.0.0.1:{PORT}/mcp"),
        client_registration_options=ClientRegistrationOptions(
            enabled=True, valid_scopes=["use"], default_scopes=["use"]
        ),
        required_scopes=["use"],
        validate_token_resource=False,
    ),
)


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def revoke() -> str:
    """Take all tokens back that let in."""
    PROVIDER.access.clear()
    return "revoked"


if __name__ == "__main__":
    uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=PORT, log_level="error")
