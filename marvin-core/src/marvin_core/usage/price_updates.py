"""Fetches a newer price table than the bundled one on request, and stores it in the cache folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from ..api.errors import MarvinError
from ..util.state_files import write_cache
from .prices import take_table, updated_table

if TYPE_CHECKING:
    import httpx

_LARGEST = 32 * 1024 * 1024


async def fetch_table(client: httpx.AsyncClient, url: str, cache_folder: Path) -> int:
    """Fetch the newest table and use it from now on; returns the number of services in it.

    Raises:
        MarvinError: it cannot be fetched, or is invalid; the previous table stays in use.
    """
    import httpx

    url = url or _default_url()
    data = bytearray()
    try:
        async with client.stream("GET", url) as response:
            async for piece in response.aiter_bytes():
                data += piece
                if len(data) > _LARGEST:
                    raise _useless(url, "it is too large")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise MarvinError(
            f"The price table cannot be downloaded from {url}: {str(error) or type(error).__name__}. The installed "
            "one is still used. Check the network and HTTPS_PROXY, or update the package genai-prices."
        ) from None
    if response.status_code != httpx.codes.OK:
        raise _useless(url, f"it answered {response.status_code}")
    try:
        table = json.loads(data)
        count = take_table(table, cache_folder)
    except Exception as error:  # the library raises whatever its validation raises
        raise _useless(url, "the answer is not a price table") from error
    write_cache(updated_table(cache_folder), table)
    return count


def _useless(url: str, why: str) -> MarvinError:
    return MarvinError(f"No price table was received from {url}: {why}. The installed one is still used.")


def _default_url() -> str:
    from genai_prices.update_prices import DEFAULT_UPDATE_URL

    return DEFAULT_UPDATE_URL
