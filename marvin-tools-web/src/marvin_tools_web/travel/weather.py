"""The tool weather_forecast."""

from __future__ import annotations

from typing import Annotated

from marvin_core import Field, Table, ToolContext, ToolResult, tool

from ..places.adapters import adapting
from ..places.points import point_of
from ..services.backends import source_line
from ..services.catalog import OPEN_METEO
from .forecasts import day_in_words, forecast, now_in_words
from .wmo import words


@tool(
    access=["net"],
    labels=["Open-Meteo"],
    aliases={"location": ["place", "city", "near"], "latitude": ["lat"], "longitude": ["lng", "lon", "long"]},
    adapt=adapting(["location"]),
    probe={"location": "52.52,13.405", "days": 1},
)
async def weather_forecast(
    latitude: Annotated[float | None, "With longitude, instead of location"] = None,
    longitude: Annotated[float | None, "Degrees"] = None,
    days: Annotated[int, Field(ge=1, le=7), "Days, including today"] = 3,
    location: Annotated[str, "A place's name, or 'lat,lng'"] = "",
    *,
    context: ToolContext,
) -> ToolResult:
    """Tell the weather now and of the next days, with sunrise and sunset."""
    at, failures = await point_of(context, latitude, longitude, location, "location, or latitude and longitude")
    found = await forecast(context, at, days)
    lines = [
        f"Weather at {at.shown}",
        now_in_words(found.now, found.zone),
        *map(day_in_words, found.days),
        source_line([OPEN_METEO], failures),
    ]
    rows = [(day.date, words(day.code), day.lowest, day.highest, day.rain, day.sun) for day in found.days]
    columns = ("day", "weather", "from °C", "to °C", "mm", "sun")
    return ToolResult(content="\n".join(lines), show=[Table(columns=columns, rows=rows, title=at.name or at.shown)])
