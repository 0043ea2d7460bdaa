"""Addresses of the web as people and models write them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..api.errors import ToolError
from ..util.text import cut

if TYPE_CHECKING:
    import httpx

_OTHER_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?![0-9])")
_SHOWN = 300
"""Characters of an address that an error shows; that of a redirect may have 65,536."""


def web_address(text: str) -> httpx.URL:
    """The address that is meant by a text; one without a scheme is taken to be https.

    Raises:
        ToolError: it is not a web address, that is one of http or https with a host.
    """
    import httpx

    written = text.strip()
    if "://" not in written:
        if _OTHER_SCHEME.match(written):  # `mailto:me@example.org` would name a user and a host else
            raise ToolError(f"{cut(text)!r} is not a web address. Give a full one, as in https://example.org/page.")
        written = f"https://{written}"
    try:
        url = httpx.URL(written)
        usable = url.scheme in ("http", "https") and url.host and "%" not in url.host and (url.port or 0) <= 65535
    except (httpx.InvalidURL, ValueError) as error:  # the latter from names that IDNA does not take
        raise ToolError(
            f"{cut(text)!r} is not an address: {error}. Give a full one, as in https://example.org/page."
        ) from error
    if not usable:
        raise ToolError(f"{cut(text)!r} is not a web address. Give a full one, as in https://example.org/page.")
    return url


def shown(url: httpx.URL) -> str:
    """An address as errors show it: without a user and password in it, and not too long.

    The query of a long one is left out as a whole: of a key in it that is cut, the beginning would not be known as one.
    """
    text = str(url.copy_with(userinfo=b"")) if url.userinfo else str(url)
    if len(text) > _SHOWN and url.query:
        text = f"{text.partition('?')[0]}?…"
    return cut(text, _SHOWN)
