"""The tool update_preferences: what the user prefers."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from marvin_core import MarvinError, ToolContext, ToolError, ToolResult, call_of, in_thread, tool

from ..undoing import before_of, change

Preference: TypeAlias = Literal[
    "distance_unit",
    "dietary",
    "spice_tolerance",
    "favorite_cuisines",
    "avoid_cuisines",
    "has_car",
    "max_distance_km",
    "budget",
    "accessibility",
    "notes",
]
_LISTS = frozenset({"dietary", "favorite_cuisines", "avoid_cuisines", "accessibility"})
_UNITS = {
    **dict.fromkeys(("miles", "mile", "mi"), "miles"),
    **dict.fromkeys(("kilometers", "kilometer", "kilometres", "kilometre", "km"), "kilometers"),
}
_YES_OR_NO = {"yes": True, "true": True, "no": False, "false": False}


@tool(access=["write"], unlisted=["taken_back"])
async def update_preferences(
    *,
    key: Annotated[Preference, "Which preference"],
    action: Annotated[Literal["set", "add", "remove"], "add and remove change a list; remove ends any other"] = "set",
    value: Annotated[str, "Its value; several of a list are separated by commas"],
    taken_back: Annotated[dict[str, Any] | None, "For /undo"] = None,
    context: ToolContext,
) -> ToolResult:
    """Keep what the user prefers, in the profile. Where the user states something lasting, such as a diet, units or a
    tone (notes), offer once to keep it, and say in one line what was kept."""
    results: list[Any] = []

    def put(before: Any) -> Any:
        back = taken_back is not None
        after = before_of(context, taken_back or {}, before) if back else _changed(key, before, action, value.strip())
        results[:] = [change(before, after), after]
        if isinstance(before, list) and isinstance(after, list):
            before[:] = after  # the list itself knows how it is written, and the comment behind it
            return before
        return after

    try:
        await in_thread(lambda: context.session.change_preference(key, put))
    except ToolError:
        raise
    except (MarvinError, OSError) as error:
        raise ToolError(f"The preference was not saved: {error}") from error
    done, after = results
    said = f"{key} is {_told(after)} now."
    if done["before"] == done["after"] or taken_back is not None:
        return ToolResult(content=said)
    return ToolResult(content=said, undo=call_of(update_preferences, key=key, value="", taken_back=done))


def _changed(key: str, before: Any, action: str, value: str) -> Any:
    """The new value of a preference; None where none is left."""
    if key in _LISTS:
        return _changed_list(before, action, [word.strip() for word in value.split(",") if word.strip()])
    if action == "add":
        raise ToolError(f"{key} holds one value and no list. Call update_preferences with action='set'.")
    return None if action == "remove" else _typed(key, value)


def _changed_list(before: Any, action: str, words: list[str]) -> list[str] | None:
    known = [str(word) for word in before] if isinstance(before, list) else [str(before)] if before else []
    folded = {word.casefold() for word in words}
    if action == "remove":
        missing = folded - {word.casefold() for word in known}
        if missing:
            raise ToolError(f"There is no {', '.join(sorted(missing))} to remove; there is {_told(known or None)}.")
        known = [word for word in known if word.casefold() not in folded]
    elif action == "add":
        known += [word for word in words if word.casefold() not in {one.casefold() for one in known}]
    else:
        known = words
    return known or None


def _typed(key: str, value: str) -> Any:
    if key == "has_car":
        if value.casefold() not in _YES_OR_NO:
            raise ToolError(f"has_car is yes or no, not {value!r}.")
        return _YES_OR_NO[value.casefold()]
    if key == "distance_unit":
        if value.casefold() not in _UNITS:
            raise ToolError(f"{value!r} is no unit of distances here. Give miles or kilometers.")
        return _UNITS[value.casefold()]
    if key == "max_distance_km":
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not 0 <= number < float("inf"):
            raise ToolError(f"max_distance_km is a number of kilometres, as in 5, not {value!r}.")
        return int(number) if number.is_integer() else number
    return value or None


def _told(value: Any) -> str:
    if value is None:
        return "not set"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
