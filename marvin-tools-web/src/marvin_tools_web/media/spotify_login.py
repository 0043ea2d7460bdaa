"""The login to Spotify: authorization code with PKCE, an answer on the loopback, tokens of the profile.

Source: developer.spotify.com/documentation/web-api/tutorials/code-pkce-flow, .../concepts/redirect_uri
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from marvin_core import Fetched, JsonFile, Record, RequestFailed, ToolContext, ToolError

from ..services import values
from ..services.catalog import SPOTIFY_ACCOUNTS
from ..services.client import ServiceClient

CLIENT_ID = "SPOTIFY_CLIENT_ID"
_SCOPES = "playlist-modify-private playlist-modify-public playlist-read-private"
_LOOPBACK = "127.0.0.1"
_PATH = "/callback"
_REGISTERED = f"http://{_LOOPBACK}{_PATH}"
"""What is entered at Spotify; of a loopback address any port is allowed then."""
_SERVICE = "spotify"
_PENDING = "spotify_login"
_EARLIER = 60.0
"""Seconds by which a token is renewed before it ends."""
_HEAD = 16 * 1024
_CODE = re.compile(r"[\w.~+/=-]{16,2000}")
_DONE = "<!doctype html><meta charset=utf-8><title>Marvin</title><p>{}</p>"
_THANKS = "Thank you. You can close this page and go on in the chat."
_REFUSED = "Spotify did not let you in. You can close this page."


class Pending(Record):
    """A login that was begun: what proves that its answer is for us, and where that comes to."""

    verifier: str
    state: str
    redirect: str


class Callback:
    """Waits on the loopback for the answer to a login, as long as the session lasts."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.answer = ""
        """The query of the address that the browser was sent to; empty before."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take one request of a browser."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            target = head.split(b" ", 2)[1].decode("ascii", "replace")
            parts = urlsplit(target)
            found = parts.path == _PATH and parts.query
            if found:
                self.answer = parts.query
            text = _DONE.format(_THANKS if found and "error=" not in parts.query else _REFUSED).encode()
            status = b"200 OK" if found else b"404 Not Found"
            writer.write(b"HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: %d\r\n" % (status, len(text)))
            writer.write(b"Connection: close\r\nCache-Control: no-store\r\n\r\n" + text)
            await writer.drain()
        except (OSError, EOFError, ValueError, IndexError, asyncio.LimitOverrunError):
            pass  # it was no browser
        finally:
            writer.close()


@asynccontextmanager
async def callback() -> AsyncIterator[Callback]:
    """The server for the answers; a resource of the session."""
    waiting = Callback(0)
    server = await asyncio.start_server(waiting.serve, _LOOPBACK, 0, limit=_HEAD)
    waiting.port = server.sockets[0].getsockname()[1]
    try:
        yield waiting
    finally:
        server.close()


def _tokens(context: ToolContext) -> JsonFile[dict[str, Any]]:
    return JsonFile(context.profile_folder / "tokens.json", dict, timeouts=context.timeouts)


def client_id(context: ToolContext) -> str:
    """The application that the user has made at Spotify.

    Raises:
        ToolError: there is none; the text says how to make one.
    """
    found = context.setting(CLIENT_ID)
    if not found:
        raise ToolError(
            "Spotify wants an application of the user's own. Have the user make one at developer.spotify.com/dashboard "
            f"with the redirect URI {_REGISTERED}, and set its client id as {CLIENT_ID}."
        )
    return found


async def begin(context: ToolContext) -> str:
    """The address at which the user logs in; the answer comes to the loopback."""
    waiting = await context.resource(callback)
    waiting.answer = ""
    redirect = f"http://{_LOOPBACK}:{waiting.port}{_PATH}"
    pending = Pending(verifier=secrets.token_urlsafe(64), state=secrets.token_urlsafe(16), redirect=redirect)
    params = {
        "client_id": client_id(context),
        "response_type": "code",
        "redirect_uri": redirect,
        "scope": _SCOPES,
        "state": pending.state,
        "code_challenge_method": "S256",
        "code_challenge": challenge(pending.verifier),
    }
    await _tokens(context).change(lambda kept: kept.update({_PENDING: pending.as_dict()}))
    return f"{ServiceClient(context, SPOTIFY_ACCOUNTS).url}/authorize?{urlencode(params)}"


def challenge(verifier: str) -> str:
    """What a verifier is known by until it is shown. Source: RFC 7636, section 4.2"""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


async def finish(context: ToolContext, given: str) -> None:
    """Make tokens of a code, or of the whole address that the browser was sent to.

    Raises:
        ToolError: no login was begun, or the answer is not to it, or Spotify does not take it.
    """
    pending = _pending(await _tokens(context).read())
    if pending is None:
        raise ToolError("No login to Spotify was begun. Call spotify_auth without auth_code first.")
    code = code_in(given, pending.state)
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": pending.redirect,
        "client_id": client_id(context),
        "code_verifier": pending.verifier,
    }
    await _store(context, form, {})


def code_in(given: str, state: str) -> str:
    """The code in what was given: the code itself, or an address or query with it.

    Raises:
        ToolError: there is none, or it is not the answer to this login.
    """
    text = given.strip()
    try:
        query = urlsplit(text).query if "://" in text else text
    except ValueError:  # as from brackets that are no address
        query = ""
    fields = parse_qs(query) if ("=" in query and "code" in query) or "error=" in query else {}
    if "error" in fields:
        raise ToolError("The user did not let Marvin in at Spotify. Ask whether to try again.")
    if fields and fields.get("state", [state]) != [state]:
        raise ToolError("That is the answer to another login. Call spotify_auth again, and log in at its address.")
    code = fields["code"][0] if "code" in fields else text
    if not _CODE.fullmatch(code):
        raise ToolError("That is no code of Spotify. Give the whole address that the browser ended at after the login.")
    return code


async def answered(context: ToolContext) -> bool:
    """Take the answer that came to the loopback since a login was begun; whether there was one."""
    if _pending(await _tokens(context).read()) is None:
        return False
    waiting = await context.resource(callback)
    if not waiting.answer:
        return False
    answer, waiting.answer = waiting.answer, ""
    await finish(context, answer)
    return True


async def access_token(context: ToolContext) -> str:
    """A token that holds.

    Raises:
        ToolError: the user has to log in.
        RequestFailed: Spotify gives none.
    """
    await answered(context)
    kept = values.inner(await _tokens(context).read(), _SERVICE)
    if not isinstance(kept, Mapping) or not values.text(kept, "refresh_token", limit=4_000):
        raise ToolError("The user is not logged in to Spotify. Call spotify_auth, and have the user open its address.")
    until = values.number(kept, "expires_at") or 0
    if until - _EARLIER > context.clock.now():
        return values.text(kept, "access_token", limit=4_000)
    return await renewed(context)


async def renewed(context: ToolContext) -> str:
    """A new token. Raises as `access_token`."""
    kept = values.inner(await _tokens(context).read(), _SERVICE)
    refresh = values.text(kept, "refresh_token", limit=4_000)
    form = {"grant_type": "refresh_token", "refresh_token": refresh, "client_id": client_id(context)}
    try:
        return await _store(context, form, {"refresh_token": refresh})
    except RequestFailed as error:
        if error.status in (400, 401):
            raise ToolError(
                "The login to Spotify has ended. Call spotify_auth, and have the user log in again."
            ) from error
        raise


async def _store(context: ToolContext, form: Mapping[str, str], before: Mapping[str, str]) -> str:
    """Have Spotify give tokens, and keep them for this user alone."""
    headers = {"accept": "application/json"}
    found = await ServiceClient(context, SPOTIFY_ACCOUNTS).post_form("api/token", form, _given, headers=headers)
    now = context.clock.now()
    kept = {**before, **found, "expires_at": now + float(found.pop("expires_in"))}
    kept.pop("expires_in", None)

    def change(tokens: dict[str, Any]) -> None:
        tokens[_SERVICE] = kept
        tokens.pop(_PENDING, None)

    await _tokens(context).change(change)
    return str(kept["access_token"])


def _given(answer: Fetched) -> dict[str, Any]:
    found = answer.json()
    token, lasts = values.text(found, "access_token", limit=4_000), values.number(found, "expires_in")
    if not token or lasts is None:
        raise ValueError("there is no token")
    refresh = values.text(found, "refresh_token", limit=4_000)
    return {"access_token": token, "expires_in": lasts, **({"refresh_token": refresh} if refresh else {})}


def _pending(kept: Mapping[str, Any]) -> Pending | None:
    found = values.inner(kept, _PENDING)
    names = ("verifier", "state", "redirect")
    texts = {name: values.text(found, name, limit=500) for name in names}
    return Pending(**texts) if all(texts.values()) else None
