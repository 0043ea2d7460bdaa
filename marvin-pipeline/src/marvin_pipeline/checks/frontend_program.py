"""A program that serves a project, loads its pages with their assets, and stops the server. It runs no scripts.

It runs in the sandbox, next to the server. It takes an order as JSON in its one argument and prints JSON:
`problems`, the numbers of `pages` and `assets` that it checked, and the end of the server's output.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import suppress
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit

_PAGES, _ASSETS = 20, 60
_BYTES = 3_000_000
_LOG = 6_000
_FAULTS = ("Traceback (most recent call last)", "Internal Server Error", "Cannot GET /")
"""Texts of error pages of common servers."""


class Page(HTMLParser):
    """The links of a page, and its assets."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.assets: list[str] = []
        self.ids: set[str] = set()
        self.doubled: list[str] = []
        self.title = ""
        self.unlabelled = 0
        self.text = 0
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record an element's asset or link."""
        values = {name: value or "" for name, value in attrs}
        self._inside = tag
        if (name := values.get("id")) and name in self.ids:
            self.doubled.append(name)
        elif name:
            self.ids.add(name)
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        elif tag in ("script", "img", "source", "video", "audio") and values.get("src"):
            self.assets.append(values["src"])
        elif tag == "link" and values.get("href") and values.get("rel", "").lower() in ("stylesheet", "modulepreload"):
            self.assets.append(values["href"])
        if tag == "img" and "alt" not in values:
            self.unlabelled += 1

    def handle_data(self, data: str) -> None:
        """Record the title, and the length of the text."""
        if self._inside == "title":
            self.title += data.strip()
        elif self._inside not in ("script", "style"):
            self.text += len(data.strip())


class Probe:
    """Checks the pages of one server."""

    def __init__(self, base: str, timeout: float) -> None:
        self._base = base
        self._timeout = timeout
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self.problems: list[str] = []
        self.pages = 0
        self.assets = 0
        self._seen: set[str] = set()

    def answers(self) -> bool:
        """Whether the server answers at all, with any status."""
        try:
            self._get(self._base)
        except urllib.error.HTTPError:
            return True
        except (OSError, ValueError):
            return False
        return True

    def look(self) -> None:
        """Check the first page, its assets, and the pages that it links to."""
        waiting = [self._base]
        while waiting and self.pages < _PAGES:
            address = waiting.pop(0)
            if address in self._seen:
                continue
            self._seen.add(address)
            waiting += self._page(address)

    def _page(self, address: str) -> list[str]:
        self.pages += 1
        found = self._loaded(address)
        if found is None:
            return []
        kind, body = found
        if "html" not in kind:
            if address == self._base:
                self.problems.append(f"/ is not a page but {kind or 'of no type'}")
            return []
        text = body.decode("utf-8", "replace")
        page, name = Page(), urlsplit(address).path or "/"
        page.feed(text)
        for fault in _FAULTS:
            if fault in text:
                self.problems.append(f"{name} shows an error: {fault}")
        if not page.title:
            self.problems.append(f"{name} has no title")
        if not page.text and not page.assets:
            self.problems.append(f"{name} is empty: it has no text, and loads nothing")
        if page.doubled:
            self.problems.append(f"{name} uses the id {page.doubled[0]!r} more than once")
        if page.unlabelled:
            self.problems.append(f"{name} has {page.unlabelled} images without alt text")
        for asset in page.assets:
            self._asset(urljoin(address, asset))
        return [link for one in page.links if (link := self._own(urljoin(address, one)))]

    def _asset(self, address: str) -> None:
        own = self._own(address)
        if own and own not in self._seen and self.assets < _ASSETS:
            self._seen.add(own)
            self.assets += 1
            found = self._loaded(own)
            if found is not None and "html" in found[0] and not own.endswith((".html", ".htm")):
                self.problems.append(f"{urlsplit(own).path} is a page, but a script, style or image was expected")

    def _own(self, address: str) -> str:
        """The URL without its fragment, if it is of this server; else nothing."""
        plain = urldefrag(address)[0]
        return plain if plain.startswith(self._base) else ""

    def _loaded(self, address: str) -> tuple[str, bytes] | None:
        path = urlsplit(address).path or "/"
        try:
            return self._get(address)
        except urllib.error.HTTPError as error:
            self.problems.append(f"{path} returned status {error.code}")
        except (OSError, ValueError) as error:
            self.problems.append(f"{path} cannot be loaded: {error}")
        return None

    def _get(self, address: str) -> tuple[str, bytes]:
        request = urllib.request.Request(address, headers={"Accept": "text/html,*/*"})
        with self._opener.open(request, timeout=self._timeout) as answer:
            return answer.headers.get("Content-Type", ""), answer.read(_BYTES)


def main(order: dict[str, Any]) -> dict[str, Any]:
    """Serve, check, and stop the server.

    Args:
        order: `argv`, `folder` and `environment` of the command, with `{port}` for the port; `start`, `request`
            and `poll` in seconds.
    """
    port = _free_port()

    def filled(text: str) -> str:
        return text.replace("{port}", str(port))

    variables = [f"{name}={filled(value)}" for name, value in order["environment"]]
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(
            ["env", *variables, *(filled(word) for word in order["argv"])],
            cwd=order["folder"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        probe = Probe(f"http://127.0.0.1:{port}/", order["request"])
        try:
            if _is_up(probe, server, order["start"], order["poll"]):
                probe.look()
            elif (code := server.poll()) is not None:
                probe.problems.append(f"the server ended with exit code {code} before it answered")
            else:
                probe.problems.append(f"the server did not answer on port {port} within {order['start']:g} s")
        finally:
            with suppress(OSError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()
        log.seek(max(0, log.seek(0, os.SEEK_END) - _LOG))
        printed = log.read().decode("utf-8", "replace").replace(str(port), "PORT")
    problems = [problem.replace(str(port), "PORT") for problem in probe.problems]
    return {"problems": problems, "pages": probe.pages, "assets": probe.assets, "log": printed}


def _is_up(probe: Probe, server: subprocess.Popen[bytes], limit: float, poll: float) -> bool:
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline and server.poll() is None:
        if probe.answers():
            return True
        time.sleep(poll)
    return False


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(json.loads(sys.argv[1]))))
