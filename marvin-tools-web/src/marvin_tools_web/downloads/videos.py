"""Videos and their sound, through yt-dlp."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

from marvin_core import (
    Link,
    ToolContext,
    ToolError,
    ToolResult,
    call_of,
    in_thread,
    numbered,
    one_line,
    tool,
    web_address,
)

from .. import child_process
from . import filenames, undo
from .placing import placed, size_text
from .undo import Marks

_DOWNLOADER = child_process.program("marvin_tools_web.downloads.video_downloader")
_FOLDER = Path("Downloads", "yt-dlp")
_LIMIT = 900.0
_RUNTIMES = ("deno", "node", "bun")
"""JavaScript runtimes; some sites give videos only to clients that run their scripts."""
_SHOWN = 4_000
_TITLE = 200
_WORK = ".marvin-video-"
_OURS = re.compile(r"\.marvin-video-(\d{1,10})-\w{1,20}")
_HALF = (".part", ".ytdl", ".temp")


@tool(access=["net", "write", "exec"], timeout=_LIMIT, unlisted=["taken_back"])
async def yt_dlp_download(
    url: Annotated[str, "The page of the video"],
    audio_only: Annotated[bool, "Save only the sound, as MP3"] = False,
    output_dir: Annotated[str, "A folder in ~/Downloads/yt-dlp"] = "",
    taken_back: Annotated[Marks | None, "For /undo"] = None,
    *,
    context: ToolContext,
) -> ToolResult:
    """Download a video, or a playlist's first 50, into ~/Downloads/yt-dlp. An existing file is never overwritten."""
    base = context.home / _FOLDER
    if taken_back is not None:
        return ToolResult(content=await undo.remove(context, base, taken_back))
    address = str(web_address(url))
    await context.may_reach(address)
    target = base / _checked(output_dir)
    with _work_folder(context.paths.root) as work:
        found = await _download(address, work, audio_only=audio_only, context=context)
        saved = await in_thread(lambda: moved(work, target, base))
    if not saved:
        raise ToolError(f"{address} has no video that can be saved. Check the address, or use another one.")
    lines = [f"~/{path.relative_to(context.home)} ({size_text(path.stat().st_size)})" for path in saved]
    title = one_line(str(found.get("title") or ""), _TITLE)
    origin = f" from {title}" if title else ""
    note = "" if context.processes.which("ffmpeg") else " Without ffmpeg, the best quality is not available."
    return ToolResult(
        content=f"Saved {len(saved)} file{'s' if len(saved) > 1 else ''}{origin}:\n{numbered(lines, _SHOWN)}{note}",
        details={"files": [str(path) for path in saved], "url": found.get("url") or address},
        show=[Link(url=path.as_uri(), text=path.name) for path in saved],
        undo=call_of(yt_dlp_download, url=url, taken_back=undo.marks(base, saved)),
    )


def _checked(folder: str) -> Path:
    parts = Path(folder.strip()).parts
    if any(part == ".." or filenames.safe(part) != part for part in parts):
        raise ToolError(
            f"{folder!r} is not a valid folder in ~/{_FOLDER}. Give a plain name such as talks or talks/2026, or "
            "leave it out."
        )
    return Path(*parts)


async def _download(address: str, work: Path, *, audio_only: bool, context: ToolContext) -> dict[str, Any]:
    """Download into a folder that programs in the sandbox may write to."""
    which = context.processes.which
    asked = {
        "url": address,
        "audio": audio_only,
        "folder": str(work),
        "ffmpeg": which("ffmpeg") or "",
        "runtimes": [name for name in _RUNTIMES if which(name)],
        "timeout": context.timeouts.http,
        "report": context.timeouts.output_report,
    }
    result = await context.processes.run(
        _DOWNLOADER,
        stdin=child_process.question(asked),
        env=dict(await context.proxied()),
        on_output=lambda lines: _tell(lines, context),
    )
    last = _last(result.output.decode("utf-8", "replace"))
    if "result" in last:
        found: dict[str, Any] = last["result"]
        return found
    why = one_line(str(last.get("error") or "")) or "the download program ended early"
    raise ToolError(f"{address} cannot be downloaded: {why}. Check the address, or use another source.")


def _tell(lines: str, context: ToolContext) -> None:
    line = _last(lines)
    if "text" in line:
        done, total = line.get("done"), line.get("total")
        sizes = f": {size_text(done)}" if done else ""
        context.progress(
            f"{one_line(str(line['text']))}{sizes}{f' of {size_text(total)}' if done and total else ''}", done, total
        )


def _last(lines: str) -> dict[str, Any]:
    """The last line that is a JSON object."""
    for line in reversed(lines.splitlines()):
        with suppress(ValueError):
            found = json.loads(line)
            if isinstance(found, dict):
                return found
    return {}


@contextmanager
def _work_folder(root: Path) -> Iterator[Path]:
    """A folder in the working directory, which programs in the sandbox may write to; it is removed after the call.

    Raises:
        ToolError: the working directory is not writable.
    """
    _sweep(root)
    try:
        made = tempfile.mkdtemp(prefix=f"{_WORK}{os.getpid()}-", dir=root)
    except OSError as error:
        raise ToolError(
            f"Nothing can be written to the working directory {root}: {error.strerror}. Downloads are stored there "
            "temporarily. Tell the user."
        ) from error
    try:
        yield Path(made)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _sweep(root: Path) -> None:
    """Remove the folders of killed calls."""
    with suppress(OSError), os.scandir(root) as entries:
        for entry in list(entries):
            found = _OURS.fullmatch(entry.name)
            if found and entry.is_dir(follow_symlinks=False) and not Path("/proc", found[1]).exists():
                with suppress(OSError):
                    os.kill(int(found[1]), 0)
                    continue
                shutil.rmtree(entry.path, ignore_errors=True)


def moved(work: Path, target: Path, base: Path) -> list[Path]:
    """Move the files of a download to their place.

    Raises:
        ToolError: the folder is not writable, or leads elsewhere.
    """
    try:
        target.mkdir(parents=True, exist_ok=True)
        if not target.resolve().is_relative_to(base.resolve()):
            raise ToolError(f"In ~/{_FOLDER}, that path is a link to another folder. Use another output_dir.")
        files = sorted(work.iterdir())
        return [_placed_from(path, target) for path in files if _is_whole(path)]
    except OSError as error:
        raise ToolError(f"~/{_FOLDER} cannot be written to: {error.strerror}. Tell the user.") from error


def _is_whole(path: Path) -> bool:
    status = path.lstat()
    return stat.S_ISREG(status.st_mode) and status.st_size > 0 and path.suffix not in _HALF


def _placed_from(path: Path, target: Path) -> Path:
    """Move a file, possibly to another disk; returns its new path."""
    if path.lstat().st_dev == target.stat().st_dev:
        return placed(path, target, filenames.safe(path.name))
    from . import part_files

    part, stream = part_files.begin(target, path.name)
    try:
        with stream, open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as source:
            shutil.copyfileobj(source, stream)
        return placed(part, target, filenames.safe(path.name))
    finally:
        part.unlink(missing_ok=True)
