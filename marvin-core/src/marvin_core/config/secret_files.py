"""Secrets outside of variables: in files of other programs, and in headers and addresses of the configuration."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from ..api.config import McpServer

Reader: TypeAlias = Callable[[str], Iterable[str]]
"""Returns the secrets in the text of a file."""

_LARGEST = 1_000_000
"""The maximum number of bytes that are read from a file."""
# gh writes YAML, editors with GitHub Copilot and logins write JSON: `oauth_token: gho_...`, `"access_token": "..."`.
_ANY_LOGIN = r"""\b(?:oauth|access|refresh|id)_token"?\s*:\s*["']?([^\s"',}]+)"""
_BEHIND_NAME = r"://[^/?#\s@:]*:([^/?#\s@]+)@"
_QUERY_KEY = r"(?i)[?&][^=&#]*(?:key|token|secret|password|sig)[^=&#]*=([^&#\s]+)"
_PUBLIC_HEADERS = frozenset(
    "accept accept-encoding accept-language anthropic-beta anthropic-version cache-control content-type http-referer"
    " openai-beta origin referer user-agent x-title".split()
)
"""Headers without credentials."""
_TELLING = ("key", "token", "secret", "passw", "credential", "auth", "bearer")
"""Parts of the names of secrets."""


class WatchedFile:
    """A file with secrets, which is read again after a change. Its earlier secrets stay secret.

    `path` is a string, since it is checked many times per round, and checks of a `Path` take twice as long.
    """

    def __init__(self, path: Path, read: Reader) -> None:
        self.path = str(path)
        self._read = read
        self._seen: tuple[int, int, int] | None = None

    def changed(self) -> Iterable[str]:
        """The secrets in the file if it has changed, else none."""
        try:
            status = os.stat(self.path)
            seen = (status.st_mtime_ns, status.st_size, status.st_ino)
            if seen == self._seen:
                return ()
            self._seen = seen
            with open(self.path, "rb") as file:
                return self._read(file.read(_LARGEST).decode("utf-8", "replace"))
        except (OSError, ValueError):
            return ()


def whole(text: str) -> Iterable[str]:
    """The whole content of a file as one secret."""
    return (text.strip(),)


def tokens(text: str) -> Iterable[str]:
    """The tokens in stored logins, and in the files of GitHub's programs."""
    return re.findall(_ANY_LOGIN, text)


def github_files(env: Mapping[str, str], home: Path) -> Iterator[Path]:
    """The files in which GitHub's programs store tokens without a keyring (see `gh help environment`)."""
    own = Path(env.get("XDG_CONFIG_HOME") or home / ".config")
    yield Path(env.get("GH_CONFIG_DIR") or own / "gh") / "hosts.yml"
    yield own / "github-copilot" / "hosts.json"
    yield own / "github-copilot" / "apps.json"


def secrets_of_headers(headers: Mapping[str, str]) -> Iterator[str]:
    """The secrets in request headers: the values, and the parts after an authentication scheme or a cookie's name."""
    for name, value in headers.items():
        if name.lower() in _PUBLIC_HEADERS:
            continue
        yield value.strip()
        scheme, _, credentials = value.strip().partition(" ")
        if credentials:
            yield credentials.strip()
        if scheme.lower() == "basic":
            yield from _basic(credentials)
        if name.lower() == "cookie":
            yield from (pair.partition("=")[2].strip() for pair in value.split(";"))


def _basic(credentials: str) -> Iterator[str]:
    from base64 import b64decode

    try:
        text = b64decode(credentials).decode()
    except ValueError:
        return
    yield text
    yield text.partition(":")[2]


def secrets_of_address(url: str) -> Iterator[str]:
    """The password in an address, and keys in its query."""
    from urllib.parse import unquote

    for value in (*re.findall(_BEHIND_NAME, url), *re.findall(_QUERY_KEY, url)):
        yield value
        yield unquote(value)


def secrets_of_server(server: McpServer) -> Iterator[str]:
    """The secrets in a server's configuration: headers, passwords in its address, and values with telling names."""
    yield from secrets_of_headers(server.headers)
    if server.url:
        yield from secrets_of_address(server.url)
    yield server.client_secret
    yield from (value for name, value in server.env.items() if _is_telling(name))
    for option, value in zip(("", *server.args), server.args, strict=False):
        name, equals, assigned = value.partition("=")
        if option.startswith("-") and "=" not in option and _is_telling(option):
            yield value
        elif equals and _is_telling(name):
            yield assigned


def _is_telling(name: str) -> bool:
    """Whether a value of this name is a secret. Most names are examined without a regular expression."""
    name = name.lower()
    if any(part in name for part in _TELLING):
        return True
    return "pat" in name and re.search(r"\bpat\b|_pat$", name) is not None
