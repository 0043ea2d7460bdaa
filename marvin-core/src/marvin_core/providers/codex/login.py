"""`marvin login codex`: the login with a ChatGPT account in the browser.

The authorization code flow with PKCE (RFC 7636) and a redirect to loopback (RFC 8252): the browser brings the code
back to a server that listens on this machine only, or the user pastes the address that it was sent to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlencode, urlsplit

from ...api.config import Config
from ...api.errors import AuthFailed, UsageError
from ...api.providers import Endpoint, Secret
from ...api.timeouts import Timeouts
from ...config.program import command_name
from ...http.clients import Clients
from ...http.redirect import Redirect
from ...profiles.store import Profiles
from ...util.text import one_line
from .tokens import CLIENT_ID, TokenFile, Tokens, ask, log_in

if TYPE_CHECKING:
    import asyncio

    import httpx

AUTH_URL = "https://auth.openai.com"
PORTS = (1455, 1457)
"""The ports on this machine to which OpenAI's login redirects."""
_NAME = "codex"
_PATH = "/auth/callback"
_REASON = 200
"""The maximum length of the reason for a failed login, in characters."""
_SCOPE = "openid profile email offline_access"


def login(
    name: str,
    config: Config,
    say: Callable[[str], None],
    read_line: Callable[[], str] | None = None,
    ports: Sequence[int] = PORTS,
) -> None:
    """Log in, and store the login in the active profile.

    Args:
        say: shows a text to the user; the text ends without a newline.
        read_line: reads a line that the user pastes, blocking; empty at the end of input. None if no user can paste
            one.
        ports: tried in order; 0 means any free one.

    Raises:
        UsageError: this provider has no login.
        ProviderError: the login was denied, took too long or failed.
        MarvinError, OSError: the login cannot be stored.
    """
    if name != _NAME:
        raise UsageError(f"{name} has no login; only {_NAME} has one. Other providers need a key.")
    import asyncio

    settings = config.endpoints.get(_NAME)
    profiles = Profiles(config.config_folder, config.timeouts)
    folder = profiles.folder(profiles.active)
    auth_url = (settings.auth_url if settings else "") or AUTH_URL
    asyncio.run(_log_in(auth_url.rstrip("/"), folder, config, say, read_line, ports))


def logout(name: str, config: Config) -> str:
    """Delete the login of the active profile; returns the message for the user. Raises like `login`."""
    profiles = Profiles(config.config_folder, config.timeouts)
    file = TokenFile(profiles.folder(profiles.active), config.timeouts)
    if not file.forget():
        return f"The profile {profiles.active} has no login of {name}."
    return f"The login of {name} was removed from {file.path}."


async def _log_in(
    auth_url: str,
    folder: Path,
    config: Config,
    say: Callable[[str], None],
    read_line: Callable[[], str] | None,
    ports: Sequence[int],
) -> None:
    from ...util.threads import in_thread

    clients = Clients(config)
    try:
        tokens = await Authorization(auth_url, config.timeouts, say).run(clients.for_model(auth_url), read_line, ports)
    finally:
        await clients.close()
    file = TokenFile(folder, config.timeouts)
    await in_thread(lambda: file.save(tokens))
    say(f"You are logged in; the login is stored in {file.path}. Use it: {command_name()} --provider {_NAME}")


class Authorization:
    """One login, from the address that the user opens to the tokens."""

    def __init__(self, auth_url: str, timeouts: Timeouts, say: Callable[[str], None]) -> None:
        from secrets import token_urlsafe

        self._auth_url = auth_url
        self._timeouts = timeouts
        self._say = say
        self._verifier = token_urlsafe(64)
        self._state = token_urlsafe(32)

    async def run(self, client: httpx.AsyncClient, read_line: Callable[[], str] | None, ports: Sequence[int]) -> Tokens:
        """Let the user log in. Raises like `login`."""
        import asyncio

        code: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        redirect = Redirect(_PATH, lambda query: self._take(code, query), self._timeouts.http)
        async with redirect.listening(ports) as port:
            if port is None and read_line is None:
                raise self._failed(
                    f"The ports {', '.join(map(str, ports))} are in use. Close the programs that use them."
                )
            back = f"http://localhost:{port or ports[0]}{_PATH}"
            self._say(f"Open this address in a browser on any machine, and log in:\n\n{self._url(back)}\n")
            pasting = None
            if read_line is not None:
                self._say(
                    "If the browser cannot connect back to Marvin, paste the final address of the browser "
                    "here, and press Enter."
                )
                pasting = asyncio.create_task(self._pasted(code, read_line))
            try:
                async with asyncio.timeout(self._timeouts.login):
                    found = await code
            except TimeoutError:
                raise self._failed(f"The login was not completed within {self._timeouts.login:g} s.") from None
            finally:
                if pasting is not None:
                    pasting.cancel()
        return await self._exchange(client, found, back)

    def _url(self, back: str) -> str:
        from base64 import urlsafe_b64encode
        from hashlib import sha256

        challenge = urlsafe_b64encode(sha256(self._verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": CLIENT_ID,
            "redirect_uri": back,
            "scope": _SCOPE,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "id_token_add_organizations": "true",  # or the account is not named in the token
            "codex_cli_simplified_flow": "true",
            "state": self._state,
            "originator": "marvin",
        }
        return f"{self._auth_url}/oauth/authorize?{urlencode(query)}"

    async def _exchange(self, client: httpx.AsyncClient, code: str, back: str) -> Tokens:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": back,
            "client_id": CLIENT_ID,
            "code_verifier": self._verifier,
        }
        endpoint = Endpoint(
            provider=_NAME, base_url=self._auth_url, model="", key=Secret(code), key_hint="", timeouts=self._timeouts
        )
        try:
            return await ask(endpoint, client, form)
        except AuthFailed as error:
            raise self._failed(str(error)) from None

    def _take(self, code: asyncio.Future[str], query: str) -> bool:
        """Process the login service's redirect; false if it does not belong to this login."""
        from hmac import compare_digest

        given = {name: values[0] for name, values in parse_qs(query).items()}
        # Whoever does not know the state can neither log in as somebody else nor end the login.
        if not compare_digest(given.get("state", "").encode(), self._state.encode()):
            return False
        if code.done():
            return True
        if given.get("code"):
            code.set_result(given["code"])
        else:
            why = given.get("error_description") or given.get("error") or "no code was returned"
            code.set_exception(self._failed(f"The login was refused: {one_line(why, _REASON).rstrip('.')}."))
        return True

    async def _pasted(self, code: asyncio.Future[str], read_line: Callable[[], str]) -> None:
        from ...util.threads import in_thread

        while line := await in_thread(read_line):
            if self._take(code, urlsplit(line.strip()).query):
                return
            if line.strip():
                self._say(
                    "That is not the final address of this login. Copy the whole address, with `code` and `state`."
                )

    def _failed(self, text: str) -> AuthFailed:
        return AuthFailed(f"{text} {log_in().removesuffix('.')} again.", provider=_NAME)
