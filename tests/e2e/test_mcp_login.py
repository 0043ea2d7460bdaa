"""Servers behind a login: the browser comes back, the tokens are kept and renewed, and nobody gets to see them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.e2e.support_e2e import Marvin, wait_until
from tests.support.mcp_http import free_port, listens

pytestmark = pytest.mark.slow

SERVER = Path(__file__).parents[1] / "support" / "oauth_server.py"
BROWSER = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1]).read()"


class Behind:
    """The server behind a login. `asked` is what its login service was asked for."""

    def __init__(self, port: int, notes: Path) -> None:
        self.url = f"http://127.0.0.1:{port}/mcp"
        self._notes = notes

    @property
    def asked(self) -> list[str]:
        """The words that it wrote down."""
        return self._notes.read_text().split() if self._notes.exists() else []


@contextmanager
def behind_a_login(folder: Path, lifetime: int = 3_600) -> Iterator[Behind]:
    """Run the server."""
    port, notes = free_port(), folder / "notes"
    words = [sys.executable, "-P", str(SERVER), str(port), str(lifetime), str(notes)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        wait_until(lambda: listens(port), "the server behind a login")
        yield Behind(port, notes)
    finally:
        process.kill()
        process.wait()


def set_up(marvin: Marvin, behind: Behind, folder: Path) -> Path:
    """Have Marvin know the server, and a browser in which one is logged in at once; the file with the tokens."""
    browser = folder / "browser.py"
    browser.write_text(BROWSER)
    marvin.env["BROWSER"] = f"{sys.executable} -S {browser} %s"
    marvin.config(json.dumps({"mcp_servers": {"b": {"url": behind.url}}, "sandbox": "off"}))
    return marvin.config_folder / "mcp-logins.json"


def test_a_login_is_made_kept_used_and_forgotten(marvin: Marvin, tmp_path: Path) -> None:
    with behind_a_login(tmp_path) as behind:
        kept = set_up(marvin, behind, tmp_path)
        first = marvin.run("mcp", "test", "b")
        assert first.code != 0
        assert "mcp login b" in first.said
        assert behind.asked == [], "nobody is registered before somebody wants to log in"

        logged_in = marvin.run("mcp", "login", "b")
        assert logged_in.code == 0, logged_in.said
        assert "You are logged in to b" in logged_in.text
        assert "b__add  Add two numbers." in logged_in.text
        assert behind.asked == ["register", "authorize", "exchange"]
        assert kept.stat().st_mode & 0o777 == 0o600

        assert marvin.run("tools", "call", "b__add", "a=2", "b=40").text == "42\n"
        again = marvin.run("mcp", "login", "b")
        assert again.code == 0, again.said
        assert behind.asked[3:] == ["authorize", "exchange"], "one registration is enough"

        token = json.loads(kept.read_text())["b"]["tokens"]["access_token"]
        (marvin.project / "leak.txt").write_text(f"it is {token}\n")
        shown = marvin.run("tools", "call", "read_file", "path=leak.txt")
        assert token not in shown.text + shown.said

        assert "was removed" in marvin.run("mcp", "logout", "b").text
        assert token not in kept.read_text()
        assert "mcp login b" in marvin.run("tools", "call", "b__add", "a=1", "b=1").text


def test_what_has_ended_or_was_taken_back_is_renewed(marvin: Marvin, tmp_path: Path) -> None:
    with behind_a_login(tmp_path, lifetime=62) as behind:  # renewed a minute before its end
        set_up(marvin, behind, tmp_path)
        assert marvin.run("mcp", "login", "b").code == 0
        time.sleep(2.5)
        assert marvin.run("tools", "call", "b__add", "a=1", "b=1").text == "2\n"
        assert behind.asked.count("refresh") == 1
        assert marvin.run("tools", "call", "b__revoke").text == "revoked\n"
        assert marvin.run("tools", "call", "b__add", "a=1", "b=2").text == "3\n"
        assert behind.asked.count("refresh") >= 2
        assert behind.asked.count("authorize") == 1


def test_of_two_that_renew_at_once_one_does(marvin: Marvin, tmp_path: Path) -> None:
    with behind_a_login(tmp_path, lifetime=62) as behind:
        kept = set_up(marvin, behind, tmp_path)
        assert marvin.run("mcp", "login", "b").code == 0
        time.sleep(2.5)
        two = [marvin.start("tools", "call", "b__add", "a=1", f"b={number}") for number in (1, 2)]
        texts = [one.finish().text for one in two]
        assert texts == ["2\n", "3\n"]
        assert json.loads(kept.read_text())["b"]["tokens"]["access_token"]


def test_a_browser_on_another_machine_is_no_obstacle(marvin: Marvin, tmp_path: Path) -> None:
    with behind_a_login(tmp_path) as behind:
        set_up(marvin, behind, tmp_path)
        del marvin.env["BROWSER"]
        running = marvin.start("mcp", "login", "b")
        running.until(lambda: b"/authorize?" in running.out, "the address")
        (address,) = re.findall(r"http://\S+/authorize\?\S+", running.out.decode())
        back = address.partition("redirect_uri=")[2].partition("&")[0].replace("%3A", ":").replace("%2F", "/")
        with pytest.raises(OSError, match="400"):
            urlopen(f"{back}?code=stolen&state=guessed", timeout=10)
        with urlopen(address, timeout=10) as page:
            assert b"You can close this page" in page.read()
        assert running.finish().code == 0
