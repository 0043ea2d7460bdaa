"""The tokens of a ChatGPT login: kept in the profile, and renewed by one process at a time.

A refresh token can be used once (RFC 6749 section 6, with rotation): two processes that spend the same one would
end the login for both.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...api.errors import AuthFailed, MarvinError, ProviderError, Unreachable
from ...api.providers import Endpoint, Secret
from ...api.record import Record
from ...api.timeouts import Timeouts
from ...config.program import command_name
from ...util.state_files import locked, renewing, replace_file, set_aside
from ...util.untrusted_json import parse_json

if TYPE_CHECKING:
    import asyncio

    import httpx

CLIENT_ID = "app_EMoamEEZ73f0CkXaXp7hrann"
"""OpenAI's public client id for logins from this machine, which its own Codex CLI uses."""
_SERVICE = "codex"
_EARLY = 60
"""The number of seconds before its expiry at which a token is renewed, so that no token expires during a request."""
_LARGEST = 1_000_000
"""The maximum size of a response with tokens, in bytes."""
_REFUSALS = range(400, 404)
_ACCOUNT = "https://api.openai.com/auth"


def log_in() -> str:
    """What to do if there is no valid login."""
    return f"Run `{command_name()} login codex`."


class Tokens(Record):
    """A login. `expires` is the expiry of the access token in seconds since 1970, 0 if unknown."""

    access: Secret
    refresh: Secret
    account: str
    auth_url: str
    expires: float = 0.0

    @property
    def is_due(self) -> bool:
        """Whether it is due for renewal."""
        return bool(self.expires) and time.time() > self.expires - _EARLY


def tokens_of(answer: Mapping[str, Any], auth_url: str, before: Tokens | None = None) -> Tokens:
    """The tokens in a response of the login service; missing values are taken from `before`.

    Raises:
        KeyError, TypeError, ValueError: the response contains no tokens.
    """
    access = answer["access_token"]
    refresh = answer.get("refresh_token") or (before.refresh.reveal() if before else "")
    if not (isinstance(access, str) and access and isinstance(refresh, str) and refresh):
        raise ValueError("no tokens")
    claims = _claims(access)
    known = (_claims(answer.get("id_token") or ""), claims)
    account = next((str(found) for each in known if (found := _account(each))), before.account if before else "")
    lasts = answer.get("expires_in")
    expires = time.time() + float(lasts) if lasts else float(claims.get("exp") or 0)
    return Tokens(access=Secret(access), refresh=Secret(refresh), account=account, auth_url=auth_url, expires=expires)


def _claims(token: str) -> Mapping[str, Any]:
    """The claims of a JSON web token. They are not verified, since the service itself sent them over TLS."""
    from base64 import urlsafe_b64decode

    try:
        payload = token.split(".")[1]
        claims = parse_json(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, IndexError):
        return {}
    return claims if isinstance(claims, dict) else {}


def _account(claims: Mapping[str, Any]) -> object:
    own = claims.get(_ACCOUNT)
    return own.get("chatgpt_account_id") if isinstance(own, dict) else None


