"""Downloads videos with yt-dlp in a process of its own: `python -m marvin_tools_web.downloads.video_downloader`.

The request has `url`, `audio`, `folder`, `ffmpeg` (its path, or nothing), `runtimes` (of JavaScript, by name),
`timeout` and `report` (seconds). The output is lines of JSON: `{"text", "done", "total"}` for progress, and at the
end `{"result"}` with the title, or `{"error"}`. The library never checks for a newer version of itself.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
from collections.abc import Mapping
from typing import Any
from urllib.request import getproxies_environment

from ..child_process import serve

_SAID = 400
_TITLE = 200
_MOST = 50
"""Videos of a playlist at most."""
_KEPT_FREE = 200_000_000
"""Bytes of the disk that are left free."""
_NAME = "%(title).120B [%(id).40B].%(ext)s"
_BLAME = re.compile(r"; please report this issue on .*", re.DOTALL)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class _Silent:
    """Discards the library's log; errors come as exceptions."""

    def debug(self, message: str) -> None:
        """Discard a message."""

    info = warning = error = debug


class _Progress:
    """Reports the progress of the download from time to time."""

    def __init__(self, folder: str, report: float) -> None:
        self._folder = folder
        self._report = report
        self._told = 0.0

    def hook(self, status: Mapping[str, Any]) -> None:
        """Report progress that the library announces."""
        from yt_dlp.utils import DownloadCancelled  # type: ignore[import-untyped]

        now = time.monotonic()
        if status.get("status") != "downloading" or now - self._told < self._report:
            return
        self._told = now
        if shutil.disk_usage(self._folder).free < _KEPT_FREE:
            raise DownloadCancelled("the disk is full")
        done, total = status.get("downloaded_bytes"), status.get("total_bytes") or status.get("total_bytes_estimate")
        name = str((status.get("info_dict") or {}).get("title") or "")[:_TITLE]
        tell({"text": name or "Downloading", "done": done, "total": total})

    def after(self, status: Mapping[str, Any]) -> None:
        """Report work after the download that the library announces."""
        if status.get("status") == "started":
            tell({"text": f"{status.get('postprocessor') or 'The file'} is being processed"})


def tell(line: Mapping[str, Any]) -> None:
    """Write a line and flush it."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def download(asked: Mapping[str, Any], body: bytes) -> dict[str, Any]:
    """Download the video or playlist of a URL into the folder."""
    import yt_dlp  # type: ignore[import-untyped]
    import yt_dlp.globals  # type: ignore[import-untyped]
    from yt_dlp.utils import YoutubeDLError

    yt_dlp.globals.plugin_dirs.value = []  # no plugins: anybody who can write to their folders could run code here
    try:
        with yt_dlp.YoutubeDL(_options(asked)) as library:
            found = library.extract_info(asked["url"], download=True)
    except YoutubeDLError as error:
        return {"error": reason(error)}
    except OSError as error:
        return {"error": error.strerror or str(error)}
    found = found if isinstance(found, dict) else {}
    return {"result": {"title": str(found.get("title") or "")[:_TITLE], "url": str(found.get("webpage_url") or "")}}


def reason(error: Exception) -> str:
    """An error message of the library without colours and without its request to report bugs."""
    text = _BLAME.sub("", _COLOUR.sub("", str(error)))
    return " ".join(text.removeprefix("ERROR: ").split())[:_SAID] or type(error).__name__


def _options(asked: Mapping[str, Any]) -> dict[str, Any]:
    progress = _Progress(asked["folder"], asked["report"])
    ffmpeg = asked["ffmpeg"]
    options: dict[str, Any] = {
        "paths": {"home": asked["folder"]},
        "outtmpl": {"default": _NAME},
        "windowsfilenames": True,
        "noplaylist": True,
        "playlistend": _MOST,
        "logger": _Silent(),
        "quiet": True,
        "noprogress": True,
        "progress_hooks": [progress.hook],
        "postprocessor_hooks": [progress.after],
        "cachedir": False,
        "updatetime": False,
        "socket_timeout": asked["timeout"],
        "proxy": getproxies_environment().get("https"),
        "js_runtimes": {name: {} for name in asked["runtimes"]} or None,
        "ffmpeg_location": ffmpeg or None,
        "format": ("ba/b" if asked["audio"] else "bv*+ba/b") if ffmpeg else ("ba/b" if asked["audio"] else "b"),
    }
    if asked["audio"] and ffmpeg:
        options["postprocessors"] = [{"key": "FFmpegExtractAudio", "preferredcodec": "mp3"}]
    return options


if __name__ == "__main__":
    serve(download, memory=None)
