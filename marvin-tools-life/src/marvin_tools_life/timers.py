"""Timers and stopwatches, stored in the profile, so that they continue after Marvin exits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from marvin_core import (
    Field,
    JsonFile,
    ToolContext,
    ToolError,
    ToolResult,
    call_of,
    did_you_mean,
    near_names,
    one_line,
    tool,
)

from .names import folded
from .undo import Change, before_of, change

Timer = dict[str, Any]
"""`name` as given, `started` in seconds since the epoch, `duration` in seconds, 0 for a stopwatch."""

_LONGEST = 100 * 366 * 24 * 60 * 60
_LATEST = 10**11
"""Seconds since the epoch: some thousand years from now."""
_NAME = 100
"""Characters of a name."""
_LISTED = 100
_NAMED = 10


@tool(access=["write"], unlisted=["taken_back"])
async def timer_start(
    name: Annotated[str, "Its purpose; unique among running timers"],
    duration_seconds: Annotated[int, Field(ge=0), "Seconds of a countdown; 0 for a stopwatch"] = 0,
    taken_back: Annotated[dict[str, Any] | None, "For /undo"] = None,
    *,
    context: ToolContext,
) -> ToolResult:
    """Start a countdown, or a stopwatch. It runs on when the session ends; it makes no sound, so check it."""
    name = " ".join(name.split())
    if taken_back is not None:
        return await _restored(context, name, taken_back)
    if not name or len(name) > _NAME:
        raise ToolError(
            f"A timer needs a name of 1 to {_NAME} characters. Call timer_start with its purpose, such as name='tea'."
        )
    if duration_seconds > _LONGEST:
        raise ToolError("A countdown cannot be longer than a hundred years. Use a shorter countdown.")
    now = context.clock.now()

    def start(timers: dict[str, Timer]) -> Change:
        known = timers.get(folded(name))
        if known is not None and not _is_over(known, now):
            raise ToolError(
                f"A timer with that name already exists: {_described(known, now)}. Stop it with timer_stop first, or "
                "choose another name."
            )
        timers[folded(name)] = {"name": name, "started": now, "duration": duration_seconds}
        return change(known, timers[folded(name)], context)

    done = await _file(context).change(start)
    kind = f"Countdown {name!r} of {_span(duration_seconds)}" if duration_seconds else f"Stopwatch {name!r}"
    return ToolResult(content=f"{kind} started.", undo=call_of(timer_start, name=name, taken_back=done))


@tool(access=["read"])
async def timer_check(
    name: Annotated[str, "The timer; default: all"] = "",
    *,
    context: ToolContext,
) -> str:
    """Tell how much of a countdown is left, or how long a stopwatch has been running."""
    timers = await _file(context).read()
    now = context.clock.now()
    if name.strip():
        return _described(_found(timers, name), now)
    if not timers:
        return "No timer is running. Use timer_start to start one."
    return "\n".join(_listed(timers.values(), now))


@tool(access=["write"])
async def timer_stop(name: Annotated[str, "The timer"], *, context: ToolContext) -> ToolResult:
    """Stop a timer and tell how long it ran."""
    now = context.clock.now()

    def stop(timers: dict[str, Timer]) -> Timer:
        timer = _found(timers, name)
        del timers[folded(name)]
        return timer

    timer = await _file(context).change(stop)
    undo = call_of(timer_start, name=timer["name"], taken_back=change(timer, None, context))
    return ToolResult(content=_ended(timer, now), undo=undo)


async def _restored(context: ToolContext, name: str, taken_back: Change) -> ToolResult:
    """Restore a timer to its state before a call."""

    def restore(timers: dict[str, Timer]) -> None:
        before = before_of(context, taken_back, timers.get(folded(name)))
        timers.pop(folded(name), None)
        if before is not None:
            timers[folded(name)] = before

    await _file(context).change(restore)
    return ToolResult(content=f"The timer {name!r} was restored.")


def _listed(timers: Iterable[Timer], now: float) -> list[str]:
    """The timers, the oldest first; if there are many, the latest ones."""
    ordered = sorted(timers, key=lambda timer: float(timer["started"]))
    left = len(ordered) - _LISTED
    lines = [_described(timer, now) for timer in ordered[max(0, left) :]]
    return [*lines, f"{left:,} older ones were left out. Give a name to see one of them."] if left > 0 else lines


def _ended(timer: Timer, now: float) -> str:
    ran = _span(_elapsed(timer, now))
    if not timer["duration"]:
        return f"Stopwatch {_name(timer)} stopped after {ran}."
    if _is_over(timer, now):
        return f"Countdown {_name(timer)} stopped. It ended {_span(-_left(timer, now))} ago."
    return f"Countdown {_name(timer)} stopped after {ran}, with {_span(_left(timer, now))} left."


def _file(context: ToolContext) -> JsonFile[dict[str, Timer]]:
    return JsonFile(context.profile_folder / "timers.json", dict, _check, timeouts=context.timeouts)


def _check(timers: dict[str, Any]) -> None:
    """Raise a ValueError if the file has unexpected content."""
    for timer in timers.values():
        if not (isinstance(timer, dict) and isinstance(timer.get("name"), str)):
            raise ValueError(f"{timer!r} is not a timer")
        if not (_is_within(timer.get("started"), _LATEST) and _is_within(timer.get("duration"), _LONGEST)):
            raise ValueError(f"{timer!r} has no start or no duration")


def _is_within(value: object, most: float) -> bool:
    return isinstance(value, (int, float)) and 0 <= value <= most


def _found(timers: dict[str, Timer], name: str) -> Timer:
    timer = timers.get(folded(name))
    if timer is None:
        names = [timer["name"] for timer in timers.values()]
        shown = ", ".join(repr(one_line(one, _NAME)) for one in names[:_NAMED]) or "none"
        more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
        near = " ".join(filter(None, (did_you_mean(near_names(name, names)), f"Running: {shown}{more}.")))
        raise ToolError(f"There is no timer {one_line(name, _NAME)!r}. {near} Use one of these, or start it.")
    return timer


def _name(timer: Timer) -> str:
    return repr(one_line(timer["name"], _NAME))


def _elapsed(timer: Timer, now: float) -> float:
    # The clock of the machine may have been set back in the meantime.
    return max(0.0, now - float(timer["started"]))


def _left(timer: Timer, now: float) -> float:
    return float(timer["duration"]) - _elapsed(timer, now)


def _is_over(timer: Timer, now: float) -> bool:
    return bool(timer["duration"]) and _left(timer, now) <= 0


def _described(timer: Timer, now: float) -> str:
    if not timer["duration"]:
        return f"Stopwatch {_name(timer)}: {_span(_elapsed(timer, now))}"
    head = f"Countdown {_name(timer)} of {_span(timer['duration'])}"
    left = _left(timer, now)
    return f"{head}: ended {_span(-left)} ago" if left <= 0 else f"{head}: {_span(left)} left"


def _span(seconds: float) -> str:
    import humanize  # only where a timer is used

    return humanize.precisedelta(round(seconds), minimum_unit="seconds", format="%0.0f")
