"""The tools calendar_add_event and calendar_delete_event."""

from __future__ import annotations

import uuid
from base64 import b64decode, b64encode
from collections.abc import Sequence
from datetime import UTC, date, datetime
from hashlib import sha256
from typing import Annotated, Any, NamedTuple

from marvin_core import ToolContext, ToolError, ToolResult, call_of, in_thread, one_line, tool

from ..scheduling.jobs import Job
from .choosing import TITLE, chosen, digest
from .formatting import span
from .one_day import replaced, without_day
from .reminders import KIND, forget, remind, reminders_of
from .store import CalendarFile
from .text import CalendarText, EventText
from .times import EventTime, event_time

_TITLE, _TEXT = 300, 20_000


@tool(
    access=["write"],
    aliases={"title": ("summary", "name", "event"), "start": ("start_time", "date", "when"), "end": ("end_time",)},
    unlisted=["taken_back"],
)
async def calendar_add_event(
    title: Annotated[str, "Title"],
    start: Annotated[str, "A time such as '2026-11-24 15:00' or 'tomorrow 3pm'; a day for an all-day event"],
    end: Annotated[str, "A time, the last day, or a duration such as 90m; default: an hour or a day"] = "",
    location: Annotated[str, "Where"] = "",
    description: Annotated[str, "Notes"] = "",
    taken_back: Annotated[dict[str, Any] | None, "For /undo"] = None,
    *,
    context: ToolContext,
) -> ToolResult:
    """Add an event to the calendar, with reminders an hour and half an hour before."""
    if taken_back is not None:
        return await _restore(context, taken_back)
    title, location = one_line(title, _TITLE), one_line(location, _TITLE)
    if not title:
        raise ToolError("The event needs a title, such as title='Dentist'.")
    now = context.clock.now()
    when = await in_thread(lambda: event_time(start, end, now))
    uid = f"{uuid.uuid4()}@marvin"
    event = await in_thread(lambda: _event(uid, when, (title, location, _clean(description)), now))

    def add(text: CalendarText) -> tuple[bytes, None]:
        return text.with_event(event), None

    await CalendarFile(context).change(add)
    said = await remind(context, reminders_of(uid, title, when, location))
    past = " The event is in the past." if when.begins < now else ""
    inverse = call_of(calendar_delete_event, uid=uid, taken_back={"event": sha256(_lines(event)).hexdigest()})
    return ToolResult(content=f"Added {title!r}, {span(when.start, when.end)} [{uid}].{past} {said}", undo=inverse)


@tool(access=["write"], aliases={"uid": ("id", "event_id"), "title": ("name", "summary")}, unlisted=["taken_back"])
async def calendar_delete_event(
    uid: Annotated[str, "Its id from a list; 'ID 2026-11-24' means only that day of a series"] = "",
    title: Annotated[str, "A part of its title, instead of uid"] = "",
    taken_back: Annotated[dict[str, Any] | None, "For /undo"] = None,
    *,
    context: ToolContext,
) -> ToolResult:
    """Delete an event with all its occurrences, or one day of a series; and its reminders."""
    if not uid.strip() and not title.strip():
        raise ToolError("Choose an event: give its uid, or a part of its title.")
    if taken_back is not None and context.origin != "undo":
        raise ToolError("taken_back is for /undo only. Leave it out.")

    deleted = await CalendarFile(context).change(lambda text: _deleted(text, uid.strip(), title.strip(), taken_back))
    first = deleted.gone[0]
    gone, said = ((), "") if deleted.day else await forget(context, first.uid)
    what = " with all its occurrences" if any(event.is_recurring for event in deleted.gone) else ""
    what = f" of {deleted.day:%a %Y-%m-%d}; its other occurrences are kept" if deleted.day else what
    content = f"Deleted {one_line(first.title, TITLE)!r}{what}.{said}"
    if taken_back is not None:
        return ToolResult(content=content)
    inverse = {
        "uid": first.uid,
        "title": one_line(first.title, TITLE),
        "pieces": [[event.span.start, b64encode(event.data).decode("ascii")] for event in deleted.gone],
        "left": sha256(deleted.left).hexdigest(),
        "reminders": [[job.due, job.title, job.text, job.label] for job in gone],
        **({"edited": deleted.edited} if deleted.edited else {}),
        **({"others": deleted.others} if deleted.others else {}),
    }
    return ToolResult(content=content, undo=call_of(calendar_add_event, title="", start="", taken_back=inverse))


