"""The tool bookmark_save."""

from __future__ import annotations

from typing import Annotated, Any

from marvin_core import ToolContext, ToolError, ToolResult, call_of, tool, web_address

from ..undo import Change, before_of, change
from .store import Bookmark, bookmarks, split_tags, tags_of, told

_LONGEST = 10_000
"""Characters of a URL, a title or notes."""


@tool(access=["write"], aliases={"url": ("link", "address", "href")}, unlisted=["taken_back"])
async def bookmark_save(
    url: Annotated[str, "Address"],
    title: Annotated[str, "Title"] = "",
    tags: Annotated[str, "Separated by commas"] = "",
    notes: Annotated[str, "Notes, such as why it was saved"] = "",
    taken_back: Annotated[dict[str, Any] | None, "For /undo"] = None,
    *,
    context: ToolContext,
) -> ToolResult:
    """Save a bookmark. Saved again, it gets the new title and notes, and the tags beside its own."""
    if max(map(len, (url, title, tags, notes))) > _LONGEST:
        raise ToolError(
            f"That is too long: an address, title or note may have up to {_LONGEST:,} characters. Shorten it."
        )
    address = url if taken_back is not None else str(web_address(url))
    given = {"title": " ".join(title.split()), "tags": split_tags(tags), "notes": notes.strip()}
    now = context.clock.now()

    def save(found: list[Bookmark]) -> tuple[str, Change]:
        place = next((i for i, bookmark in enumerate(found) if bookmark["url"] == address), len(found))
        before = found[place] if place < len(found) else None
        if taken_back is not None:
            found[place : place + 1] = _restored(context, taken_back, before)
            return f"The bookmark {address} was restored.", {}
        after = _merged(before or {"url": address, "saved": now}, given)
        found[place : place + 1] = [after]
        done = "Saved" if before is None else "Changed" if after != before else "Already saved; nothing was changed"
        return f"{done}: {told([after])[0]}", change(before, after) if after != before else {}

    said, done = await bookmarks(context).change(save)
    return ToolResult(content=said, undo=call_of(bookmark_save, url=address, taken_back=done) if done else None)


def _restored(context: ToolContext, taken_back: Change, now: Bookmark | None) -> list[Bookmark]:
    before = before_of(context, taken_back, now)
    return [] if before is None else [before]


def _merged(bookmark: Bookmark, given: dict[str, Any]) -> Bookmark:
    tags = list(dict.fromkeys([*tags_of(bookmark), *given["tags"]]))
    texts = {name: given[name] or bookmark.get(name, "") for name in ("title", "notes")}
    return {**bookmark, **texts, "tags": tags}
