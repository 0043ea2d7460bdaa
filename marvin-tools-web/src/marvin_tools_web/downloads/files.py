"""Downloading files into the user's Downloads folder."""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

from marvin_core import (
    Link,
    Record,
    RequestFailed,
    ToolContext,
    ToolError,
    ToolResult,
    call_of,
    in_thread,
    one_line,
    open_url,
    tool,
    web_address,
)

from . import filenames, part_files, undo
from .placing import placed, size_text
from .undo import Marks

if TYPE_CHECKING:
    import httpx

_FOLDER = "Downloads"
_REPORTS = 20
_ENCODING = 40
_KIND = 80
_UNKNOWN_STEP = 5_000_000
_LOOK = 20_000_000
"""Bytes between two checks of the free space."""
_CONTINUED = 5
"""How often a download is resumed after its connection broke."""
_KEPT_FREE = 100_000_000
"""Bytes of the disk that are left free."""
_PARTIAL = 206
_RANGE = re.compile(r"bytes (\d{1,20})-\d{1,20}/(?:\d{1,20}|\*)", re.ASCII)
# Larger than the default, as a file of a gigabyte takes long. A silent server ends the download much earlier.
_LIMIT = 900.0


@tool(access=["net", "write"], timeout=_LIMIT, unlisted=["taken_back"])
async def download_file(
    url: Annotated[str, "The address of the file"],
    filename: Annotated[str, "A file name without folders; default: the server's name"] = "",
    taken_back: Annotated[Marks | None, "For /undo"] = None,
    *,
    context: ToolContext,
) -> ToolResult:
    """Download a file into ~/Downloads. An existing file is never overwritten: the new one gets a number."""
    folder = context.home / _FOLDER
    if taken_back is not None:
        return ToolResult(content=await undo.remove(context, folder, taken_back))
    if filename and filenames.safe(filename) != filename:
        raise ToolError(
            f"{filename!r} is not a valid file name. Give a plain name without folders, such as report.pdf."
        )
    await context.may_reach(str(web_address(url)))
    async with open_url(context.http, url, headers={"accept-encoding": "identity"}, raw=True) as response:
        if response.status_code == _PARTIAL:
            raise RequestFailed(f"{response.url.host} sent only a part of the file. Use another source.")
        name = filename or filenames.of_response(response)
        saved, size = await _save(response, folder, name, context)
    kind = one_line(response.headers.get("content-type", "").partition(";")[0], _KIND) or "of an unknown type"
    shown = f"~/{_FOLDER}/{saved.name}"
    encoding = response.headers.get("content-encoding", "")
    packed = f" The server sent it compressed ({encoding[:_ENCODING]}), and it is saved that way." if encoding else ""
    return ToolResult(
        content=f"Saved {shown} ({size_text(size)}, {kind}).{packed}",
        details={"path": str(saved), "bytes": size, "type": kind, "url": str(response.url)},
        show=[Link(url=saved.as_uri(), text=shown)],
        undo=call_of(download_file, url=url, taken_back=undo.marks(folder, [saved])),
    )


async def _save(response: httpx.Response, folder: Path, name: str, context: ToolContext) -> tuple[Path, int]:
    """Write the body to a part file, and move it to its place when it is complete."""
    total = _announced(response)
    try:
        part_files.sweep(folder)
        part, stream = _open_part(folder, name, total)
    except OSError as error:
        raise ToolError(f"~/{_FOLDER} cannot be written to: {error.strerror}. Tell the user.") from error
    try:
        with stream:
            size = await _Writing(stream, total, _room(folder), context).all_of(response)
        return placed(part, folder, name), size
    except OSError as error:
        raise ToolError(f"{name} cannot be saved in ~/{_FOLDER}: {error.strerror}. Tell the user.") from error
    finally:
        part.unlink(missing_ok=True)


def _announced(response: httpx.Response) -> int:
    length = response.headers.get("content-length", "")
    return int(length) if length.isdecimal() else 0


