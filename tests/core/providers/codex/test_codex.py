"""Codex with a ChatGPT account: the login in the browser, its renewal, and the requests made with it."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import stat
import subprocess
import sys
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import aclosing, closing
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest

from marvin_core.api.config import Config
from marvin_core.api.errors import (
    AuthFailed,
    ModelNotFound,
    Overloaded,
    ProviderError,
    QuotaExhausted,
    StreamBroken,
    Unreachable,
    UsageError,
)
from marvin_core.api.messages import user
from marvin_core.api.providers import Endpoint, Request, Secret
from marvin_core.api.timeouts import Timeouts
from marvin_core.http.client import HttpSettings, make_client
from marvin_core.providers.codex.login import PORTS, login
from marvin_core.providers.codex.provider import Codex, create
from marvin_core.providers.codex.tokens import TokenFile, Tokens, log_in
from marvin_core.testing import Answer, document, error, pause, raw
from marvin_core.testing.model_server import LoopbackServer, RecordedRequest
from tests.support import answers_responses as responses
from tests.support.chatting import answer_of, request, text_of
from tests.support.engine import settled

TIMEOUTS = Timeouts(http=50.0, login=50.0, lock=50.0, lock_poll=0.002, close=50.0)
ACCOUNT = "acct-1234"


def web_token(**claims: Any) -> str:
    """A JSON web token with these claims; nobody here looks at its signature."""
    parts = [json.dumps({"alg": "none"}), json.dumps(claims), "signature"]
    return ".".join(urlsafe_b64encode(part.encode()).rstrip(b"=").decode() for part in parts)


class ChatGPT(LoopbackServer):
    """A login service with PKCE and refresh tokens that can be used once, and the model behind it.

    `grant` false denies the login; `lasts` is the life of an access token in seconds; `on_token` and `on_model` are
    answered, one each time, in the place of what is right.
    """

    def __init__(self, *, grant: bool = True, lasts: int = 3600) -> None:
        self.grant = grant
        self.lasts = lasts
        self.slow: float | threading.Event = 0.0
        self.on_token: list[Answer] = []
        self.on_model: list[Answer] = []
        self._codes: dict[str, dict[str, str]] = {}
        self._refresh: set[str] = set()
        self._access: set[str] = set()
        self._count = 0
        super().__init__()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def asked(self, path: str) -> list[RecordedRequest]:
        """The requests to a path."""
        return [request for request in self.requests if request.path.partition("?")[0] == path]

    def tokens(self, *, expires: float | None = None) -> Tokens:
        """A login that the service knows."""
        made = self._issue()
        return Tokens(
            access=Secret(made["access_token"]),
            refresh=Secret(made["refresh_token"]),
            account=ACCOUNT,
            auth_url=self.url,
            expires=time.time() + self.lasts if expires is None else expires,
        )

    def forget_access(self) -> None:
        """End all access tokens, without anyone being told."""
        self._access.clear()

    def answer_to(self, request: RecordedRequest) -> Answer:
        path, _, query = request.path.partition("?")
        if path == "/oauth/authorize":
            return self._authorize({name: values[0] for name, values in parse_qs(query).items()})
        if path == "/oauth/token":
            form = {name: values[0] for name, values in parse_qs(request.content.decode()).items()}
            with self._lock:
                answer = self.on_token.pop(0) if self.on_token else self._token(form)
            return pause(self.slow, answer) if self.slow else answer
        if self.on_model:
            return self.on_model.pop(0)
        if request.headers.get("authorization", "").removeprefix("Bearer ") not in self._access:
            return error(401, {"detail": "Your authentication token has expired."})
        return responses.text("Hi")

    def _authorize(self, asked: dict[str, str]) -> Answer:
        back = {"state": asked["state"]}
        if self.grant:
            self._codes[f"code-{len(self._codes)}"] = asked
            back["code"] = f"code-{len(self._codes) - 1}"
        else:
            back |= {"error": "access_denied", "error_description": "The user said no."}
        location = f"{asked['redirect_uri']}?{urlencode(back)}"
        return Answer(status=302, headers=(("location", location),), framing="length")

    def _token(self, form: dict[str, str]) -> Answer:
        if form["grant_type"] == "refresh_token":
            if form["refresh_token"] not in self._refresh:
                reused = {"message": "Your refresh token has already been used.", "code": "refresh_token_reused"}
                return error(401, {"error": reused})
            self._refresh.discard(form["refresh_token"])
            return document(self._issue())
        asked = self._codes.pop(form["code"], {})
        challenge = urlsafe_b64encode(sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        same = all(asked.get(name) == form[name] for name in ("client_id", "redirect_uri"))
        if not same or asked.get("code_challenge") != challenge:
            return error(400, {"error": "invalid_grant", "error_description": "no such code"})
        return document(self._issue())

    def _issue(self) -> dict[str, Any]:
        self._count += 1
        access = web_token(exp=time.time() + self.lasts, number=self._count)
        self._access.add(access)
        self._refresh.add(f"refresh-{self._count}-secret")
        return {
            "access_token": access,
            "refresh_token": f"refresh-{self._count}-secret",
            "id_token": web_token(**{"https://api.openai.com/auth": {"chatgpt_account_id": ACCOUNT}}),
            "expires_in": self.lasts,
        }


@pytest.fixture
def chatgpt() -> Iterator[ChatGPT]:
    with ChatGPT() as server:
        yield server


def kept(folder: Path) -> TokenFile:
    return TokenFile(folder, TIMEOUTS)


def codex(server: ChatGPT, folder: Path | None, **changes: Any) -> Codex:
    given = Endpoint(
        provider="codex",
        base_url=f"{server.url}/codex",
        model="gpt-5.3-codex",
        key=Secret(""),
        key_hint="",
        max_tools=128,
        profile_folder=folder,
        timeouts=TIMEOUTS,
    )
    settings = HttpSettings(timeouts=TIMEOUTS)
    return Codex(given.replace(**changes), lambda: make_client(settings, timeout_read=50.0, tls=None))


def answered(server: ChatGPT, folder: Path | None, *prompts: str, **changes: Any) -> list[str]:
    async def go() -> list[str]:
        async with aclosing(codex(server, folder, **changes)) as provider:
            return [text_of(await answer_of(provider, request(user(prompt)))) for prompt in prompts or ("Hello",)]

    return asyncio.run(go())


def refused(server: ChatGPT, folder: Path | None, **changes: Any) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        answered(server, folder, **changes)
    return raised.value


class Person:
    """Reads what the login shows; opens the address in a browser where `browses`."""

    def __init__(self, *, browses: bool = True, meddle: Callable[[str], None] = lambda url: None) -> None:
        self.shown: list[str] = []
        self.pages: list[httpx.Response] = []
        self._browses = browses
        self._meddle = meddle
        self._threads: list[threading.Thread] = []

    def say(self, text: str) -> None:
        self.shown.append(text)
        found = re.search(r"http://\S+/oauth/authorize\S+", text)
        if found and self._browses:
            self._threads.append(threading.Thread(target=self._browse, args=(found[0],)))
            self._threads[-1].start()

    @property
    def url(self) -> str:
        """The address that was shown."""
        return next(found[0] for text in self.shown if (found := re.search(r"http://\S+/oauth/authorize\S+", text)))

    def _browse(self, url: str) -> None:
        self._meddle(url)
        with httpx.Client(trust_env=False, follow_redirects=True) as browser:
            self.pages.append(browser.get(url))

    def done(self) -> None:
        for thread in self._threads:
            thread.join()


def configured(tmp_path: Path, server: ChatGPT, **timeouts: float) -> tuple[Config, Path]:
    """The configuration, and the folder of its profile."""
    yaml = f"providers:\n  codex:\n    auth_url: {server.url}/\n"
    config, _ = settled(tmp_path, yaml=yaml, timeouts=TIMEOUTS.replace(**timeouts))
    return config, config.config_folder / "profiles" / "main"


def logged_in(
    tmp_path: Path,
    server: ChatGPT,
    person: Person,
    read_line: Callable[[], str] | None = None,
    ports: tuple[int, ...] = (0,),
    **timeouts: float,
) -> Path:
    """Log in; returns the folder of the profile."""
    config, folder = configured(tmp_path, server, **timeouts)
    try:
        login("codex", config, person.say, read_line, ports)
    finally:
        person.done()
    return folder


# The login


def test_a_login_in_the_browser_and_a_request_with_it(tmp_path: Path, chatgpt: ChatGPT) -> None:
    person = Person()
    folder = logged_in(tmp_path, chatgpt, person)
    assert "go back to Marvin" in person.pages[0].text
    assert "marvin --provider codex" in person.shown[-1]
    asked = {name: values[0] for name, values in parse_qs(urlsplit(person.url).query).items()}
    assert asked["code_challenge_method"] == "S256"
    assert asked["response_type"] == "code"
    assert asked["redirect_uri"].startswith("http://localhost:")
    assert asked["redirect_uri"].endswith("/auth/callback")
    assert "offline_access" in asked["scope"]
    assert answered(chatgpt, folder) == ["Hi"]
    (request,) = chatgpt.asked("/codex/responses")
    tokens = kept(folder).read()
    assert tokens is not None
    assert request.headers["authorization"] == f"Bearer {tokens.access.reveal()}"
    assert request.headers["chatgpt-account-id"] == ACCOUNT
    assert request.headers["originator"] == "marvin"


def test_a_login_belongs_to_the_active_profile(tmp_path: Path, chatgpt: ChatGPT) -> None:
    config, main = configured(tmp_path, chatgpt)
    (config.config_folder / "last_profile").write_text("work\n")
    person = Person()
    login("codex", config, person.say, None, (0,))
    person.done()
    assert kept(main.with_name("work")).read() is not None
    assert kept(main).read() is None


def test_only_the_owner_can_read_the_tokens_and_nobody_is_shown_them(tmp_path: Path, chatgpt: ChatGPT) -> None:
    """I24: also where the file was there before, open to others; what other services keep in it stays."""
    _, folder = configured(tmp_path, chatgpt)
    folder.mkdir(parents=True)
    (folder / "tokens.json").write_text('{"spotify": {"access_token": "s"}}')
    (folder / "tokens.json").chmod(0o644)
    person = Person()
    logged_in(tmp_path, chatgpt, person)
    path = folder / "tokens.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["spotify"] == {"access_token": "s"}
    tokens = kept(folder).read()
    assert tokens is not None
    shown = f"{person.shown} {[page.text for page in person.pages]} {tokens!r}"
    for secret in (tokens.access.reveal(), tokens.refresh.reveal(), "code-0"):
        assert secret not in shown
    assert not [found for found in folder.iterdir() if found.name.startswith(".")], "no temporary file is left"


def test_a_visitor_with_another_state_neither_logs_in_nor_ends_the_login(tmp_path: Path, chatgpt: ChatGPT) -> None:
    pages: list[httpx.Response] = []

    def meddle(url: str) -> None:
        back = parse_qs(urlsplit(url).query)["redirect_uri"][0]
        wrong = ("code=theirs&state=wrong", "error=access_denied&state=wrong", "code=theirs", "")
        pages.extend(httpx.get(f"{back}?{query}", trust_env=False) for query in wrong)
        pages.append(httpx.get(back.replace("/auth/callback", "/favicon.ico"), trust_env=False))
        with socket.create_connection(("127.0.0.1", int(back.rpartition(":")[2].partition("/")[0]))) as connection:
            connection.sendall(b"nonsense\r\n\r\n")

    folder = logged_in(tmp_path, chatgpt, Person(meddle=meddle))
    assert [page.status_code for page in pages] == [400, 400, 400, 400, 404]
    assert kept(folder).read() is not None
    assert "theirs" not in str([request.content for request in chatgpt.asked("/oauth/token")])


def test_a_login_that_was_denied(tmp_path: Path, chatgpt: ChatGPT) -> None:
    chatgpt.grant = False
    with pytest.raises(AuthFailed, match=r"The login was refused: The user said no\. Run `marvin login codex` again"):
        logged_in(tmp_path, chatgpt, Person())
    assert not chatgpt.asked("/oauth/token")


def test_a_login_that_nobody_finishes(tmp_path: Path, chatgpt: ChatGPT) -> None:
    """Also where standard input has come to its end, as it has in a job."""
    with pytest.raises(AuthFailed, match=r"The login was not completed within 0\.2 s"):
        logged_in(tmp_path, chatgpt, Person(browses=False), lambda: "", login=0.2)


def test_the_address_can_be_pasted_where_the_browser_cannot_come_back(tmp_path: Path, chatgpt: ChatGPT) -> None:
    person = Person(browses=False)
    lines = iter(["\n", "http://localhost:1455/auth/callback?code=theirs&state=wrong\n", ""])

    def read_line() -> str:
        line = next(lines)
        return line or f"  {httpx.get(person.url, trust_env=False).headers['location']}\n"

    folder = logged_in(tmp_path, chatgpt, person, read_line)
    assert kept(folder).read() is not None
    assert (
        len(
            [
                text
                for text in person.shown
                if "That is not the final address of this login. Copy the whole address, with `code` and `state`"
                in text
            ]
        )
        == 1
    )


def test_a_port_that_is_in_use_is_left_for_the_next_one(tmp_path: Path, chatgpt: ChatGPT) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        assert kept(logged_in(tmp_path, chatgpt, Person(), ports=(port, 0))).read() is not None
        with pytest.raises(AuthFailed, match=f"{port} are in use"):
            logged_in(tmp_path, chatgpt, Person(), ports=(port,))
        person = Person(browses=False)

        def pasted() -> str:
            return str(httpx.get(person.url, trust_env=False).headers["location"])

        logged_in(tmp_path, chatgpt, person, pasted, ports=(port,))
        assert f"localhost%3A{port}" in person.url


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (error(400, {"error": "invalid_grant", "error_description": "expired"}), AuthFailed, "again"),
        (error(403, "Country not supported"), AuthFailed, "Country not supported"),
        (error(500), Overloaded, "failing"),
        (document({"access_token": "a"}), StreamBroken, "answered the login without tokens"),
        (raw(b"<html>"), StreamBroken, "answered the login without tokens"),
        (document([]), StreamBroken, "answered the login without tokens"),
    ],
)
def test_a_code_that_cannot_be_exchanged(
    answer: Answer, kind: type[ProviderError], said: str, tmp_path: Path, chatgpt: ChatGPT
) -> None:
    chatgpt.on_token = [answer]
    with pytest.raises(kind, match=said):
        logged_in(tmp_path, chatgpt, Person())
    assert not (tmp_path / "home" / "marvin" / "profiles" / "main" / "tokens.json").exists()


def test_a_login_over_a_damaged_file_keeps_it_aside(tmp_path: Path, chatgpt: ChatGPT) -> None:
    _, folder = configured(tmp_path, chatgpt)
    folder.mkdir(parents=True)
    (folder / "tokens.json").write_text('{"codex": ')
    assert refused(chatgpt, folder).args[0] == f"codex needs a login. {log_in()}"
    logged_in(tmp_path, chatgpt, Person())
    assert kept(folder).read() is not None
    assert [path.read_text() for path in folder.glob("tokens.json.damaged-*")] == ['{"codex": ']


def test_another_provider_has_no_login(tmp_path: Path, chatgpt: ChatGPT) -> None:
    config, _ = configured(tmp_path, chatgpt)
    with pytest.raises(UsageError, match="openai has no login; only codex"):
        login("openai", config, print)
    assert PORTS[0] == 1455, "the address that OpenAI lets a login lead back to"


# Requests


def test_without_a_login_nothing_is_sent(tmp_path: Path, chatgpt: ChatGPT) -> None:
    for folder in (tmp_path, None):
        found = refused(chatgpt, folder)
        assert isinstance(found, AuthFailed)
        assert "marvin login codex" in str(found)
    assert chatgpt.requests == []


def test_what_the_service_does_not_take_is_left_out(tmp_path: Path, chatgpt: ChatGPT) -> None:
    kept(tmp_path).save(chatgpt.tokens())

    async def go() -> None:
        async with aclosing(codex(chatgpt, tmp_path)) as provider:
            await answer_of(provider, request(user("Hello"), max_output_tokens=99, thinking="high"))

    asyncio.run(go())
    (asked,) = chatgpt.asked("/codex/responses")
    assert asked.body == {
        "model": "gpt-5.3-codex",
        "stream": True,
        "store": False,
        "instructions": "Be brief.",
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "high", "summary": "auto"},
        "prompt_cache_key": asked.body["prompt_cache_key"],
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]}],
    }


def test_headers_of_the_configuration_come_before_our_own(tmp_path: Path, chatgpt: ChatGPT) -> None:
    kept(tmp_path).save(chatgpt.tokens())
    answered(chatgpt, tmp_path, headers={"originator": "another"})
    assert chatgpt.requests[0].headers["originator"] == "another"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (
            error(429, {"error": {"type": "usage_limit_reached", "message": "The usage limit has been reached"}}),
            QuotaExhausted,
        ),
        (
            error(400, {"detail": "The 'gpt-4' model is not supported when using Codex with a ChatGPT account."}),
            ModelNotFound,
        ),
        (error(503), Overloaded),
    ],
)
def test_failures_of_the_service(answer: Answer, kind: type[ProviderError], tmp_path: Path, chatgpt: ChatGPT) -> None:
    kept(tmp_path).save(chatgpt.tokens())
    chatgpt.on_model = [answer]
    assert type(refused(chatgpt, tmp_path)) is kind
    assert not chatgpt.asked("/oauth/token")


# The renewal


def test_a_token_is_renewed_before_it_ends(tmp_path: Path, chatgpt: ChatGPT) -> None:
    old = chatgpt.tokens(expires=time.time() + 5)
    kept(tmp_path).save(old)
    assert answered(chatgpt, tmp_path, "one", "two") == ["Hi", "Hi"]
    (renewal,) = chatgpt.asked("/oauth/token")
    assert parse_qs(renewal.content.decode())["grant_type"] == ["refresh_token"]
    new = kept(tmp_path).read()
    assert new is not None
    assert new.access.reveal() != old.access.reveal()
    assert new.refresh.reveal() != old.refresh.reveal(), "the old one is spent"
    assert (new.account, new.auth_url) == (ACCOUNT, chatgpt.url)
    assert stat.S_IMODE((tmp_path / "tokens.json").stat().st_mode) == 0o600
    assert answered(chatgpt, tmp_path) == ["Hi"]
    assert len(chatgpt.asked("/oauth/token")) == 1


def test_tools_can_show_neither_the_tokens_of_a_login_nor_those_that_renew_it(tmp_path: Path, chatgpt: ChatGPT) -> None:
    """I24: the values that are redacted from every output are those in use."""
    kept(tmp_path).save(chatgpt.tokens(expires=time.time() + 5))
    _, secrets = settled(tmp_path)
    answered(chatgpt, tmp_path, learn=secrets.learn)
    new = kept(tmp_path).read()
    assert new is not None
    assert {new.access.reveal(), new.refresh.reveal()} <= set(secrets.known())


def test_what_a_renewal_leaves_out_stays(tmp_path: Path, chatgpt: ChatGPT) -> None:
    """The service need not give another refresh token, nor say again whose account it is."""
    old = chatgpt.tokens(expires=1)
    kept(tmp_path).save(old)
    chatgpt.on_token = [document({"access_token": chatgpt.tokens().access.reveal()})]
    assert answered(chatgpt, tmp_path) == ["Hi"]
    new = kept(tmp_path).read()
    assert new is not None
    assert (new.refresh.reveal(), new.account) == (old.refresh.reveal(), ACCOUNT)
    assert new.expires > time.time() + 3000, "as the token itself says"


def test_a_token_that_is_refused_is_renewed_once(tmp_path: Path, chatgpt: ChatGPT) -> None:
    kept(tmp_path).save(chatgpt.tokens())
    chatgpt.forget_access()
    assert answered(chatgpt, tmp_path, "one", "two") == ["Hi", "Hi"]
    assert len(chatgpt.asked("/codex/responses")) == 3
    assert len(chatgpt.asked("/oauth/token")) == 1


@pytest.mark.parametrize("status", [401, 403])
def test_a_login_that_the_model_service_keeps_refusing(status: int, tmp_path: Path, chatgpt: ChatGPT) -> None:
    """I24: the answer may repeat the token."""
    kept(tmp_path).save(chatgpt.tokens())
    repeated = [error(status, f"no access with {chatgpt.tokens().access.reveal()}")] * 3
    chatgpt.on_model = list(repeated)
    found = refused(chatgpt, tmp_path)
    assert isinstance(found, AuthFailed)
    assert f"codex did not accept the login ({status}): no access" in str(found)
    assert log_in() in str(found)
    assert len(chatgpt.asked("/oauth/token")) == (1 if status == 401 else 0)


def test_no_error_shows_a_token(tmp_path: Path, chatgpt: ChatGPT) -> None:
    """I24: not even where a service sends it back."""
    tokens = chatgpt.tokens()
    kept(tmp_path).save(tokens)
    chatgpt.on_model = [error(400, f"bad {tokens.access.reveal()}")]
    assert tokens.access.reveal() not in str(refused(chatgpt, tmp_path))
    kept(tmp_path).save(tokens.replace(expires=1.0))
    for status in (400, 500):
        chatgpt.on_token = [error(status, f"bad {tokens.refresh.reveal()}")]
        found: BaseException | None = refused(chatgpt, tmp_path)
        while found is not None:
            assert tokens.refresh.reveal() not in f"{found!s} {found!r}"
            found = found.__cause__ or found.__context__


def test_a_renewal_that_is_refused_asks_for_a_login(tmp_path: Path, chatgpt: ChatGPT) -> None:
    """The tokens stay: they may be good for another program, or once the service is well again."""
    kept(tmp_path).save(chatgpt.tokens(expires=1).replace(refresh=Secret("spent-elsewhere")))
    before = (tmp_path / "tokens.json").read_bytes()
    found = refused(chatgpt, tmp_path)
    assert isinstance(found, AuthFailed)
    assert "Your refresh token has already been used. Run `marvin login codex`." in str(found)
    assert (tmp_path / "tokens.json").read_bytes() == before
    assert not chatgpt.asked("/codex/responses")


def test_a_login_service_that_fails_or_is_away(tmp_path: Path, chatgpt: ChatGPT) -> None:
    """No reason to log in again, so nobody is told to; the renewal is tried again with the next request."""
    kept(tmp_path).save(chatgpt.tokens(expires=1))
    chatgpt.on_token = [error(503, "be right back")]
    assert type(refused(chatgpt, tmp_path)) is Overloaded
    assert answered(chatgpt, tmp_path) == ["Hi"]
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        nowhere = f"http://127.0.0.1:{free.getsockname()[1]}"
    kept(tmp_path).save(chatgpt.tokens(expires=1).replace(auth_url=nowhere))
    found = refused(chatgpt, tmp_path)
    assert type(found) is Unreachable
    assert "login codex" not in str(found)


def test_requests_that_come_together_share_one_renewal(tmp_path: Path, chatgpt: ChatGPT) -> None:
    kept(tmp_path).save(chatgpt.tokens(expires=1))
    chatgpt.slow = 0.1

    async def go() -> list[str]:
        async with aclosing(codex(chatgpt, tmp_path)) as one, aclosing(codex(chatgpt, tmp_path)) as other:
            answers = await asyncio.gather(*(answer_of(provider) for provider in (one, one, other, other)))
            return [text_of(answer) for answer in answers]

    assert asyncio.run(go()) == ["Hi"] * 4
    assert len(chatgpt.asked("/oauth/token")) == 1


PROCESS = """
import asyncio, sys
from pathlib import Path
from marvin_core.http.client import HttpSettings, make_client
from marvin_core.api.messages import user
from marvin_core.api.providers import Endpoint, Request, Secret, TextDelta
from marvin_core.providers.codex.provider import create

