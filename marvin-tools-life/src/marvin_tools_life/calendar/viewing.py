"""The tools calendar_view and calendar_list_upcoming."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from marvin_core import Field, ToolContext, ToolError, ToolResult, in_thread, tool

from .formatting import days_of, lines, month_grid, table
from .reading import agenda
from .store import CalendarFile
from .times import as_time

_YEARS = range(1970, 9000)


@tool(access=["read"])
async def calendar_view(
    month: Annotated[int, Field(ge=0, le=12), "1 to 12; 0 means this month"] = 0,
    year: Annotated[int, "0 means this year"] = 0,
    *,
    context: ToolContext,
) -> ToolResult:
    """Show a month of the calendar, and its events."""
    here = datetime.fromtimestamp(context.clock.now()).astimezone()
    month, year = month or here.month, year or here.year
    if year not in _YEARS:
        raise ToolError(f"There is no calendar of the year {year}. Give one from {_YEARS[0]} to {_YEARS[-1]}.")
    start = as_time(datetime(year, month, 1))  # noqa: DTZ001  # that of the clock on the wall
    end = as_time(datetime(year + month // 12, month % 12 + 1, 1))  # noqa: DTZ001
    text = await CalendarFile(context).read()
    found = await in_thread(lambda: agenda(text, start, end))
    grid = month_grid(year, month, days_of(found.occurrences, year, month))
    said = lines(found) or ["No events."]
    name = grid.partition("\n")[0]
    shown = [table(found.occurrences, name)] if found.occurrences else []
    return ToolResult(content="\n".join([grid, "", *said]), show=shown)


@tool(access=["read"])
async def calendar_list_upcoming(
    days: Annotated[int, Field(ge=1, le=366), "How many days ahead"] = 7,
    *,
    context: ToolContext,
) -> ToolResult:
    """List the events of the next days, and those that are going on."""
    start = datetime.fromtimestamp(context.clock.now()).astimezone()
    text = await CalendarFile(context).read()
    found = await in_thread(lambda: agenda(text, start, start + timedelta(days=days)))
    said = lines(found) or [f"No events in the next {days} days."]
    shown = [table(found.occurrences, f"The next {days} days")] if found.occurrences else []
    return ToolResult(content="\n".join(said), show=shown)
