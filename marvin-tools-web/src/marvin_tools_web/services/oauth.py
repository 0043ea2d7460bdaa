"""Logins to services: authorization code with PKCE, redirect to the loopback, tokens stored in the profile.

Source: RFC 6749, RFC 7636, RFC 8252
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import secrets
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from marvin_core import Fetched, JsonFile, Record, RequestFailed, ToolContext, ToolError, in_thread

from . import values
from .catalog import Service
from .client import ServiceClient
from .loopback import loopback

FILE = "tokens.json"
_EARLIER = 60.0
"""Seconds before its expiry at which a token is renewed."""
_BEGUN = 3_600.0
"""Seconds for which a pending login can be completed."""
_LOGINS = 5
"""Pending logins at most: one in each of several sessions."""
_TOKEN = 4_000
_CODE = re.compile(r"[\w.~+/=-]{16,2000}", re.ASCII)
_OTHERS = 0o077
_REFUSED = (400, 401)


class LoginService(Record):
    """A service with a login.

    Attributes:
        key: its name in tokens.json.
        title: its name in texts.
        tool: the tool that starts a login.
        client_id: the environment variable with the id of the user's own application.
        client_secret: the environment variable with its secret; empty if it has none.
        how: how the user creates such an application.
        scopes: the requested scopes.
        authorize: the service of the authorization endpoint, and the path there.
        tokens: the service of the token endpoint, and the path there.
        extra: additional parameters of the authorization URL.
    """

    key: str
    title: str
    tool: str
    client_id: str
    client_secret: str = ""
    how: str
    scopes: str
    authorize: tuple[Service, str]
    tokens: tuple[Service, str]
    extra: Mapping[str, str] = MappingProxyType({})


class Pending(Record):
    """A pending login: its state and verifier, its redirect URI, and when it was started."""

    verifier: str
    state: str
    redirect: str
    begun: float = 0.0


def challenge(verifier: str) -> str:
    """The code challenge of a verifier. Source: RFC 7636, section 4.2"""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


class TokenFile:
    """The tokens of a profile, in a file that only this user can read."""

    def __init__(self, context: ToolContext) -> None:
        path = context.profile_folder / FILE
        self._file = JsonFile(path, dict, timeouts=context.timeouts)

    async def read(self, key: str) -> Mapping[str, Any]:
        """The object stored under a name; empty if there is none."""
        found = await self.value(key)
        return found if isinstance(found, Mapping) else {}

    async def value(self, key: str) -> Any:
        """The value stored under a name; None if there is none."""
        return (await self._file.read()).get(key)

    async def change(self, work: Callable[[dict[str, Any]], None]) -> None:
        """Change the stored data. A file that others can read is made private first."""
        await in_thread(lambda: _close_to_others(self._file.path))
        await self._file.change(work)


def _close_to_others(path: Path) -> None:
    with suppress(OSError):
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & _OTHERS:
            path.chmod(mode & ~_OTHERS)


def token_in(kept: Mapping[str, Any], name: str = "access_token") -> str:
    """The access token in stored data; empty if there is none."""
    found = kept.get(name)
    return values.text(found, limit=_TOKEN) if isinstance(found, str) else ""


def holds(kept: Mapping[str, Any], now: float) -> bool:
    """Whether stored data has a token that is valid for some time yet."""
    return bool(token_in(kept)) and (values.number(kept, "expires_at") or 0) - _EARLIER > now


def given_tokens(answer: Fetched) -> dict[str, Any]:
    """The tokens in an answer of a service. Raises `ValueError` if there are none."""
    found = answer.json()
    lasts = values.number(found, "expires_in")
    if not isinstance(found, Mapping) or not token_in(found) or lasts is None:
        raise ValueError("there is no token")
    token = token_in(found)
    refresh = token_in(found, "refresh_token")
    return {"access_token": token, "expires_in": lasts, **({"refresh_token": refresh} if refresh else {})}


def code_in(given: str, state: str, title: str = "the service") -> str:
    """The code in a text: the code itself, or a URL or query string with it.

    Raises:
        ToolError: there is none, or it does not belong to this login.
    """
    fields = fields_in(given)
    if "error" in fields:
        raise ToolError(f"The login to {title} was refused. Ask the user whether to try again.")
    if fields and fields.get("state", [state]) != [state]:
        raise ToolError("That is the answer to a different login. Start a new login, and open its address.")
    code = fields["code"][0] if "code" in fields else given.strip()
    if not _CODE.fullmatch(code):
        raise ToolError(
            f"That is not a login code of {title}. Give the whole final address of the browser after the login."
        )
    return code


def fields_in(given: str) -> Mapping[str, list[str]]:
    """The fields of a URL or query string that answers a login; empty for a bare code or other text."""
    text = given.strip()
    try:
        query = urlsplit(text).query if "://" in text else text.lstrip("?")
    except ValueError:  # such as brackets in something that is not a URL
        return {}
    return parse_qs(query) if ("=" in query and "code" in query) or "error=" in query else {}


class Login:
    """The login to a service during one call of a tool."""

    def __init__(self, context: ToolContext, service: LoginService) -> None:
        self._context = context
        self._service = service
        self._file = TokenFile(context)
        self._begun = f"{service.key}_login"

    async def begin(self) -> str:
        """The URL at which the user logs in; the answer comes to the loopback.

        Raises:
            ToolError: the user has no application at the service yet, or no port can be opened.
        """
        client = self._client()
        try:
            waiting = await self._context.resource(loopback)
        except OSError as error:
            raise ToolError(
                f"No port can be opened on this machine for the answer: {error.strerror or error}. Tell the user."
            ) from error
        waiting.limit = self._context.timeouts.http
        now = self._context.clock.now()
        pending = Pending(
            verifier=secrets.token_urlsafe(64), state=secrets.token_urlsafe(16), redirect=waiting.redirect, begun=now
        )
        waiting.expect(pending.state)

        def note(tokens: dict[str, Any]) -> None:
            others = [one.as_dict() for one in pendings_in(tokens.get(self._begun), now)]
            tokens[self._begun] = [*others[1 - _LOGINS :], pending.as_dict()]

        await self._file.change(note)
        service, path = self._service.authorize
        params = {
            "client_id": client["client_id"],
            "response_type": "code",
            "redirect_uri": pending.redirect,
            "scope": self._service.scopes,
            "state": pending.state,
            "code_challenge_method": "S256",
            "code_challenge": challenge(pending.verifier),
            **self._service.extra,
        }
        return f"{ServiceClient(self._context, service).url}/{path}?{urlencode(params)}"

    async def finish(self, given: str) -> None:
        """Exchange a code, or the whole URL that the browser was redirected to, for tokens.

        Raises:
            ToolError: there is no pending login, the answer is not for it, or the service refuses it.
        """
        pendings = await self._pendings()
        if not pendings:
            raise ToolError(
                f"No login to {self._service.title} was started. Call {self._service.tool} without auth_code first."
            )
        state = fields_in(given).get("state", [pendings[-1].state])[0]
        pending = next((one for one in pendings if one.state == state), pendings[-1])
        form = {
            "grant_type": "authorization_code",
            "code": code_in(given, pending.state, self._service.title),
            "redirect_uri": pending.redirect,
            **self._client(),
            "code_verifier": pending.verifier,
        }
        await self._store(form, {}, pending.state)

    async def answered(self) -> bool:
        """Process the answer that came to the loopback since the login was started; returns whether there was one."""
        pendings = await self._pendings()
        if not pendings:
            return False
        try:
            waiting = await self._context.resource(loopback)
        except OSError:
            return False
        answer = next(filter(None, (waiting.taken(one.state) for one in pendings)), "")
        if answer:
            await self.finish(answer)
        return bool(answer)

    async def is_known(self) -> bool:
        """Whether somebody is logged in, or has a pending login."""
        return bool(token_in(await self._file.read(self._service.key), "refresh_token")) or await self.answered()

    async def forget(self) -> None:
        """Log out: remove the tokens and pending logins."""

        def drop(tokens: dict[str, Any]) -> None:
            for key in (self._service.key, self._begun):
                tokens.pop(key, None)

        await self._file.change(drop)

    async def access_token(self) -> str:
        """A valid access token.

        Raises:
            ToolError: the user has to log in.
            RequestFailed: the service gives no token.
        """
        await self.answered()
        kept = await self._file.read(self._service.key)
        if not token_in(kept, "refresh_token"):
            raise ToolError(
                f"The user is not logged in to {self._service.title}. Call {self._service.tool}, and ask the user to "
                "open its address."
            )
        return token_in(kept) if holds(kept, self._context.clock.now()) else await self.renewed(token_in(kept))

    async def renewed(self, old: str) -> str:
        """A token in place of an expired one. Raises as `access_token`.

        A refresh token may be valid only once. Of two Marvins one is then refused, and uses the other's token.
        """
        kept = await self._file.read(self._service.key)
        if token_in(kept) != old and holds(kept, self._context.clock.now()):
            return token_in(kept)
        refresh = token_in(kept, "refresh_token")
        form = {"grant_type": "refresh_token", "refresh_token": refresh, **self._client()}
        try:
            return await self._store(form, {"refresh_token": refresh}, "")
        except RequestFailed as error:
            if error.status not in _REFUSED:
                raise
            await asyncio.sleep(self._context.timeouts.lock_poll)  # the other one may be about to write
            kept = await self._file.read(self._service.key)
            if token_in(kept, "refresh_token") != refresh and holds(kept, self._context.clock.now()):
                return token_in(kept)
            raise ToolError(
                f"The login to {self._service.title} has expired. Call {self._service.tool}, and ask the user to log "
                "in again."
            ) from error

    def _client(self) -> dict[str, str]:
        """The user's application at the service, as token requests name it."""
        service = self._service
        found = self._context.setting(service.client_id)
        if not found:
            raise ToolError(f"{service.how}, and set its client id as {service.client_id}.")
        secret = self._context.secret(service.client_secret, None) if service.client_secret else None
        return {"client_id": found, **({"client_secret": secret} if secret else {})}

    async def _store(self, form: Mapping[str, str], before: Mapping[str, str], state: str) -> str:
        """Request tokens from the service and store them for this user; returns the access token."""
        service, path = self._service.tokens
        headers = {"accept": "application/json"}
        found = await ServiceClient(self._context, service).post_form(path, form, given_tokens, headers=headers)
        now = self._context.clock.now()
        kept = {**before, **found, "expires_at": now + float(found.pop("expires_in"))}
        del kept["expires_in"]

        def change(tokens: dict[str, Any]) -> None:
            tokens[self._service.key] = kept
            others = [one.as_dict() for one in pendings_in(tokens.pop(self._begun, None), now) if one.state != state]
            if others:
                tokens[self._begun] = others

        await self._file.change(change)
        return str(kept["access_token"])

    async def _pendings(self) -> list[Pending]:
        """The logins that can still be completed, the newest last."""
        return pendings_in(await self._file.value(self._begun), self._context.clock.now())


def pendings_in(kept: Any, now: float) -> list[Pending]:
    """The logins in stored data that can still be completed, the newest last."""
    found = []
    for one in kept if isinstance(kept, list) else ():
        texts = {name: values.text(one, name, limit=500) for name in ("verifier", "state", "redirect")}
        begun = values.number(one, "begun") or 0.0
        if all(texts.values()) and abs(now - begun) < _BEGUN:
            found.append(Pending(**texts, begun=begun))
    return found
