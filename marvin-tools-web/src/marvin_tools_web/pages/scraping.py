"""Web pages as a browser renders them, for those that need JavaScript."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from marvin_core import Field, Link, ToolContext, ToolError, ToolResult, in_thread, one_line, tool, web_address

from .. import child_process
from ..services.visible_text import seen
from .browsing import Page, part_of

_BROWSER = child_process.program("marvin_tools_web.pages.browser")
_READER = child_process.program("marvin_tools_web.pages.rendered")
_BROWSERS = (
    ("firefox", ("firefox", "firefox-esr"), "geckodriver"),
    ("chromium", ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"), "chromedriver"),
)
_OUTPUT = 40_000_000
_SAID = 300
# The driver listens on the loopback; the browser itself gets no such exception.
_TO_DRIVER = dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1,::1")
_LIMIT = 180.0
_FAILED = 400
_REFUSED = "marvin: "
"""The prefix of the error page that our proxy sends in the place of a page."""
_NO_TUNNEL = ("ERR_TUNNEL_CONNECTION_FAILED", "proxyConnectFailure")


@tool(access=["net"], labels=["web"], requires=["extra:selenium"], timeout=_LIMIT)
async def scrape_page(
    url: Annotated[str, "Address of the page"],
    extract: Annotated[Literal["text", "menu", "links"], "menu: dishes with prices"] = "text",
    css_selector: Annotated[str, "Only what this CSS selector matches"] = "",
    max_length: Annotated[int, Field(ge=1, le=8000), "Characters to show"] = 4000,
    *,
    context: ToolContext,
) -> ToolResult:
    """Read a page in a headless browser, after its JavaScript has run. Slow: try browse_web first."""
    address = str(web_address(url))
    await context.may_reach(address)
    shown = await _shown(address, context)
    asked = {"url": shown["url"], "extract": extract, "selector": css_selector}
    result = await context.processes.run(
        _READER,
        stdin=child_process.question(asked, shown["markup"].encode("utf-8", "replace")),
        timeout=min(context.timeouts.page, context.time_left / 2),
        output_limit=_OUTPUT,
    )
    try:
        found: dict[str, str] = await in_thread(lambda: json.loads(result.output))
    except ValueError:
        raise ToolError(f"{address} is too complex to be read. Use another source.") from None
    if "error" in found:
        raise ToolError(found["error"])
    if found["text"].startswith(_REFUSED):
        raise ToolError(one_line(found["text"].removeprefix(_REFUSED), _SAID))
    page = Page(
        url=shown["url"], title=one_line(shown["title"], _SAID), text=await in_thread(lambda: seen(found["text"]))
    )
    text = part_of(page, 0, max_length).replace("try scrape_page", "use another source")
    text = text.replace(f"For more use offset={max_length}.", "Use css_selector to see another part.")
    if _failed(shown):
        text += f"\n\n[The server answered with status {shown['status']}, so this may not be the page that was meant.]"
    return ToolResult(content=text, show=[Link(url=page.url, text=page.title or page.url)])


async def _shown(address: str, context: ToolContext) -> dict[str, str]:
    """The rendered page. The browser runs in a process of its own and reaches only the hosts that tools may reach."""
    context.progress("The browser starts")
    timeouts = context.timeouts
    asked = {
        **_installed(context),
        "url": address,
        "scripts": timeouts.browser,
        "settle": timeouts.browser_settle,
        "poll": timeouts.browser_poll,
    }
    result = await context.processes.run(
        _BROWSER,
        stdin=child_process.question(asked),
        env={**await context.proxied(), **_TO_DRIVER},
        output_limit=_OUTPUT,
    )
    found = await in_thread(lambda: _answer(result.output))
    if "markup" in found:
        return found
    why = found.get("error") or one_line(result.stderr.decode("utf-8", "replace").strip()[-_SAID:], _SAID)
    if any(sign in why for sign in _NO_TUNNEL):
        why = "the host cannot be reached, or it is on this machine or in a private network, which tools may not reach"
    raise ToolError(f"The browser could not show {address}: {why or 'it ended'}. Try browse_web, or another source.")


def _failed(shown: Mapping[str, str]) -> bool:
    """Whether the server refused the page; some send its content all the same."""
    return shown.get("status", "").isdecimal() and int(shown["status"]) >= _FAILED


def _answer(output: bytes) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(output)
    except ValueError:
        return {}
    return found


def _installed(context: ToolContext) -> Mapping[str, str]:
    """The first browser that is installed together with its driver.

    Raises:
        ToolError: there is none; the text says what to install.
    """
    which = context.processes.which
    for kind, names, driver in _BROWSERS:
        program = next(filter(None, map(which, names)), None)
        its_driver = which(driver)
        if program is not None and its_driver is not None:
            return {"kind": kind, "program": program, "driver": its_driver}
    raise ToolError(
        "No browser with a driver is installed (Firefox with geckodriver, or Chromium with chromedriver). Use "
        "browse_web, or ask the user to install one of them (on Debian: apt install chromium chromium-driver)."
    )
