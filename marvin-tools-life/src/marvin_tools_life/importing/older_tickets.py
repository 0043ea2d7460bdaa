"""Converts tickets of the older Marvin, JSON objects, to today's Markdown files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple

from marvin_core import one_line

from ..bookmarks.store import split_tags
from .forms import FormError, parsed, seconds

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_KINDS = ("bug", "feature", "task", "epic", "chore")
_STATUSES = {
    "in_progress": "in_progress",
    "inprogress": "in_progress",
    "started": "in_progress",
    "doing": "in_progress",
    "closed": "closed",
    "done": "closed",
    "completed": "closed",
    "resolved": "closed",
}
_PRIORITIES = {"critical": 0, "urgent": 0, "highest": 0, "high": 1, "medium": 2, "normal": 2, "low": 3, "lowest": 4}
_TITLE = 200
_DEPENDS = ("deps", "depends_on", "dependsOn", "dependencies", "blocked_by", "blockedBy")


class OlderTicket(NamedTuple):
    """A ticket of the older Marvin: its new id, its data, and the modification time of its file.

    The time is in seconds since the epoch.
    """

    id: str
    given: Mapping[str, Any]
    when: float

    @property
    def title(self) -> str:
        """Its title on one line."""
        found = one_line(str(self.given.get("title") or self.given.get("name") or ""), _TITLE).lstrip("- ")
        return found or "Untitled"

    def text(self, ids: Mapping[str, str]) -> str:
        """The ticket as Markdown. `ids` maps old ids to new ones."""
        lines = ["---", *(f"{name}: {value}" for name, value in self._head(ids).items()), "---", f"# {self.title}", ""]
        description = _paragraphs(self.given.get("description") or self.given.get("body"))
        if description:
            lines += [description, ""]
        given = self.given.get("notes")
        notes = [note for one in (given if isinstance(given, list) else [given]) if (note := _note(one, self._made()))]
        return "\n".join([*lines, *(["## Notes", "", *notes] if notes else [])]) + "\n"

    def _head(self, ids: Mapping[str, str]) -> dict[str, str]:
        deps = [_known(one, ids) for name in _DEPENDS for one in _listed(self.given.get(name))]
        tags = self.given.get("tags")
        names = split_tags(tags if isinstance(tags, str) else ",".join(str(tag) for tag in _listed(tags)))
        kind = str(self.given.get("type") or self.given.get("ticket_type") or self.given.get("ticketType") or "")
        head = {
            "id": self.id,
            "status": _STATUSES.get(re.sub(r"[\s-]+", "_", str(self.given.get("status", "")).strip().lower()), "open"),
            "deps": f"[{', '.join(dict.fromkeys(filter(None, deps)))}]",
            "links": "[]",
            "created": self._made(),
            "type": kind.lower() if kind.lower() in _KINDS else "task",
            "priority": str(_priority(self.given.get("priority"))),
        }
        parent = _known(self.given.get("parent") or self.given.get("parent_id"), ids)
        listable = [re.sub(r"[\[\],'\"]", "", tag) for tag in names]
        return {
            **head,
            **({"parent": parent} if parent else {}),
            **({"tags": f"[{', '.join(filter(None, listable))}]"} if any(listable) else {}),
        }

    def _made(self) -> str:
        times = (self.given[name] for name in ("created", "created_at", "createdAt") if name in self.given)
        return _stamp(next(times, 0), _stamp(self.when, "1970-01-01T00:00:00Z"))


def older_tickets(name: str, content: bytes, when: float) -> Iterator[OlderTicket]:
    """The tickets in a file.

    Args:
        name: the file's name without the extension, used for a missing id.
        when: the file's modification time in seconds since the epoch, used for missing times.

    Raises:
        FormError: it contains no tickets.
    """
    data = parsed(content)
    if isinstance(data, Mapping) and isinstance(data.get("tickets"), (list, Mapping)):
        data = data["tickets"]
    if isinstance(data, Mapping) and data and not _is_ticket(data):
        if not all(isinstance(value, Mapping) for value in data.values()):
            raise FormError("it contains no ticket")
        data = [{"id": key, **value} for key, value in data.items()]
    found = data if isinstance(data, list) else [data]
    for number, given in enumerate(found):
        if not isinstance(given, Mapping) or not _is_ticket(given):
            raise FormError("it contains no ticket")
        stem = name if len(found) == 1 else f"{name}-{number + 1}"
        yield OlderTicket(usable_id(old_id(given) or stem), {"id": stem, **given}, when)


def old_id(given: Mapping[str, Any]) -> str:
    """The old id of a ticket; empty if it had none."""
    found = given.get("id", given.get("ticket_id"))
    return str(found).strip() if isinstance(found, (str, int)) and not isinstance(found, bool) else ""


def usable_id(old: str) -> str:
    """An id that is valid in file names and lists: the old one, or one derived from it, always the same."""
    return (
        old
        if _ID.fullmatch(old) and not old.endswith(".")
        else f"old-{sha256(old.encode('utf-8', 'replace')).hexdigest()[:8]}"
    )


def _is_ticket(given: Mapping[str, Any]) -> bool:
    return any(isinstance(given.get(name), str) for name in ("title", "name", "description"))


def _known(old: Any, ids: Mapping[str, str]) -> str:
    name = str(old).strip() if isinstance(old, (str, int)) and not isinstance(old, bool) else ""
    return ids.get(name, usable_id(name)) if name else ""


def _listed(value: Any) -> Sequence[Any]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")] if value.strip() else []
    return value if isinstance(value, list) else []


def _priority(value: Any) -> int:
    if isinstance(value, str) and value.strip().lower() in _PRIORITIES:
        return _PRIORITIES[value.strip().lower()]
    try:
        return min(4, max(0, int(str(value).strip().lower().removeprefix("p"))))
    except ValueError:
        return 2


def _note(given: Any, made: str) -> str:
    """A note under its time, in the tickets' format; empty if it has no text."""
    if isinstance(given, Mapping):
        text = next(
            (given[name] for name in ("text", "note", "content", "body") if isinstance(given.get(name), str)), ""
        )
        times = (
            given[name] for name in ("time", "timestamp", "created", "created_at", "createdAt", "date") if name in given
        )
        made = _stamp(next(times, 0), made)
    else:
        text = str(given or "")
    text = _paragraphs(text)
    return f"**{made}**\n\n{text}\n" if text else ""


def _paragraphs(value: Any) -> str:
    """A text of several lines without control characters."""
    if isinstance(value, (dict, list)):
        value = json.dumps(value, ensure_ascii=False)
    text = str(value or "").replace("\r\n", "\n")
    return "\n".join(
        "".join(sign for sign in line if sign.isprintable() or sign == "\t") for line in text.split("\n")
    ).strip()


def _stamp(value: Any, otherwise: str) -> str:
    """A time in the tickets' format: UTC, to the second."""
    found = seconds(value)
    if not found:
        return otherwise
    try:
        return f"{datetime.fromtimestamp(found, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError, OSError):
        return otherwise
