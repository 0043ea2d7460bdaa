"""Renders a page in a headless browser, in a process of its own: `python -m marvin_tools_web.pages.browser`.

The request has `url`, the `kind` of the browser (firefox or chromium), the paths of the browser and its driver as
`program` and `driver`, `scripts` (seconds until the page has to be stable), and `settle` and `poll` (seconds). The
answer has `url`, `title`, `markup` and the HTTP `status`, "0" where unknown; or `error`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies_environment

from ..child_process import serve
from .browser_folder import own_folder

if TYPE_CHECKING:
    from selenium.webdriver.remote.webdriver import WebDriver

_MARKUP = 8_000_000
"""Characters of a page at most."""
_SAID = 300
_SANDBOXED = Path("/proc/self/status")
_FLAGS = (
    *("--headless=new", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage", "--disable-extensions"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-crash-reporter"),
    *("--disable-default-apps", "--disable-domain-reliability", "--dns-prefetch-disable", "--mute-audio"),
    *("--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "--window-size=1280,2000", "--lang=en-US"),
    "--blink-settings=imagesEnabled=false",
    # Switches off the browser's own requests to its vendor: only hosts of the page may be contacted.
    *("--disable-component-extensions-with-background-pages", "--disable-search-engine-choice-screen"),
    *("--component-updater=url-source=about:blank", "--simulate-outdated-no-au=Tue, 31 Dec 2099 23:59:59 GMT"),
    *("--gaia-url=http://127.0.0.1:9", "--allow-browser-signin=false", "--check-for-update-interval=999999999"),
    "--disable-features=NetworkTimeServiceQuerying,OptimizationHints,MediaRouter",
)
_PREFERENCES = {
    "download_restrictions": 3,
    "homepage": "about:blank",
    "homepage_is_newtabpage": False,
    "session.restore_on_startup": 4,
    "session.startup_urls": ["about:blank"],
    "default_search_provider.enabled": False,
}
_FIREFOX = {
    "media.peerconnection.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "network.dns.disablePrefetch": True,
    "network.prefetch-next": False,
    "permissions.default.image": 2,
    "browser.startup.page": 0,
    "browser.startup.homepage": "about:blank",
    "app.normandy.enabled": False,
    "app.update.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.search.update": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.update.enabled": False,
    "services.settings.server": "data:,#remote-settings-dummy/v1",
    "browser.download.folderList": 2,
    "browser.helperApps.deleteTempFileOnExit": True,
    "intl.accept_languages": "en-US,en",
}
# The HTML without the contents of shadow trees. The length of its text shows when the page is stable.
_SIZE = "return document.body ? document.body.innerText.length : 0"
_STATUS = "const at = performance.getEntriesByType('navigation')[0]; return at ? at.responseStatus || 0 : 0"
_WHOLE = "return document.documentElement ? document.documentElement.outerHTML : ''"


def show(asked: Mapping[str, Any], body: bytes) -> dict[str, str]:
    """The page after its scripts have run."""
    from selenium.common.exceptions import TimeoutException, WebDriverException

    try:
        with own_folder() as folder:
            driver = _started(asked, folder)
            try:
                driver.set_page_load_timeout(asked["scripts"])
                try:
                    driver.get(asked["url"])
                except TimeoutException:
                    pass  # the current state may be enough
                _settled(driver, asked)
                markup = str(driver.execute_script(_WHOLE))[:_MARKUP]
                status = str(driver.execute_script(_STATUS))
                return {"url": driver.current_url, "title": driver.title, "markup": markup, "status": status}
            finally:
                driver.quit()
    except WebDriverException as error:
        return {"error": " ".join((error.msg or type(error).__name__).split())[:_SAID]}
    except OSError as error:
        return {"error": str(error)[:_SAID]}


def _settled(driver: WebDriver, asked: Mapping[str, Any]) -> None:
    """Wait until the text of the page stops changing, as scripts may run after it is loaded."""
    end = time.monotonic() + asked["settle"]
    before = -1
    while time.monotonic() < end:
        size = int(driver.execute_script(_SIZE) or 0)
        if size == before and size:
            return
        before = size
        time.sleep(asked["poll"])


def _started(asked: Mapping[str, Any], folder: Path) -> WebDriver:
    proxy = urlsplit(getproxies_environment().get("https", ""))
    if asked["kind"] == "firefox":
        return _firefox(asked, folder, proxy.hostname or "", proxy.port or 0)
    return _chromium(asked, folder, proxy.netloc)


def _chromium(asked: Mapping[str, Any], folder: Path, proxy: str) -> WebDriver:
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = asked["program"]
    for flag in (*_FLAGS, f"--user-data-dir={folder}/profile", *(["--no-sandbox"] if _has_outer_sandbox() else [])):
        options.add_argument(flag)
    if proxy:
        # The last one sends loopback addresses through the proxy as well, which refuses them.
        options.add_argument(f"--proxy-server=http://{proxy}")
        options.add_argument("--proxy-bypass-list=<-loopback>")
    options.add_experimental_option("prefs", _PREFERENCES)
    return Chrome(options=options, service=Service(asked["driver"]))


def _firefox(asked: Mapping[str, Any], folder: Path, host: str, port: int) -> WebDriver:
    from selenium.webdriver import Firefox, FirefoxOptions
    from selenium.webdriver.firefox.service import Service

    options = FirefoxOptions()
    options.binary_location = asked["program"]
    options.add_argument("-headless")
    preferences: dict[str, Any] = {**_FIREFOX, "browser.download.dir": str(folder)}
    if host:
        preferences |= {
            "network.proxy.type": 1,
            "network.proxy.http": host,
            "network.proxy.http_port": port,
            "network.proxy.ssl": host,
            "network.proxy.ssl_port": port,
            "network.proxy.no_proxies_on": "",
            "network.proxy.allow_hijacking_localhost": True,
        }
    for name, value in preferences.items():
        options.set_preference(name, value)
    service = Service(
        asked["driver"],
        service_args=["--profile-root", str(folder)],
        log_output=f"{folder}/log",
        env=_surroundings_of_firefox(folder),
    )
    return Firefox(options=options, service=service)


def _surroundings_of_firefox(folder: Path) -> Mapping[str, str]:
    """The environment of Firefox, which hangs if it cannot create folders in the home folder.

    In Marvin's sandbox it can create namespaces but not use them, and starts one process after the other.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    return {**kept, "HOME": str(folder), **({"MOZ_ASSUME_USER_NS": "0"} if _status("NoNewPrivs") == "1" else {})}


def _has_outer_sandbox() -> bool:
    """Whether the browser cannot have its own sandbox: as root, and inside Marvin's, which allows no nested one."""
    return _status("NoNewPrivs") == "1" or _status("Uid").split()[1:2] == ["0"]


def _status(name: str) -> str:
    """A line of this process's status file; empty if the system has none."""
    try:
        lines = dict(line.split(":", 1) for line in _SANDBOXED.read_text(encoding="ascii").splitlines())
        return lines[name].strip()
    except (OSError, KeyError, ValueError):
        return ""


if __name__ == "__main__":
    serve(show, memory=None)