async def main():
    endpoint = Endpoint(provider="codex", base_url=sys.argv[1], model="gpt-5.3-codex", key=Secret(""), key_hint="",
                        profile_folder=Path(sys.argv[2]))
    provider = create(endpoint, lambda: make_client(HttpSettings(), timeout_read=50.0, tls=None))
    sys.stdin.readline()
    async for delta in provider.stream(Request(system="s", messages=(user("Hello"),))):
        if isinstance(delta, TextDelta):
            print(delta.text)
    await provider.aclose()

asyncio.run(main())
"""


@pytest.mark.slow
def test_two_processes_do_not_spend_one_refresh_token_twice(tmp_path: Path, chatgpt: ChatGPT) -> None:
    """The second would be refused, and the service may end the login for both."""
    kept(tmp_path).save(chatgpt.tokens(expires=1))
    chatgpt.slow = 0.3
    command = [sys.executable, "-c", PROCESS, f"{chatgpt.url}/codex", str(tmp_path)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    running = [subprocess.Popen(command, text=True, **pipes) for _ in range(2)]
    for process in running:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    results = [process.communicate(timeout=150) for process in running]
    assert results == [("Hi\n", ""), ("Hi\n", "")]
    assert len(chatgpt.asked("/oauth/token")) == 1


def test_a_renewal_is_finished_though_nobody_waits_for_it_any_more(tmp_path: Path, chatgpt: ChatGPT) -> None:
    """Ctrl+C in the middle must not lose the new refresh token: the old one is spent already."""
    old = chatgpt.tokens(expires=1)
    kept(tmp_path).save(old)
    chatgpt.slow = given_up = threading.Event()

    async def go() -> None:
        async with aclosing(codex(chatgpt, tmp_path)) as provider:
            task = asyncio.create_task(answer_of(provider))
            await asyncio.to_thread(chatgpt.wait_for, 1)
            task.cancel()
            given_up.set()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(go())
    new = kept(tmp_path).read()
    assert new is not None
    assert new.refresh.reveal() != old.refresh.reveal()
    assert answered(chatgpt, tmp_path) == ["Hi"]


def test_another_process_that_hangs_in_a_renewal_does_not_hang_us(tmp_path: Path, chatgpt: ChatGPT) -> None:
    kept(tmp_path).save(chatgpt.tokens(expires=1))

    async def go() -> ProviderError:
        async with kept(tmp_path).renewing():
            provider = codex(chatgpt, tmp_path, timeouts=TIMEOUTS.replace(http=0.1))
            async with aclosing(provider):
                with pytest.raises(Unreachable) as raised:
                    await answer_of(provider)
                return raised.value

    assert "another process is renewing the login and does not finish" in str(asyncio.run(go()))


def test_the_factory_reads_the_login_when_it_is_asked(tmp_path: Path, chatgpt: ChatGPT) -> None:
    """So that a chat that was begun before the login can go on with it."""

    async def go() -> str:
        settings = HttpSettings(timeouts=TIMEOUTS)
        given = codex(chatgpt, tmp_path)._endpoint
        provider = create(given, lambda: make_client(settings, timeout_read=50.0, tls=None))
        with pytest.raises(AuthFailed):
            await answer_of(provider)
        kept(tmp_path).save(chatgpt.tokens())
        try:
            return text_of(await answer_of(provider, Request(system="s", messages=(user("Hello"),))))
        finally:
            await provider.aclose()

    assert asyncio.run(go()) == "Hi"
