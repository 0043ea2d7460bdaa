"""The tools about the user: which profile is used, and what the user prefers."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from marvin_core import MarvinError, ToolContext, ToolError, in_thread, tool

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
_YES_OR_NO = {"yes": True, "true": True, "no": False, "false": False}


@tool(access=["write"])
async def switch_profile(
    profile_name: Annotated[str, "The profile; one that is not there yet is made"],
    *,
    context: ToolContext,
) -> str:
    """Use another profile from now on: its preferences, saved places and chat log."""
    name = profile_name.strip()
    session = context.session
    try:
        folder = await in_thread(lambda: session.switch_profile(name))
    except (MarvinError, OSError) as error:
        raise ToolError(f"The profile was not switched: {error}") from error
    return f"The profile is {name} now ({folder})."


@tool(access=["write"])
async def update_preferences(
    *,
    key: Annotated[Preference, "Which preference"],
    action: Annotated[Literal["set", "add", "remove"], "add and remove change a list; remove ends any other"] = "set",
    value: Annotated[str, "Its value; several of a list are separated by commas"],
    context: ToolContext,
) -> str:
    """Remember what the user prefers, in preferences.yaml of the profile."""
    results: list[Any] = []

    def change(before: Any) -> Any:
        results.append(_changed(key, before, action, value.strip()))
        return results[-1]

    try:
        await in_thread(lambda: context.session.change_preference(key, change))
    except ToolError:
        raise
    except (MarvinError, OSError) as error:
        raise ToolError(f"The preference was not saved: {error}") from error
    return f"{key} is {_told(results[-1])} now."


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