def _open_part(folder: Path, name: str, total: int) -> tuple[Path, BinaryIO]:
    folder.mkdir(exist_ok=True)
    free = _room(folder)()
    if total > free:
        raise ToolError(
            f"The file has {size_text(total)}, but only {size_text(max(free, 0))} are free. Ask the user to free space."
        )
    return part_files.begin(folder, name)


def _room(folder: Path) -> Callable[[], int]:
    return lambda: shutil.disk_usage(folder).free - _KEPT_FREE


class _Writing:
    """Writes a body to a stream as it arrives, and resumes after a broken connection if the server supports that."""

    def __init__(self, stream: BinaryIO, total: int, room: Callable[[], int], context: ToolContext) -> None:
        self._stream = stream
        self._total = total
        self._room = room
        self._context = context
        self._size = self._reported = self._looked = 0

    async def all_of(self, response: httpx.Response) -> int:
        """Write the whole body; returns its size in bytes.

        Raises:
            RequestFailed: the connection broke, and the download cannot be resumed.
            ToolError: the disk is full.
        """
        mark = _Mark.of(response)
        try:
            await self._write(response.aiter_raw())
            self._check_whole(response)
            return self._size
        except Exception as error:
            if not mark.validator or not _broke_off(error):
                raise
            failure = error
        for _ in range(_CONTINUED):
            before = self._size
            try:
                if await self._go_on(mark):
                    return self._size
                raise failure
            except RequestFailed as error:
                if self._size == before or error is failure:
                    raise failure from None
        raise failure

    async def _go_on(self, mark: _Mark) -> bool:
        """Request the rest; False if the server sends something else."""
        self._context.progress(f"The connection was lost at {size_text(self._size)}; continuing", self._size)
        headers = {"accept-encoding": "identity", "range": f"bytes={self._size}-", "if-range": mark.validator}
        async with open_url(self._context.http, mark.url, headers=headers, raw=True) as response:
            found = _RANGE.fullmatch(response.headers.get("content-range", "").strip())
            if response.status_code != _PARTIAL or found is None or int(found[1]) != self._size:
                return False
            await self._write(response.aiter_raw())
        return not self._total or self._size >= self._total

    async def _write(self, pieces: AsyncIterator[bytes]) -> None:
        total = self._total
        step = max(total // _REPORTS, _UNKNOWN_STEP // 5) if total else _UNKNOWN_STEP
        async for piece in pieces:
            self._stream.write(piece)  # into the system's cache, faster than a thread starts
            self._size += len(piece)
            if self._size - self._reported >= step:
                self._report()
            if self._size - self._looked >= _LOOK:
                await self._look()

    def _report(self) -> None:
        size, total = self._size, self._total
        self._reported = size
        text = f"{size_text(size)} of {size_text(total)}" if total else size_text(size)
        self._context.progress(text, size, total or None)

    async def _look(self) -> None:
        """Stop before the disk is full."""
        self._looked = self._size
        if await in_thread(self._room) < 0:
            raise ToolError(
                f"The disk is full after {size_text(self._size)}. Nothing was saved. Ask the user to free space."
            )

    def _check_whole(self, response: httpx.Response) -> None:
        if self._total and self._size != self._total and not response.headers.get("content-encoding"):
            raise RequestFailed(
                f"Only {size_text(self._size)} of {size_text(self._total)} arrived. Nothing was saved. Try again later."
            )


class _Mark(Record):
    """What a file is resumed with: its URL, and a validator that shows whether it is unchanged."""

    url: str
    validator: str

    @classmethod
    def of(cls, response: httpx.Response) -> _Mark:
        """The validator is empty if the server does not serve ranges or sends no strong validator."""
        headers = response.headers
        tag = headers.get("etag", "").strip()
        validator = tag if tag and not tag.startswith("W/") else headers.get("last-modified", "").strip()
        serves = "bytes" in headers.get("accept-ranges", "").lower() and not headers.get("content-encoding")
        return cls(url=str(response.url), validator=validator if serves else "")


def _broke_off(error: Exception) -> bool:
    import httpx

    return isinstance(error, (httpx.TransportError, RequestFailed))
