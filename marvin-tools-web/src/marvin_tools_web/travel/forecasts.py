"""The requests to Open-Meteo, and its answers.

Source: open-meteo.com/en/docs
"""

from __future__ import annotations

from typing import Any

from marvin_core import Record, ToolContext

from ..places.points import Point
from ..services import values
from ..services.catalog import OPEN_METEO
from ..services.client import Params, ServiceClient
from . import wmo

_NOW = (
    "temperature_2m,relative_humidity_2m,apparent_temperature,precipitation,weather_code,wind_speed_10m,"
    "wind_direction_10m"
)
_DAILY = (
    "weather_code,temperature_2m_max,temperature_2m_min,precipitation_sum,precipitation_probability_max,"
    "wind_speed_10m_max,sunrise,sunset,daylight_duration"
)
_WHOLE_DAY = 86_400.0
_MINUTE = 60.0
_WINDS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")


class Now(Record):
    """The current weather: local time as in 2026-11-23T14:15, its code, °C, mm in the given minutes, km/h."""

    time: str
    code: int | None
    temperature: float
    feels_like: float | None = None
    humidity: float | None = None
    rain: float | None = None
    wind: float | None = None
    wind_from: str = ""
    minutes: int = 15


class Day(Record):
    """The weather of a day: °C, mm, %, km/h, and sunrise and sunset in local time."""

    date: str
    code: int | None
    highest: float | None
    lowest: float | None
    rain: float | None
    chance: float | None
    wind: float | None
    sun: str


class Forecast(Record):
    """The weather at a point."""

    zone: str
    now: Now
    days: tuple[Day, ...]


async def forecast(context: ToolContext, at: Point, days: int) -> Forecast:
    """The current weather and the forecast of the next days.

    Raises:
        RequestFailed: there is no valid answer.
    """
    client = ServiceClient(context, OPEN_METEO)
    params: Params = {
        "latitude": round(at.latitude, 5),
        "longitude": round(at.longitude, 5),
        "current": _NOW,
        "daily": _DAILY,
        "timezone": "auto",
        "forecast_days": days,
    }
    return await client.get_json("forecast", lambda answer: read(answer, days), params=params)


def read(answer: Any, most: int) -> Forecast:
    """The forecast in an answer.

    Raises:
        ValueError: it is not a valid answer.
    """
    temperature = values.number(answer, "current", "temperature_2m")
    if temperature is None:
        raise ValueError("there is no temperature")
    dates = values.required(answer, "daily", "time")[:most]
    direction = values.number(answer, "current", "wind_direction_10m")
    now = Now(
        time=values.text(answer, "current", "time"),
        code=values.whole(answer, "current", "weather_code"),
        temperature=temperature,
        feels_like=values.number(answer, "current", "apparent_temperature"),
        humidity=values.number(answer, "current", "relative_humidity_2m"),
        rain=values.number(answer, "current", "precipitation"),
        wind=values.number(answer, "current", "wind_speed_10m"),
        wind_from=_WINDS[round((direction % 360) / 45) % 8] if direction is not None else "",
        minutes=round((values.number(answer, "current", "interval") or 15 * _MINUTE) / _MINUTE),
    )
    zone = values.text(answer, "timezone_abbreviation") or values.text(answer, "timezone")
    return Forecast(zone=zone, now=now, days=tuple(_day(answer, index) for index in range(len(dates))))


def _day(answer: Any, index: int) -> Day:
    def number(name: str) -> float | None:
        return values.number(answer, "daily", name, index)

    return Day(
        date=values.text(answer, "daily", "time", index),
        code=values.whole(answer, "daily", "weather_code", index),
        highest=number("temperature_2m_max"),
        lowest=number("temperature_2m_min"),
        rain=number("precipitation_sum"),
        chance=number("precipitation_probability_max"),
        wind=number("wind_speed_10m_max"),
        sun=_sun(
            values.text(answer, "daily", "sunrise", index)[11:16],
            values.text(answer, "daily", "sunset", index)[11:16],
            number("daylight_duration"),
        ),
    )


def _sun(rises: str, sets: str, lasts: float | None) -> str:
    """Sunrise and sunset. Polar days have none, and the service sends arbitrary times for them."""
    if lasts is not None and lasts <= 0:
        return "does not rise"
    if lasts is not None and lasts >= _WHOLE_DAY - _MINUTE:
        return "does not set"
    return f"{rises} to {sets}" if rises and sets and rises != sets else ""


def _degrees(value: float) -> str:
    """A temperature in whole degrees, without -0."""
    return str(round(value))


def now_in_words(now: Now, zone: str) -> str:
    """The current weather, on one line."""
    facts = [f"{_degrees(now.temperature)} °C, {wmo.words(now.code)}"]
    if now.feels_like is not None:
        facts.append(f"feels like {_degrees(now.feels_like)} °C")
    if now.humidity is not None:
        facts.append(f"humidity {now.humidity:.0f} %")
    if now.wind is not None:
        facts.append(f"wind {now.wind:.0f} km/h{f' from {now.wind_from}' if now.wind_from else ''}")
    if now.rain:
        facts.append(f"{now.rain:g} mm of precipitation in the last {now.minutes} minutes")
    at = f"{now.time.replace('T', ' ')} {zone}".strip()
    return f"Now ({at}): {'; '.join(facts)}"


def day_in_words(day: Day) -> str:
    """The weather of a day, on one line."""
    facts = [wmo.words(day.code)]
    if day.lowest is not None and day.highest is not None:
        facts.append(f"{_degrees(day.lowest)} to {_degrees(day.highest)} °C")
    if day.rain is not None:
        chance = f" ({day.chance:.0f} % chance)" if day.chance is not None else ""
        facts.append(f"precipitation {day.rain:g} mm{chance}")
    if day.wind is not None:
        facts.append(f"wind up to {day.wind:.0f} km/h")
    if day.sun:
        facts.append(f"sun {day.sun}")
    return f"{day.date}: {'; '.join(facts)}"
