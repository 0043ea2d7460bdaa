"""Downloading files into the user's Downloads folder."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

from marvin_core import ToolContext, ToolError, ToolResult, open_url, tool

from . import filenames, part_files

if TYPE_CHECKING:
    import httpx

_FOLDER = "Downloads"
_REPORTS = 20
_ENCODING = 40
_UNKNOWN_STEP = 5_000_000
# Larger than the default: a file of a gigabyte takes its time. Silence of the server ends it much earlier.
_LIMIT = 900.0


@tool(access=["net", "write"], timeout=_LIMIT)
async def download_file(
    url: Annotated[str, "The address of the file"],
    filename: Annotated[str, "A name to save it under, no path; without it the server's name"] = "",
    *,
    context: ToolContext,
) -> ToolResult:
    """Download a file into ~/Downloads. An existing file is never overwritten: the new one gets a number."""
    if filename and filenames.safe(filename) != filename:
        raise ToolError(f"{filename!r} cannot be a file's name. Give a plain name without folders, as in report.pdf.")
    folder = context.home / _FOLDER
    async with open_url(context.http, url, headers={"accept-encoding": "identity"}, raw=True) as response:
        name = filename or filenames.of_response(response)
        saved, size = await _save(response, folder, name, context)
    kind = response.headers.get("content-type", "").partition(";")[0].strip() or "of an unknown type"
    shown = f"~/{_FOLDER}/{saved.name}"
    encoding = response.headers.get("content-encoding", "")
    packed = f" The server sent it compressed ({encoding[:_ENCODING]}), and so it was saved." if encoding else ""
    return ToolResult(
        content=f"Saved {shown} ({_size(size)}, {kind}).{packed}",
        details={"path": str(saved), "bytes": size, "type": kind, "url": str(response.url)},
    )


async def _save(response: httpx.Response, folder: Path, name: str, context: ToolContext) -> tuple[Path, int]:
    """Write the body to a part file and put that in its place when all of it is there."""
    total = _announced(response)
    try:
        part_files.sweep(folder)
        part, stream = _open_part(folder, name, total)
    except OSError as error:
        raise ToolError(f"~/{_FOLDER} cannot be written to: {error.strerror}. Tell the user.") from error
    try:
        with stream:
            size = await _write(response, stream, total, context)
        return _placed(part, folder, name), size
    except OSError as error:
        raise ToolError(f"{name} cannot be saved in ~/{_FOLDER}: {error.strerror}. Tell the user.") from error
    finally:
        part.unlink(missing_ok=True)


def _announced(response: httpx.Response) -> int:
    length = response.headers.get("content-length", "")
    return int(length) if length.isdigit() else 0


def _open_part(folder: Path, name: str, total: int) -> tuple[Path, BinaryIO]:
    folder.mkdir(exist_ok=True)
    free = shutil.disk_usage(folder).free
    if total > free:
        raise ToolError(f"The file has {_size(total)}, and only {_size(free)} are free. Ask the user to make room.")
    return part_files.begin(folder, name)


async def _write(response: httpx.Response, stream: BinaryIO, total: int, context: ToolContext) -> int:
    size = reported = 0
    step = max(total // _REPORTS, _UNKNOWN_STEP // 5) if total else _UNKNOWN_STEP
    async for piece in response.aiter_raw():
        stream.write(piece)  # into the system's cache, faster than a thread is started
        size += len(piece)
        if size - reported >= step:
            reported = size
            context.progress(f"{_size(size)} of {_size(total)}" if total else _size(size))
    return size


def _placed(part: Path, folder: Path, name: str) -> Path:
    """Give the part file its name, or that with a number where the name is taken."""
    for candidate in filenames.numbered(name):
        target = folder / candidate
        try:
            os.link(part, target)
        except FileExistsError:
            continue
        except OSError:
            # A file system without hard links, it seems: the name is taken first, so that no other file is replaced.
            try:
                os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
            except FileExistsError:
                continue
            part.replace(target)
        return target
    raise FileExistsError(0, "every name is taken")


def _size(number: int) -> str:
    value = float(number)
    for unit in ("bytes", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.2f} GB"
