"""weather_forecast: what Open-Meteo is asked, what its answers become, and every way in which it fails."""

from __future__ import annotations

from typing import Any

import pytest

from marvin_core.testing import HttpReplay, ToolRunner
from tests.tools_web.contracts import Operation, check

URL = "https://api.open-meteo.com/v1/forecast"
# Source: open-meteo.com/en/docs
OPERATION = Operation(
    url=r"https://api\.open-meteo\.com/v1/forecast",
    required={"latitude": r"-?\d+(\.\d+)?", "longitude": r"-?\d+(\.\d+)?"},
    optional={
        "current": r"[a-z0-9_,]+",
        "daily": r"[a-z0-9_,]+",
        "timezone": "auto",
        "forecast_days": r"[1-7]",
    },
)
REPLY: dict[str, Any] = {
    "latitude": 52.52,
    "longitude": 13.419998,
    "generationtime_ms": 0.2,
    "utc_offset_seconds": 3600,
    "timezone": "Europe/Berlin",
    "timezone_abbreviation": "GMT+1",
    "elevation": 38.0,
    "current_units": {"time": "iso8601", "interval": "seconds", "temperature_2m": "°C"},
    "current": {
        "time": "2026-11-23T14:15",
        "interval": 900,
        "temperature_2m": 3.4,
        "relative_humidity_2m": 88,
        "apparent_temperature": -0.6,
        "precipitation": 0.2,
        "weather_code": 61,
        "wind_speed_10m": 17.3,
        "wind_direction_10m": 251,
    },
    "daily_units": {"time": "iso8601", "temperature_2m_max": "°C"},
    "daily": {
        "time": ["2026-11-23", "2026-11-24", "2026-11-25"],
        "weather_code": [61, 3, 96],
        "temperature_2m_max": [4.1, 6.0, None],
        "temperature_2m_min": [-1.2, 0.3, None],
        "precipitation_sum": [3.4, 0.0, None],
        "precipitation_probability_max": [88, 5, None],
        "wind_speed_10m_max": [24.5, 11.0, None],
        "sunrise": ["2026-11-23T07:38", "2026-11-24T07:40", "2026-11-25T07:41"],
        "sunset": ["2026-11-23T16:01", "2026-11-24T16:00", "2026-11-25T15:59"],
    },
}


def test_the_weather_at_coordinates(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", URL, json=REPLY)
    outcome = marvin_tools.call("weather_forecast", latitude=52.52, longitude=13.42)
    assert not outcome.is_error, outcome.text
    assert outcome.text.splitlines() == [
        "Weather at 52.52000,13.42000",
        (
            "Now (2026-11-23 14:15 GMT+1): 3 °C, light rain; feels like -1 °C; humidity 88 %; wind 17 km/h from W; "
            "0.2 mm of precipitation in the last 15 minutes"
        ),
        (
            "2026-11-23: light rain; -1 to 4 °C; precipitation 3.4 mm (88 % chance); wind up to 24 km/h; "
            "sun 07:38 to 16:01"
        ),
        "2026-11-24: overcast; 0 to 6 °C; precipitation 0 mm (5 % chance); wind up to 11 km/h; sun 07:40 to 16:00",
        "2026-11-25: thunderstorm with light hail; sun 07:41 to 15:59",
        "[Source: Open-Meteo (CC BY 4.0).]",
    ]
    check(marvin_http, OPERATION)
    assert outcome.show


def changed(**daily: list[Any]) -> dict[str, Any]:
    return {**REPLY, "daily": {**REPLY["daily"], **daily}}


def test_the_sun_near_the_poles(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    """There are days on which it does not rise, or does not set; the service sends some times for them as well."""
    reply = changed(
        daylight_duration=[0.0, 86_400.0, 30_000.0],
        sunrise=["1970-01-01T00:00", "2026-11-24T00:00", "2026-11-25T10:00"],
        sunset=["1970-01-01T00:00", "2026-11-25T00:00", "2026-11-25T18:20"],
    )
    marvin_http.on("GET", URL, json=reply)
    outcome = marvin_tools.call("weather_forecast", latitude=-90, longitude=180)
    assert [line.rpartition("; ")[2] for line in outcome.text.splitlines()[2:5]] == [
        "sun does not rise",
        "sun does not set",
        "sun 10:00 to 18:20",
    ]
    check(marvin_http, OPERATION)


def test_nothing_is_minus_zero(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    current = {**REPLY["current"], "temperature_2m": -0.3, "apparent_temperature": -0.4, "interval": 3600}
    marvin_http.on("GET", URL, json={**changed(temperature_2m_min=[-0.2, -0.4, 0.0]), "current": current})
    text = marvin_tools.call("weather_forecast", location="52.52,13.42").text
    assert "-0 " not in text
    assert "in the last 60 minutes" in text


@pytest.mark.parametrize(
    "location",
    [{"lat": 52.52, "lng": 13.42}, [52.52, 13.42], {"location": {"latitude": "52.52", "longitude": "13.42"}}],
)
def test_a_place_may_be_an_object(marvin_tools: ToolRunner, marvin_http: HttpReplay, location: Any) -> None:
    marvin_http.on("GET", URL, json=REPLY)
    assert not marvin_tools.call("weather_forecast", location=location, days="2").is_error
    assert marvin_http.requests[0].params["latitude"] == "52.52"
    assert not marvin_tools.call("weather_forecast", lat="52.52", lon="13.42").is_error