class TokenFile:
    """`tokens.json` of a profile, readable by its owner only: an object with one entry for each service."""

    def __init__(self, folder: Path, timeouts: Timeouts) -> None:
        self.path = folder / "tokens.json"
        self._timeouts = timeouts

    def read(self) -> Tokens | None:
        """The login; None if there is none, or if it cannot be read."""
        try:
            entry = self._entries()[_SERVICE]
            return Tokens(
                access=Secret(str(entry["access_token"])),
                refresh=Secret(str(entry["refresh_token"])),
                account=str(entry["account_id"]),
                auth_url=str(entry["auth_url"]),
                expires=float(entry["expires_at"]),
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def save(self, tokens: Tokens) -> None:
        """Store a login; the entries of other services stay.

        Raises:
            MarvinError: another process holds the file for too long.
            OSError: the file cannot be written.
        """
        entry = {
            "access_token": tokens.access.reveal(),
            "refresh_token": tokens.refresh.reveal(),
            "account_id": tokens.account,
            "auth_url": tokens.auth_url,
            "expires_at": tokens.expires,
        }
        with locked(self.path, self._timeouts.lock, self._timeouts.lock_poll):
            try:
                entries = self._entries()
            except FileNotFoundError:
                entries = {}
            except ValueError:
                set_aside(self.path)
                entries = {}
            content = json.dumps({**entries, _SERVICE: entry}, indent=2)
            replace_file(self.path, content.encode(), keep_mode=False)

    def forget(self) -> bool:
        """Remove the login; returns whether there was one. Raises like `save`."""
        with locked(self.path, self._timeouts.lock, self._timeouts.lock_poll):
            try:
                entries = self._entries()
            except (FileNotFoundError, ValueError):
                return False
            if entries.pop(_SERVICE, None) is None:
                return False
            replace_file(self.path, json.dumps(entries, indent=2).encode(), keep_mode=False)
            return True

    def _entries(self) -> dict[str, Any]:
        entries = parse_json(self.path.read_bytes())
        if not isinstance(entries, dict):
            raise ValueError("no object")
        return entries

    def renewing(self) -> AbstractAsyncContextManager[None]:
        """See the function of that name."""
        return renewing(self.path, self._timeouts)


class Login:
    """The login of a profile, renewed when necessary. `client` returns the HTTP client."""

    def __init__(self, endpoint: Endpoint, client: Callable[[], httpx.AsyncClient]) -> None:
        self._endpoint = endpoint
        self._client = client
        self._file = TokenFile(endpoint.profile_folder, endpoint.timeouts) if endpoint.profile_folder else None
        self._tokens: Tokens | None = None
        self._renewal: asyncio.Task[Tokens] | None = None

    async def tokens(self) -> Tokens:
        """Valid tokens.

        Raises:
            ProviderError: there is no login, or it cannot be renewed; see `renewed`.
        """
        if self._tokens is None or self._tokens.is_due:
            # Also when they are due: another process may have renewed them by now.
            self._tokens = self._file.read() if self._file else None
        if self._tokens is None:
            raise self._refused(f"{self._endpoint.provider} needs a login. {log_in()}")
        return await self.renewed(self._tokens) if self._tokens.is_due else self._tokens

    async def renewed(self, spent: Tokens) -> Tokens:
        """The tokens that replace `spent`. A renewal is completed even if its caller is cancelled.

        Raises:
            AuthFailed: the service rejected the login.
            ProviderError: another sub-class, if the service cannot be reached.
        """
        import asyncio

        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.get_running_loop().create_task(self._renew(spent))
            self._renewal.add_done_callback(lambda task: task.cancelled() or task.exception())
        self._tokens = await asyncio.shield(self._renewal)
        return self._tokens

    async def aclose(self) -> None:
        """Wait for a running renewal: its refresh token has been used already."""
        import asyncio

        if self._renewal is not None and not self._renewal.done():
            await asyncio.wait({self._renewal}, timeout=self._endpoint.timeouts.close)

    async def _renew(self, spent: Tokens) -> Tokens:
        from ...util.threads import in_thread

        file = self._file
        if file is None:
            raise self._refused(f"{self._endpoint.provider} needs a login. {log_in()}")
        try:
            async with file.renewing():
                found = file.read() or spent
                if found.access.reveal() != spent.access.reveal():
                    return found
                new = await self._ask(found)
                await in_thread(lambda: file.save(new))
                return new
        except ProviderError:
            raise
        except (MarvinError, OSError) as error:
            text = f"The login of {self._endpoint.provider} cannot be renewed: {error}. Try again. ({file.path})"
            raise Unreachable(text, provider=self._endpoint.provider) from None

    async def _ask(self, old: Tokens) -> Tokens:
        form = {"grant_type": "refresh_token", "refresh_token": old.refresh.reveal(), "client_id": CLIENT_ID}
        endpoint = self._endpoint.replace(base_url=old.auth_url, key=old.refresh)
        try:
            return await ask(endpoint, self._client(), form, old)
        except AuthFailed as error:
            raise self._refused(f"{error} {log_in()}") from None

    def _refused(self, text: str) -> AuthFailed:
        return AuthFailed(text, provider=self._endpoint.provider)


async def ask(
    endpoint: Endpoint, client: httpx.AsyncClient, form: Mapping[str, str], before: Tokens | None = None
) -> Tokens:
    """Request tokens from the login service at `endpoint`. Errors do not show the endpoint's key.

    Raises:
        AuthFailed: the service rejected the request; the text does not yet say what to do.
        ProviderError: another sub-class, for any other failure.
    """
    import asyncio

    import httpx

    from ..http import error_mapping
    from ..http.provider import gather

    url = f"{endpoint.base_url.rstrip('/')}/oauth/token"
    limit = endpoint.timeouts.http
    said = bytearray()
    try:
        async with asyncio.timeout(limit):
            async with client.stream("POST", url, data=dict(form), timeout=limit) as answer:
                await gather(answer, said, _LARGEST)
    except TimeoutError:
        late = httpx.ReadTimeout("")
        raise error_mapping.from_transport(endpoint, url, late, begun=False, silence=limit) from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise error_mapping.from_transport(endpoint, url, error, begun=False, silence=limit) from None
    return _tokens_in(endpoint, url, answer, bytes(said), before)


def _tokens_in(endpoint: Endpoint, url: str, answer: httpx.Response, said: bytes, before: Tokens | None) -> Tokens:
    """The tokens in the response of the login service; raises like `ask`."""
    from ..http import error_mapping
    from ..http.error_reports import report_of

    status = answer.status_code
    if status in _REFUSALS:
        reason = report_of(endpoint, status, answer.headers, said).message
        text = f"{endpoint.provider} did not accept the login ({status}): {reason}"
        raise AuthFailed(text, provider=endpoint.provider, status=status)
    if not answer.is_success:
        raise error_mapping.from_status(endpoint, url, status, answer.headers, said)
    try:
        return tokens_of(parse_json(said), endpoint.base_url, before)
    except (ValueError, KeyError, TypeError, AttributeError):
        # What came may hold a token, so it is not shown.
        raise error_mapping.broken(endpoint, url, "answered the login without tokens") from None
