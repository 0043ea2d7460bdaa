"""Timers and stopwatches. They are kept in the profile, so that they go on when Marvin ends."""

from __future__ import annotations

import math
from typing import Annotated, Any

from marvin_core import Field, JsonFile, ToolContext, ToolError, ToolResult, call_of, tool

Timer = dict[str, Any]
"""`name` as it was given, `started` in seconds since the epoch, `duration` in seconds, 0 for a stopwatch."""

_LONGEST = 100 * 366 * 24 * 60 * 60


@tool(access=["write"], unlisted=["started"])
async def timer_start(
    name: Annotated[str, "What the timer is for; unique among the running ones"],
    duration_seconds: Annotated[int, Field(ge=0), "A countdown of so many seconds; 0 is a stopwatch"] = 0,
    started: Annotated[float, Field(ge=0), "When it began, in seconds since the epoch; 0 is now"] = 0,
    *,
    context: ToolContext,
) -> ToolResult:
    """Start a countdown, or a stopwatch. It runs on when the session ends; it makes no sound, so check it."""
    name = " ".join(name.split())
    if not name:
        raise ToolError("A timer needs a name. Call timer_start with what it is for, as in name='tea'.")
    if duration_seconds > _LONGEST:
        raise ToolError(f"{duration_seconds} seconds are more than a hundred years. Use a shorter countdown.")
    now = context.clock.now()

    def start(timers: dict[str, Timer]) -> None:
        known = timers.get(name.casefold())
        if known is not None and not _is_over(known, now):
            raise ToolError(
                f"There is a timer of that name already: {_described(known, now)}. "
                "Stop it with timer_stop first, or choose another name."
            )
        timers[name.casefold()] = {"name": name, "started": started or now, "duration": duration_seconds}

    await _file(context).change(start)
    kind = f"Countdown {name!r} of {_span(duration_seconds)}" if duration_seconds else f"Stopwatch {name!r}"
    return ToolResult(content=f"{kind} started.", undo=call_of(timer_stop, name=name))


@tool(access=["read"])
async def timer_check(
    name: Annotated[str, "The timer; all without it"] = "",
    *,
    context: ToolContext,
) -> str:
    """Tell how much of a countdown is left, or how long a stopwatch has been running."""
    timers = await _file(context).read()
    now = context.clock.now()
    if name.strip():
        return _described(_found(timers, name), now)
    if not timers:
        return "No timer is running. timer_start starts one."
    return "\n".join(_described(timer, now) for timer in sorted(timers.values(), key=lambda timer: timer["started"]))


@tool(access=["write"])
async def timer_stop(name: Annotated[str, "The timer"], *, context: ToolContext) -> ToolResult:
    """Stop a timer and tell how long it ran."""
    now = context.clock.now()

    def stop(timers: dict[str, Timer]) -> Timer:
        timer = _found(timers, name)
        del timers[_key(name)]
        return timer

    timer = await _file(context).change(stop)
    undo = call_of(
        timer_start, name=timer["name"], duration_seconds=int(timer["duration"]), started=float(timer["started"])
    )
    return ToolResult(content=_ended(timer, now), undo=undo)


def _ended(timer: Timer, now: float) -> str:
    ran = _span(_elapsed(timer, now))
    if not timer["duration"]:
        return f"Stopwatch {timer['name']!r} stopped after {ran}."
    if _is_over(timer, now):
        return f"Countdown {timer['name']!r} stopped. It was over {_span(-_left(timer, now))} ago."
    return f"Countdown {timer['name']!r} stopped after {ran}, with {_span(_left(timer, now))} left."


def _file(context: ToolContext) -> JsonFile[dict[str, Timer]]:
    return JsonFile(context.profile_folder / "timers.json", dict, _check, timeouts=context.timeouts)


def _key(name: str) -> str:
    return " ".join(name.split()).casefold()


def _check(timers: dict[str, Any]) -> None:
    """Raise a ValueError where the file holds something else than what is written there."""
    for timer in timers.values():
        if not (isinstance(timer, dict) and isinstance(timer.get("name"), str) and _is_time(timer.get("started"))):
            raise ValueError(f"{timer!r} is no timer")
        if not (_is_time(timer.get("duration")) and 0 <= timer["duration"] <= _LONGEST):
            raise ValueError(f"{timer!r} has no duration")


def _is_time(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _found(timers: dict[str, Timer], name: str) -> Timer:
    timer = timers.get(_key(name))
    if timer is None:
        names = ", ".join(repr(timer["name"]) for timer in timers.values()) or "none"
        raise ToolError(f"There is no timer {name!r}. Running: {names}. Use one of these, or start it.")
    return timer


def _elapsed(timer: Timer, now: float) -> float:
    # The clock of the machine may have been set back in the meantime.
    return max(0.0, now - float(timer["started"]))


def _left(timer: Timer, now: float) -> float:
    return float(timer["duration"]) - _elapsed(timer, now)


def _is_over(timer: Timer, now: float) -> bool:
    return bool(timer["duration"]) and _left(timer, now) <= 0


def _described(timer: Timer, now: float) -> str:
    if not timer["duration"]:
        return f"Stopwatch {timer['name']!r}: {_span(_elapsed(timer, now))}"
    head = f"Countdown {timer['name']!r} of {_span(timer['duration'])}"
    left = _left(timer, now)
    return f"{head}: over since {_span(-left)}" if left <= 0 else f"{head}: {_span(left)} left"


def _span(seconds: float) -> str:
    import humanize  # only where a timer is used

    return humanize.precisedelta(round(seconds), minimum_unit="seconds", format="%0.0f")
