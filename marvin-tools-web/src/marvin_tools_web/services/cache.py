"""Answers of services, cached in the pack's cache folder for all Marvins of a user."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from marvin_core import Fetched, ToolContext, in_thread

if TYPE_CHECKING:
    from hishel import SqliteStorage

_FILE = "answers.db"
_MOST = 50 * 1024 * 1024
"""Bytes of the whole cache."""
_TYPE = "content-type"


async def answer_cache(context: ToolContext) -> AnswerCache | None:
    """The cache of the pack, opened once a session; None if it cannot be opened."""
    try:
        return await context.resource(_opener(context.folders.cache / _FILE))
    except Exception:  # such as a home folder that is not writable
        return None


class AnswerCache:
    """Complete answers by URL. Never fails: an answer that cannot be stored or read is requested again."""

    def __init__(self, storage: SqliteStorage) -> None:
        self._storage = storage

    async def get(self, url: str) -> Fetched | None:
        """The cached answer; None if there is none, or it has expired."""
        return await in_thread(lambda: self._get(url))

    async def put(self, url: str, answer: Fetched, seconds: float) -> None:
        """Cache an answer for this many seconds."""
        await in_thread(lambda: self._put(url, answer, seconds))

    def _get(self, url: str) -> Fetched | None:
        try:
            for entry in self._storage.get_entries(_key(url)):
                content = b"".join(entry.response.stream or ())  # type: ignore[arg-type]  # that of a SqliteStorage
                kind = entry.response.headers.get(_TYPE) or ""
                short = kind.partition(";")[0].strip().lower()
                return Fetched(url=url, status=200, kind=short, headers={_TYPE: kind}, content=content)
        except Exception:  # a damaged file raises anything: the service is asked instead
            return None
        return None

    def _put(self, url: str, answer: Fetched, seconds: float) -> None:
        from hishel import Headers, Request, Response

        kept = Response(
            status_code=200,
            headers=Headers({_TYPE: answer.headers.get(_TYPE, "")}),
            stream=iter([answer.content]),
        )
        # The URL may contain a key, so only its hash is stored.
        try:
            entry = self._storage.create_entry(Request(method="GET", url=""), kept, _key(url), ttl=seconds)
            for _ in entry.response.stream or ():  # type: ignore[union-attr]  # it is written as it is read
                pass
        except Exception:  # the answer itself is not affected
            return


def _key(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()


@cache
def _opener(path: Path) -> Callable[[], AbstractAsyncContextManager[AnswerCache]]:
    """The function that opens the cache in a file, one object for each: a session enters a resource function once."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[AnswerCache]:
        storage = await in_thread(lambda: _storage(path))
        try:
            yield AnswerCache(storage)
        finally:
            await in_thread(storage.close)

    return opened


def _storage(path: Path) -> SqliteStorage:
    from hishel import SqliteStorage

    # Its log would be printed into the chat.
    logging.getLogger("hishel").disabled = True
    for name in ("hishel._core._storages._sync_sqlite", "hishel.core.spec"):
        logging.getLogger(name).disabled = True
    return SqliteStorage(database_path=path, max_size=_MOST)
