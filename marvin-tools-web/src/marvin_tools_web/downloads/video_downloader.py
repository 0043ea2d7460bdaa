"""Downloads videos by yt-dlp in a process of its own: `python -m marvin_tools_web.downloads.video_downloader`.

Asked with `url`, `audio`, `folder`, `ffmpeg` (its path, or nothing), `runtimes` (of JavaScript, by name), `timeout` and
`report` (seconds), it writes lines of JSON: `{"text", "done", "total"}` while it goes on, and at the end `{"result"}`
with the title, or `{"error"}`. The library is never asked to look for a newer version of itself.
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
"""Videos of a playlist."""
_KEPT_FREE = 200_000_000
"""Bytes that are left free on the disk."""
_NAME = "%(title).120B [%(id).40B].%(ext)s"
_BLAME = re.compile(r"; please report this issue on .*", re.DOTALL)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class _Silent:
    """Takes what the library has to say, which nobody reads; errors come as exceptions."""

    def debug(self, message: str) -> None:
        """Nothing."""

    info = warning = error = debug


class _Progress:
    """Tells how far the download is, a line now and then."""

    def __init__(self, folder: str, report: float) -> None:
        self._folder = folder
        self._report = report
        self._told = 0.0

    def hook(self, status: Mapping[str, Any]) -> None:
        """Take what the library says of its progress."""
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
        """Take what the library says of the work after the download."""
        if status.get("status") == "started":
            tell({"text": f"{status.get('postprocessor') or 'The file'} is being processed"})


def tell(line: Mapping[str, Any]) -> None:
    """Write a line at once."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def download(asked: Mapping[str, Any], body: bytes) -> dict[str, Any]:
    """Download what is at an address; the files are then in the folder."""
    import yt_dlp  # type: ignore[import-untyped]
    import yt_dlp.globals  # type: ignore[import-untyped]
    from yt_dlp.utils import YoutubeDLError

    yt_dlp.globals.plugin_dirs.value = []  # no code of whoever could write into the folders of plugins
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
    """What went wrong, without colours and without whom to report it to."""
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
