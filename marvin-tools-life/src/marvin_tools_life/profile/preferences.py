"""The tool update_preferences: what the user prefers."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from marvin_core import MarvinError, ToolContext, ToolError, ToolResult, call_of, in_thread, one_line, tool

from ..names import folded
from ..undo import before_of, change

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
_NOTES = "notes"
_BETWEEN = "; "
"""The separator of two notes."""
_LONGEST = 1_000
"""Characters of a preference: the model reads all of them with each request."""
_MOST = 50
"""Entries of a list."""
_UNITS = {
    **dict.fromkeys(("miles", "mile", "mi"), "miles"),
    **dict.fromkeys(("kilometers", "kilometer", "kilometres", "kilometre", "km"), "kilometers"),
}
_YES_OR_NO = {"yes": True, "true": True, "no": False, "false": False}


@tool(access=["write"], unlisted=["taken_back"])
async def update_preferences(
    *,
    key: Annotated[Preference, "Which preference"],
    action: Annotated[
        Literal["set", "add", "remove"],
        "add and remove change a list or the notes; remove deletes any other value",
    ] = "set",
    value: Annotated[str, "Its value; for a list, separated by commas"],
    taken_back: Annotated[dict[str, Any] | None, "For /undo"] = None,
    context: ToolContext,
) -> ToolResult:
    """Keep what the user prefers, in the profile. If the user states something lasting, such as a diet, units, a
    tone (notes) or a home (save_place), offer once to keep it, and say in one line what was kept."""
    results: list[Any] = []

    def put(before: Any) -> Any:
        back = taken_back is not None
        after = before_of(context, taken_back or {}, before) if back else _changed(key, before, action, value.strip())
        results[:] = [change(before, after, context), after]
        if isinstance(before, list) and isinstance(after, list):
            before[:] = after  # the list itself keeps its style and the comment after it
            return before
        return after

    try:
        await in_thread(lambda: context.session.change_preference(key, put))
    except ToolError:
        raise
    except (MarvinError, OSError, ValueError) as error:
        raise ToolError(f"The preference was not saved: {one_line(str(error), _LONGEST)}") from error
    done, after = results
    said = f"{key} is {_told(after)} now."
    if done["before"] == done["after"] or taken_back is not None:
        return ToolResult(content=said)
    return ToolResult(content=said, undo=call_of(update_preferences, key=key, value="", taken_back=done))


def _changed(key: str, before: Any, action: str, value: str) -> Any:
    """The new value of a preference; None if it becomes empty."""
    if len(value) > _LONGEST:
        raise ToolError(f"The value has {len(value):,} characters; the limit is {_LONGEST:,}. Shorten it.")
    if isinstance(before, dict) and action != "set":
        raise ToolError(f"{key} is a mapping in preferences.yaml. Ask the user to change it there.")
    if key in _LISTS:
        return _changed_list(before, action, _words(value))
    if key == _NOTES and action != "set":
        return _changed_notes(str(before or ""), action, value)
    if action == "add":
        raise ToolError(f"{key} is a single value, not a list. Call update_preferences with action='set'.")
    return None if action == "remove" else _typed(key, value)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _changed_list(before: Any, action: str, words: list[str]) -> list[str] | None:
    """The entries of a list; people write one or several without brackets, too."""
    known = [str(word) for word in before] if isinstance(before, list) else _words(str(before or ""))
    names = {folded(word) for word in words}
    if action == "remove":
        missing = names - {folded(word) for word in known}
        if missing:
            raise ToolError(
                f"There is no {', '.join(sorted(missing))} to remove; the current entries are {_told(known or None)}."
            )
        known = [word for word in known if folded(word) not in names]
    elif action == "add":
        known += [word for word in words if folded(word) not in {folded(one) for one in known}]
    else:
        known = words
    if len(known) > _MOST:
        raise ToolError(f"That makes {len(known)} entries; the limit is {_MOST}. Leave some out.")
    return known or None


def _changed_notes(before: str, action: str, value: str) -> str | None:
    """The notes with one added or removed."""
    known = [note.strip() for note in before.split(_BETWEEN.strip()) if note.strip()]
    place = next((i for i, note in enumerate(known) if folded(note) == folded(value)), None)
    if action == "remove":
        if value and place is None and folded(value) != folded(before):
            raise ToolError(f"There is no such note to remove. The notes are: {one_line(before, _LONGEST) or 'none'}")
        left = [note for i, note in enumerate(known) if i != place] if place is not None else []
        return _BETWEEN.join(left) or None
    after = _BETWEEN.join(filter(None, (before.rstrip(" ;\n"), value)))
    if place is not None or not value:
        return before or None
    if len(after) > _LONGEST:
        raise ToolError(
            f"The notes would have {len(after):,} characters; the limit is {_LONGEST:,}. Use shorter notes."
        )
    return after


def _typed(key: str, value: str) -> Any:
    if key == "has_car":
        if value.casefold() not in _YES_OR_NO:
            raise ToolError(f"has_car must be yes or no, not {value!r}.")
        return _YES_OR_NO[value.casefold()]
    if key == "distance_unit":
        if value.casefold() not in _UNITS:
            raise ToolError(f"{value!r} is not a supported unit of distance. Give miles or kilometers.")
        return _UNITS[value.casefold()]
    if key == "max_distance_km":
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not 0 <= number < float("inf"):
            raise ToolError(f"max_distance_km must be a number of kilometres, such as 5, not {value!r}.")
        return int(number) if number.is_integer() else number
    return value or None


def _told(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return one_line(", ".join(map(str, value)) if isinstance(value, list) else str(value), _LONGEST)
