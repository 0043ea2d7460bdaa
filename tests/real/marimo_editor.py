"""marimo, a notebook editor with a panel for agents, in a browser without a window."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.run import node
from tests.e2e.support_e2e import PROGRAM, Marvin, wait_until
from tests.real.components import PYTHON, REAL, free_port, required, serving

MARIMO = REAL / "marimo"
BRIDGE = REAL / "npm" / "node_modules" / ".bin" / "stdio-to-ws"
_PORT = 3023
"""The port at which the panel expects an agent of a kind; it connects to Marvin instead."""
_KIND = "OpenCode"
_NOTEBOOK = "import marimo\n\napp = marimo.App()\n\n\n@app.cell\ndef _():\n    return\n"
_BUSY = ("Agent is working", "Waiting for permission", "Processing...")
_LIMIT = 60.0


class Page:
    """The page of a notebook, in whose panel a person talks to an agent."""

    def __init__(self, driver: Any, address: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        self._driver = driver
        self._act: Callable[[], Any] = lambda: ActionChains(driver)
        driver.get(address)
        self.until_shown(".cm-content")

    @property
    def text(self) -> str:
        """All that it shows."""
        return str(self._driver.execute_script("return document.body.innerText"))

    def until(self, words: str) -> None:
        """Wait until it shows these words."""
        wait_until(lambda: words in self.text, f"{words!r} in {self.text}", _LIMIT)

    def until_shown(self, selector: str, words: str = "") -> Any:
        """Wait for an element with these words; returns it."""
        found: list[Any] = []

        def look() -> None:
            elements = self._driver.find_elements("css selector", selector)
            found[:] = [one for one in elements if one.is_displayed() and words in one.text]

        wait_until(lambda: self._is_done(look) and bool(found), f"{words!r} among {selector}", _LIMIT)
        return found[0]

    def _is_done(self, act: Callable[[], None]) -> bool:
        """Do something with elements; false if the page drew them again meanwhile."""
        from selenium.common.exceptions import StaleElementReferenceException

        try:
            act()
        except StaleElementReferenceException:
            return False
        return True

    def _until_clicked(self, element: Callable[[], Any]) -> None:
        wait_until(lambda: self._is_done(lambda: self._act().click(element()).perform()), "the click", _LIMIT)

    def click(self, selector: str, words: str = "") -> None:
        """Click on an element."""
        self._until_clicked(lambda: self.until_shown(selector, words))

    def connect(self) -> None:
        """Open the panel, and begin a session."""
        self._until_clicked(lambda: self.until_shown("svg.lucide-bot").find_element("xpath", ".."))
        self.click("[role=tab]", "AGENTS")
        self.click("button", "New session")
        self.click("[role=menuitem]", _KIND)
        self.until("You can start chatting with your agent now")

    def say(self, words: str) -> None:
        """Send a prompt, after the one before has ended."""
        from selenium.webdriver.common.keys import Keys

        wait_until(lambda: not any(words in self.text for words in _BUSY), "the end of the prompt", _LIMIT)

        def box() -> Any:
            return min(self._driver.find_elements("css selector", ".cm-content"), key=lambda one: one.location["x"])

        self._until_clicked(box)
        self._act().send_keys(words).pause(0.3).send_keys(Keys.ENTER).perform()

    def reload(self) -> None:
        """Load the page again; the panel loads its session again."""
        self._driver.refresh()
        self.until_shown(".cm-content")


def _started(command: Sequence[str | Path], env: dict[str, str], folder: Path, log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as out:
        return subprocess.Popen(command, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out)


@contextmanager
def notebook(marvin: Marvin, logs: Path) -> Iterator[Page]:
    """A notebook in the project of a Marvin, whose panel can reach that Marvin."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    required(MARIMO, BRIDGE)
    if chromium is None or driver is None:
        pytest.skip("chromium and chromedriver are not installed")
    from selenium import webdriver

    settings = marvin.home / ".config" / "marimo" / "marimo.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text("[experimental]\nexternal_agents = true\n")
    (marvin.project / "trial.py").write_text(_NOTEBOOK)
    agent: list[str | Path] = [node(), BRIDGE.resolve(), shlex.join([*PROGRAM, "acp"]), "--port", str(_PORT)]
    bridge = _started(agent, marvin.env, marvin.project, logs / "bridge")
    address = f"http://127.0.0.1:{(port := free_port())}"
    words = ["-m", "marimo", "edit", "--headless", "--no-token", "--skip-update-check", "--port", str(port)]
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1500,1000"):
        options.add_argument(flag)
    env = {**marvin.env, "PYTHONPATH": str(MARIMO), "NO_PROXY": "127.0.0.1"}
    try:
        with serving((PYTHON, *words, marvin.project / "trial.py"), logs / "marimo", f"{address}/health", env=env):
            browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
            try:
                yield Page(browser, address)
            finally:
                browser.quit()
    finally:
        bridge.terminate()
        bridge.wait()
