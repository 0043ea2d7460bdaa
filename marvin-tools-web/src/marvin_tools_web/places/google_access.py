"""Access to Google Places: with a key, with a login of the user, or with gcloud's.

Source: developers.google.com/maps/documentation/places/web-service/oauth-token
"""

from __future__ import annotations

import os
import stat
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from marvin_core import RequestFailed, ToolContext, ToolError, in_thread

from ..services import values
from ..services.catalog import GOOGLE_ACCOUNTS, GOOGLE_TOKENS
from ..services.client import ServiceClient
from ..services.oauth import Login, LoginService, TokenFile, given_tokens, holds, token_in

T = TypeVar("T")

KEY = "GOOGLE_PLACES_API_KEY"
CLIENT_ID = "GOOGLE_CLIENT_ID"
LOGIN = LoginService(
    key="google",
    title="Google",
    tool="setup_google_auth",
    client_id=CLIENT_ID,
    client_secret="GOOGLE_CLIENT_SECRET",  # noqa: S106 - the name of a variable
    how="Ask the user to create a desktop application at console.cloud.google.com/auth/clients",
    scopes="https://www.googleapis.com/auth/cloud-platform",
    authorize=(GOOGLE_ACCOUNTS, "o/oauth2/v2/auth"),
    tokens=(GOOGLE_TOKENS, "token"),
    # Google gives a refresh token only with these; else access would end after an hour.
    extra={"access_type": "offline", "prompt": "consent"},
)
GCLOUD = "google_gcloud"
"""The entry in tokens.json about gcloud's login."""
CREDENTIALS = "application_default_credentials.json"
_LARGEST = 100_000
_LOG_IN = "Ask the user to run `gcloud auth application-default login`, then call setup_google_auth."
_UNAUTHORIZED = 401


class Access(Protocol):
    """A way to authorize requests to Google Places. `ask` is called with the headers for that."""

    async def use(self, ask: Callable[[Mapping[str, str]], Awaitable[T]]) -> T:
        """Return the result of `ask`, which is called again if a token had expired."""
        ...


class KeyAccess:
    """Access with an API key."""

    def __init__(self, key: str) -> None:
        self._key = key

    async def use(self, ask: Callable[[Mapping[str, str]], Awaitable[T]]) -> T:
        """Return the result of `ask`."""
        return await ask({"x-goog-api-key": self._key})


class TokenAccess:
    """Access with a login. `token` gives a valid token, `renewed` one in place of an expired one."""

    def __init__(
        self,
        token: Callable[[], Awaitable[str]],
        renewed: Callable[[str], Awaitable[str]],
        project: str = "",
    ) -> None:
        self._token = token
        self._renewed = renewed
        self._project = {"x-goog-user-project": project} if project else {}

    async def use(self, ask: Callable[[Mapping[str, str]], Awaitable[T]]) -> T:
        """Return the result of `ask`, which is called again with a new token if the first one is refused."""
        token = await self._token()
        try:
            return await ask({"authorization": f"Bearer {token}", **self._project})
        except RequestFailed as error:
            if error.status != _UNAUTHORIZED:
                raise
        return await ask({"authorization": f"Bearer {await self._renewed(token)}", **self._project})


async def access(context: ToolContext) -> Access | None:
    """The way to access Google Places; None without a key and without a login."""
    key = context.secret(KEY, None)
    if key:
        return KeyAccess(key)
    login = Login(context, LOGIN)
    if context.setting(CLIENT_ID) and await login.is_known():
        return TokenAccess(login.access_token, login.renewed)
    gcloud = GcloudLogin(context)
    project = await gcloud.project()
    return TokenAccess(gcloud.access_token, gcloud.renewed, project) if project else None


class GcloudLogin:
    """gcloud's application default login, which setup_google_auth allows to be used."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._file = TokenFile(context)

    async def project(self) -> str:
        """The project that is billed; empty if the login must not be used."""
        return values.text(await self._file.read(GCLOUD), "project", limit=60)

    async def use(self, folder: Path, project: str) -> None:
        """Use the login whose file is in a folder.

        Raises:
            ToolError: there is none, or it is of another kind.
        """
        await in_thread(lambda: _credentials(folder))
        kept = {"folder": str(folder), "project": project}
        await self._file.change(lambda tokens: tokens.update({GCLOUD: kept}))

    async def forget(self) -> None:
        """Stop using it."""
        await self._file.change(lambda tokens: tokens.pop(GCLOUD, None))

    async def access_token(self) -> str:
        """A valid token. Raises as `renewed`."""
        kept = await self._file.read(GCLOUD)
        return token_in(kept) if holds(kept, self._context.clock.now()) else await self.renewed(token_in(kept))

    async def renewed(self, old: str) -> str:
        """A token in place of an expired one.

        Raises:
            ToolError: gcloud has no login any more, or an expired one.
            RequestFailed: Google gives no token.
        """
        kept = await self._file.read(GCLOUD)
        if token_in(kept) != old and holds(kept, self._context.clock.now()):
            return token_in(kept)
        folder = Path(values.text(kept, "folder", limit=4_000))
        form = {"grant_type": "refresh_token", **await in_thread(lambda: _credentials(folder))}
        try:
            found = await ServiceClient(self._context, GOOGLE_TOKENS).post_form("token", form, given_tokens)
        except RequestFailed as error:
            if error.status in (400, 401):
                raise ToolError(f"The login of gcloud has expired. {_LOG_IN}") from error
            raise
        until = self._context.clock.now() + float(found["expires_in"])
        fresh = {"access_token": found["access_token"], "expires_at": until}

        def keep(tokens: dict[str, Any]) -> None:
            if isinstance(tokens.get(GCLOUD), dict):
                tokens[GCLOUD] |= fresh

        await self._file.change(keep)
        return str(found["access_token"])


def _credentials(folder: Path) -> dict[str, str]:
    """The fields of gcloud's credentials file that a token request needs. Blocks.

    Source: cloud.google.com/docs/authentication/application-default-credentials
    """
    import json

    path = folder / CREDENTIALS
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
            found = json.loads(stream.read(_LARGEST)) if is_file else None
    except (OSError, ValueError, RecursionError) as error:
        raise ToolError(f"gcloud has no application default credentials at {path}. {_LOG_IN}") from error
    names = ("client_id", "client_secret", "refresh_token")
    texts = {name: token_in(found, name) for name in names} if isinstance(found, dict) else {}
    if not texts or not all(texts.values()):
        raise ToolError(f"{path} contains no login of a person. {_LOG_IN}")
    return texts