class _Deleted(NamedTuple):
    """The result of a deletion.

    `left` is the hash of the calendar without the events. `edited` is the hash of the event that lost one day,
    and `others` is the number of unrelated events with the same id.
    """

    gone: Sequence[EventText]
    left: bytes
    day: date | None = None
    edited: str = ""
    others: int = 0


def _deleted(text: CalendarText, uid: str, title: str, taken_back: dict[str, Any] | None) -> tuple[bytes, _Deleted]:
    events, day = chosen(list(text.events()), uid, title)
    if taken_back is not None and [digest(event) for event in events] != [taken_back["event"]]:
        raise ToolError("The event was changed since then. Delete it by hand if you do not want it.")
    if day is None:
        after = text.without([event.span for event in events])
        others = sum(event.uid == events[0].uid for event in CalendarText(after).events())
        return after, _Deleted(events, after, others=others)
    change = without_day(text, events, day)
    left, after = replaced(text, change)
    edited = sha256(_lines(change.text)).hexdigest()
    return after, _Deleted(change.gone, left, day, edited)


def _event(uid: str, when: EventTime, texts: tuple[str, str, str], now: float) -> bytes:
    """An event as iCalendar text, with times in UTC, which need no time zone definition."""
    from icalendar import Event

    event = Event()
    event.add("uid", uid)
    event.add("dtstamp", datetime.fromtimestamp(now, UTC))
    for name, moment in (("dtstart", when.start), ("dtend", when.end)):
        event.add(name, moment.astimezone(UTC) if isinstance(moment, datetime) else moment)
    for name, text in zip(("summary", "location", "description"), texts, strict=True):
        if text:
            event.add(name, text)
    return bytes(event.to_ical())


def _clean(text: str) -> str:
    """A text of several lines without control characters."""
    if len(text) > _TEXT:
        raise ToolError(f"The description has {len(text):,} characters; the limit is {_TEXT:,}. Shorten it.")
    return "\n".join(one_line(line, _TEXT) for line in text.strip().splitlines())


def _lines(event: bytes) -> bytes:
    return event.replace(b"\r\n", b"\n")


async def _restore(context: ToolContext, taken_back: dict[str, Any]) -> ToolResult:
    """Restore deleted events: at their place if the calendar is unchanged since, else after the last event."""
    if context.origin != "undo":
        raise ToolError("taken_back is for /undo only. Leave it out.")
    pieces = [(int(place), b64decode(data)) for place, data in taken_back["pieces"]]

    def put(text: CalendarText) -> tuple[bytes, None]:
        uid = taken_back["uid"]
        data = text.data
        if "edited" in taken_back:
            now = [event for event in text.events() if digest(event) == taken_back["edited"]]
            if not now:
                raise ToolError("The event was changed since then. Add the day by hand if you want it.")
            data = text.without([now[0].span])
        elif uid and sum(event.uid == uid for event in text.events()) > taken_back.get("others", 0):
            raise ToolError(f"An event {uid} exists again. Delete that one first.")
        if sha256(data).hexdigest() == taken_back["left"]:
            for place, piece in sorted(pieces):
                data = data[:place] + piece + data[place:]
            return data, None
        for _, piece in pieces:
            data = CalendarText(data).with_event(_lines(piece).replace(b"\n", b"\r\n"))
        return data, None

    await CalendarFile(context).change(put)
    uid = taken_back["uid"]
    jobs = [
        Job(due=due, title=title, text=text, kind=KIND, label=label, group=uid)
        for due, title, text, label in taken_back["reminders"]
    ]
    said = f" {await remind(context, jobs)}" if jobs else ""
    return ToolResult(content=f"The event {taken_back['title']!r} is in the calendar again.{said}")
