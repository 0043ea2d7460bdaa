"""Requests to addresses that a model or a user wrote: checked before, explained where they fail."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from marvin_core import ToolContext, ToolError

if TYPE_CHECKING:
    import httpx

_SHOWN = 300
"""Characters of an address or a message that an error shows; the address of a redirect may have 65,536."""
_REASON = 80
_LONGEST_WAIT = 9
"""Digits of the seconds that a server asks to wait."""
_WHAT_TO_DO = {
    401: "It wants a login. Use another source",
    403: "It does not let programs in. Use another source",
    404: "There is nothing at that address. Check it, or search for the page",
    410: "It is gone for good. Search for another source",
    429: "It gets too many requests. Wait, or use another source",
}


def checked_url(text: str) -> httpx.URL:
    """The address that was meant; one without a scheme is taken to be https.

    Raises:
        ToolError: where it is none of the web.
    """
    import httpx

    written = text.strip()
    if written.startswith("feed:"):
        written = written.removeprefix("feed:").lstrip("/")
    if "://" not in written:
        written = f"https://{written}"
    try:
        url = httpx.URL(written)
    except httpx.InvalidURL as error:
        raise ToolError(f"{text!r} is no address: {error}. Give a full one, as in https://example.org/page.") from error
    if url.scheme not in ("http", "https") or not url.host or "%" in url.host or (url.port or 0) > 65535:
        raise ToolError(f"{text!r} is no address of the web. Give a full one, as in https://example.org/page.")
    return url


@asynccontextmanager
async def opened(
    context: ToolContext, url: httpx.URL, headers: dict[str, str], *, raw: bool = False
) -> AsyncIterator[httpx.Response]:
    """The answer to a GET, redirects followed, its body not yet read; with `raw` as it comes, for a file.

    Raises:
        ToolError: where there is no answer, or an error; also for what goes wrong while the body is read.
    """
    with _explained(url):
        how = {"marvin_body": "raw"} if raw else {}
        async with context.http.stream("GET", url, headers=headers, follow_redirects=True, extensions=how) as response:
            if response.is_error:
                raise ToolError(_refused(response))
            yield response


async def limited_body(response: httpx.Response, limit: int) -> bytes:
    """The whole body, decompressed.

    Raises:
        ToolError: where it is longer than `limit` bytes.
    """
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_bytes():
        parts.append(part)
        size += len(part)
        if size > limit:
            raise ToolError(f"{_shown(response.url)} is larger than {limit // 1_000_000} MB. Use download_file for it.")
    return b"".join(parts)


@contextmanager
def _explained(url: httpx.URL) -> Iterator[None]:
    import httpx

    try:
        yield
    except httpx.TimeoutException as error:
        raise ToolError(f"{url} did not answer in time. Try again later, or use another source.") from error
    except httpx.TooManyRedirects as error:
        raise ToolError(f"{url} redirects in a circle. Use another address.") from error
    except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        raise ToolError(f"{url} leads to an address that is none of the web. Use another source.") from error
    except httpx.DecodingError as error:
        raise ToolError(f"{url} sent something that cannot be decompressed: {error}. Use another source.") from error
    except httpx.HTTPError as error:
        what = str(error)[:_SHOWN] or type(error).__name__
        raise ToolError(f"The connection to {url} failed: {what}. Check the address, or try again later.") from error


def _refused(response: httpx.Response) -> str:
    status = response.status_code
    what = _WHAT_TO_DO.get(status, "It has a problem. Try again later" if status >= 500 else "Check the address")
    after = response.headers.get("retry-after", "")
    wait = f" (it asks to wait {after} s)" if after.isdigit() and len(after) <= _LONGEST_WAIT else ""
    reason = response.reason_phrase[:_REASON]
    return f"{_shown(response.url)} answered {status} {reason}".rstrip() + f". {what}{wait}."


def _shown(url: httpx.URL) -> str:
    text = str(url)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
