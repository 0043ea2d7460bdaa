"""A newer table of prices than the bundled one: fetched when somebody asks for it, and kept in the cache folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..api.errors import MarvinError
from ..util.state_files import read_trusted_json, write_cache
from .prices import bundled_stamp, stamp_of, updated_table

if TYPE_CHECKING:
    import httpx

_LARGEST = 32 * 1024 * 1024
_used: set[Path] = set()


def use_updated_table(cache_folder: Path) -> None:
    """Have the newer table count in the place of the bundled one, if there is one; a damaged one does not."""
    path = updated_table(cache_folder)
    if path in _used or stamp_of(path) <= bundled_stamp():
        return
    _used.add(path)
    try:
        _take(read_trusted_json(path))
    except Exception:  # whatever is wrong with it, the bundled one is right
        return


async def fetch_table(client: httpx.AsyncClient, url: str, cache_folder: Path) -> int:
    """Fetch the newest table and have it count from now on; returns how many services it knows.

    Raises:
        MarvinError: where it cannot be had, or is none; what was there before still counts.
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
            f"The table of prices cannot be fetched from {url}: {str(error) or type(error).__name__}. "
            "The one that is here still counts. Check the network and HTTPS_PROXY, or update the package genai-prices."
        ) from None
    if response.status_code != httpx.codes.OK:
        raise _useless(url, f"it answered {response.status_code}")
    try:
        table = json.loads(data)
        count = _take(table)
    except Exception as error:  # the library raises whatever its validation raises
        raise _useless(url, "what came is no table of prices") from error
    write_cache(updated_table(cache_folder), table)
    _used.add(updated_table(cache_folder))
    return count


def _useless(url: str, why: str) -> MarvinError:
    return MarvinError(f"No table of prices came from {url}: {why}. The one that is here still counts.")


def _default_url() -> str:
    from genai_prices.update_prices import DEFAULT_UPDATE_URL

    return DEFAULT_UPDATE_URL


def _take(table: Any) -> int:
    """Use this table; returns how many services it knows. Raises where it is none."""
    from genai_prices.data_snapshot import DataSnapshot, set_custom_snapshot
    from genai_prices.types import (
        _providers_from_raw,
    )  # the library reads its own update with it, and with nothing else

    providers = _providers_from_raw(table)
    if not providers:
        raise ValueError("it knows no service")
    set_custom_snapshot(DataSnapshot(providers=providers, from_auto_update=True))
    return len(providers)
