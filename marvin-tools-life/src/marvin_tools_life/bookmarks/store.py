"""The file of the bookmarks, which all profiles share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from marvin_core import JsonFile, ToolContext, one_line

from ..names import folded

Bookmark: TypeAlias = "dict[str, Any]"
"""`url`, `title`, `tags`, `notes`, and `saved` in seconds since the epoch. Keys of other programs are kept."""

_URL, _TITLE, _NOTES = 500, 200, 300


def bookmarks(context: ToolContext) -> JsonFile[list[Bookmark]]:
    """The bookmarks, the oldest first."""
    folder = context.profile_folder.parent.parent
    return JsonFile(folder / "bookmarks.json", list, _check, timeouts=context.timeouts)


def _check(found: list[Any]) -> None:
    for bookmark in found:
        if not (isinstance(bookmark, dict) and isinstance(bookmark.get("url"), str)):
            raise ValueError(f"{bookmark!r} is not a bookmark")


def tags_of(bookmark: Bookmark) -> list[str]:
    """The tags, which an older version may have written as one text."""
    tags = bookmark.get("tags")
    return split_tags(tags) if isinstance(tags, str) else [str(tag) for tag in tags or ()]


def split_tags(text: str) -> list[str]:
    """The tags in a text, each once: separated by commas, with or without `#`."""
    found = [folded(tag).lstrip("# ") for tag in text.split(",")]
    return list(dict.fromkeys(filter(None, found)))


def told(found: Iterable[Bookmark]) -> list[str]:
    """Bookmarks as text for a model, one each."""
    return [_told(bookmark) for bookmark in found]


def _told(bookmark: Bookmark) -> str:
    title = one_line(str(bookmark.get("title") or ""), _TITLE)
    url = one_line(bookmark["url"], _URL)
    tags = " ".join(f"#{one_line(tag, 60)}" for tag in tags_of(bookmark))
    notes = one_line(str(bookmark.get("notes") or ""), _NOTES)
    first = " ".join(filter(None, (f"{title}: {url}" if title else url, tags)))
    return f"{first}\n{notes}" if notes else first
