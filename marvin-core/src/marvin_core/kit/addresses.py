"""Web addresses as people and models write them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..api.errors import ToolError
from ..util.text import cut

if TYPE_CHECKING:
    import httpx

_OTHER_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?![0-9])")
_SHOWN = 300
"""The maximum number of characters of an address in an error; that of a redirect may have 65,536."""


def web_address(text: str) -> httpx.URL:
    """Parse a web address; without a scheme it is taken as https.

    Raises:
        ToolError: it is not an http or https address with a host.
    """
    import httpx

    written = text.strip()
    if "://" not in written:
        if _OTHER_SCHEME.match(written):  # otherwise `mailto:me@example.org` would be a user and a host
            raise ToolError(f"{cut(text)!r} is not a web address. Give a full one, as in https://example.org/page.")
        written = f"https://{written}"
    try:
        url = httpx.URL(written)
        usable = url.scheme in ("http", "https") and url.host and "%" not in url.host and (url.port or 0) <= 65535
    except (httpx.InvalidURL, ValueError) as error:  # ValueError: names that IDNA does not allow
        raise ToolError(
            f"{cut(text)!r} is not an address: {error}. Give a full one, as in https://example.org/page."
        ) from error
    if not usable:
        raise ToolError(f"{cut(text)!r} is not a web address. Give a full one, as in https://example.org/page.")
    return url


def shown(url: httpx.URL) -> str:
    """An address for error messages: without user and password, and cut if it is long.

    The whole query of a long address is left out: the beginning of a key in it would not be redacted.
    """
    text = str(url.copy_with(userinfo=b"")) if url.userinfo else str(url)
    if len(text) > _SHOWN and url.query:
        text = f"{text.partition('?')[0]}?…"
    return cut(text, _SHOWN)
