"""The login to Spotify.

Source: developer.spotify.com/documentation/web-api/tutorials/code-pkce-flow, .../concepts/redirect_uri
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marvin_core import RequestFailed, ToolContext

from ..services.catalog import SPOTIFY, SPOTIFY_ACCOUNTS
from ..services.client import Params, ServiceClient
from ..services.loopback import HOST, PATH
from ..services.oauth import Login, LoginService

CLIENT_ID = "SPOTIFY_CLIENT_ID"
LOGIN = LoginService(
    key="spotify",
    title="Spotify",
    tool="spotify_auth",
    client_id=CLIENT_ID,
    # For a loopback address that is registered without a port, any port is allowed.
    how=(
        "Spotify requires the user's own application. Ask the user to create one at developer.spotify.com/dashboard "
        f"with the redirect URI http://{HOST}{PATH}"
    ),
    scopes="playlist-modify-private playlist-modify-public playlist-read-private user-library-modify",
    authorize=(SPOTIFY_ACCOUNTS, "authorize"),
    tokens=(SPOTIFY_ACCOUNTS, "api/token"),
)
_UNAUTHORIZED = 401


class Spotify:
    """Requests on behalf of the user; an expired token is renewed once."""

    def __init__(self, context: ToolContext) -> None:
        self._login = Login(context, LOGIN)
        self._client = ServiceClient(context, SPOTIFY)

    async def get(self, path: str, read: Any, params: Mapping[str, str | float | None]) -> Any:
        """GET; returns `read` of the answer."""
        return await self._asked(lambda headers: self._client.get_json(path, read, params=params, headers=headers))

    async def post(self, path: str, body: Mapping[str, Any], read: Any) -> Any:
        """POST; returns `read` of the answer. Repeated once after an expired token."""
        return await self._asked(lambda headers: self._client.post_json(path, body, read, headers=headers))

    async def delete(self, path: str, body: Mapping[str, Any] | None, params: Params) -> None:
        """DELETE. Repeated once after an expired token."""
        await self._asked(
            lambda headers: self._client.delete_json(path, body, lambda answer: None, params=params, headers=headers)
        )

    async def _asked(self, ask: Any) -> Any:
        token = await self._login.access_token()
        try:
            return await ask({"authorization": f"Bearer {token}"})
        except RequestFailed as error:
            if error.status != _UNAUTHORIZED:
                raise
        return await ask({"authorization": f"Bearer {await self._login.renewed(token)}"})
