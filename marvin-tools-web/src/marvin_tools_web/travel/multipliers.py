"""How much longer a journey takes than on an empty road in fine weather: rules of thumb, each shown with its reason."""

from __future__ import annotations

from collections.abc import Mapping

from marvin_core import Record

from . import wmo
from .osrm import Mode


class Multiplier(Record):
    """A factor for a duration, and why."""

    factor: float
    reason: str


_WEEKDAY: tuple[tuple[int, float, str], ...] = (
    (6, 1.0, "night"),
    (7, 1.15, "early morning"),
    (9, 1.35, "morning rush"),
    (16, 1.15, "daytime"),
    (19, 1.4, "evening rush"),
    (22, 1.05, "evening"),
    (24, 1.0, "night"),
)
"""The factor for cars, Monday to Friday, up to each hour."""
_WEEKEND: tuple[tuple[int, float, str], ...] = ((10, 1.0, "morning"), (19, 1.1, "daytime"), (24, 1.0, "evening"))
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_RUSH = 1.3

_WEATHER: Mapping[str, tuple[frozenset[int], Mapping[Mode, float]]] = {
    "fog": (frozenset({45, 48}), {"driving": 1.15, "cycling": 1.05, "foot": 1.0}),
    "light": (frozenset({51, 53, 61, 80}), {"driving": 1.05, "cycling": 1.1, "foot": 1.0}),
    "rain": (frozenset({55, 63, 81}), {"driving": 1.1, "cycling": 1.15, "foot": 1.05}),
    "heavy rain": (frozenset({65, 82}), {"driving": 1.2, "cycling": 1.3, "foot": 1.15}),
    "ice": (frozenset({56, 57, 66, 67}), {"driving": 1.5, "cycling": 1.8, "foot": 1.3}),
    "light snow": (frozenset({71, 77, 85}), {"driving": 1.2, "cycling": 1.3, "foot": 1.1}),
    "snow": (frozenset({73}), {"driving": 1.35, "cycling": 1.6, "foot": 1.25}),
    "heavy snow": (frozenset({75, 86}), {"driving": 1.5, "cycling": 2.0, "foot": 1.4}),
    "thunderstorm": (frozenset({95, 96, 99}), {"driving": 1.25, "cycling": 1.5, "foot": 1.2}),
}
_FRESH, _STRONG = 30.0, 50.0
"""Wind speeds, in km/h."""


def time_of_day(mode: Mode, weekday: int, hour: int, minute: int) -> Multiplier:
    """The factor for the traffic of an hour.

    Args:
        weekday: 0 for Monday.
    """
    table = _WEEKDAY if weekday < 5 else _WEEKEND
    factor, name = next((factor, name) for until, factor, name in table if hour < until)
    if mode != "driving":
        # Cyclists wait at more lights in the rush hour; walkers are not affected.
        factor = 1.05 if mode == "cycling" and factor >= _RUSH else 1.0
    return Multiplier(factor=factor, reason=f"{_DAYS[weekday]} {hour:02}:{minute:02}, {name}")


def weather(mode: Mode, code: int | None, wind: float | None) -> Multiplier:
    """The factor for the weather; `wind` is in km/h."""
    factor, reason = 1.0, wmo.words(code)
    for codes, factors in _WEATHER.values():
        if code in codes:
            factor = factors[mode]
    if wind is not None and wind >= _FRESH and mode != "driving":
        blown = 1.05 if mode == "foot" else (1.25 if wind >= _STRONG else 1.1)
        factor, reason = factor * blown, f"{reason}, wind {wind:.0f} km/h"
    return Multiplier(factor=round(factor, 3), reason=reason)
