"""The address book of the profile: save_place, remove_place and list_places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from marvin_core import (
    JsonFile,
    Table,
    ToolContext,
    ToolError,
    ToolResult,
    call_of,
    did_you_mean,
    near_names,
    one_line,
    tool,
)

from ..names import folded
from ..undo import Change, before_of, change

Place: TypeAlias = "dict[str, Any]"
"""`label`, and those of `name`, `address`, `phone`, `website`, `lat`, `lng` and `notes` that are known."""

_TEXTS = ("name", "address", "phone", "website", "notes")
_LABEL = 100
_LONGEST = 2_000
_SHOWN = 300
_NAMED = 20
_LISTED = 200


@tool(
    access=["write"],
    aliases={"lng": ("lon", "longitude"), "lat": ("latitude",), "website": ("url",)},
    unlisted=["taken_back"],
)
async def save_place(
    label: Annotated[str, "The user's name for it, such as home"],
    name: Annotated[str, "Name"] = "",
    address: Annotated[str, "Address"] = "",
    phone: Annotated[str, "Phone"] = "",
    website: Annotated[str, "Website"] = "",
    lat: Annotated[float | None, "Latitude"] = None,
    lng: Annotated[float | None, "Longitude"] = None,
    notes: Annotated[str, "Notes"] = "",
    taken_back: Annotated[dict[str, Any] | None, "For /undo"] = None,
    *,
    context: ToolContext,
) -> ToolResult:
    """Keep a place in the user's address book. For a known label, only the given values change. If the user mentions a
    lasting place, such as home, offer it once."""
    label = " ".join(label.split())
    texts = dict(zip(_TEXTS, (name, address, phone, website, notes), strict=True))
    given = {key: text.strip() for key, text in texts.items() if text.strip()} | _position(lat, lng)
    if taken_back is None:
        _check_given(label, given)

    def save(places: list[Place]) -> tuple[str, Change]:
        at = _index(places, label)
        before = places[at] if at is not None else None
        place = len(places) if at is None else at
        if taken_back is not None:
            old = before_of(context, taken_back, before)
            # A removed place is restored at its position, if that is known.
            place = min(int(taken_back.get("place", place)), len(places))
            places[place : place + (before is not None)] = [] if old is None else [old]
            return f"The place {label} was restored.", {}
        after = {"label": label, **(before or {}), **given}
        places[place : place + 1] = [after]
        done = "Saved" if before is None else "Changed"
        return f"{done}: {_told(after)}", change(before, after, context) if after != before else {}

    said, done = await _file(context).change(save)
    return ToolResult(content=said, undo=call_of(save_place, label=label, taken_back=done) if done else None)


@tool(access=["write"], aliases={"label": ("name", "place")})
async def remove_place(label: Annotated[str, "The user's name for it"], *, context: ToolContext) -> ToolResult:
    """Remove a place from the address book."""

    def remove(places: list[Place]) -> tuple[Place, int]:
        place = _index(places, label)
        if place is None:
            raise ToolError(_unknown(places, label))
        return places.pop(place), place

    gone, place = await _file(context).change(remove)
    inverse = {**change(gone, None, context), "place": place}
    return ToolResult(
        content=f"Removed: {_told(gone)}", undo=call_of(save_place, label=gone["label"], taken_back=inverse)
    )


@tool(access=["read"])
async def list_places(context: ToolContext) -> ToolResult:
    """List the places in the user's address book."""
    places = await _file(context).read()
    if not places:
        return ToolResult(content="There are no saved places yet. Use save_place to save one.")
    shown = places[:_LISTED]
    rows = [[_cell(place.get(key)) for key in ("label", "name", "address", "phone", "notes")] for place in shown]
    left = len(places) - len(shown)
    table = Table(columns=["place", "name", "address", "phone", "notes"], rows=rows, omitted=left)
    more = [f"[{left:,} more are in saved_places.json of the profile.]"] if left else []
    return ToolResult(content="\n".join([*map(_told, shown), *more]), show=[table])


def _file(context: ToolContext) -> JsonFile[list[Place]]:
    return JsonFile(context.profile_folder / "saved_places.json", list, _check, timeouts=context.timeouts)


def _check(places: list[Any]) -> None:
    for place in places:
        if not (isinstance(place, dict) and isinstance(place.get("label"), str)):
            raise ValueError(f"{place!r} is not a place with a label")


def _check_given(label: str, given: Mapping[str, Any]) -> None:
    if not label:
        raise ToolError("The place needs a label, the user's name for it, such as label='home'.")
    if not given:
        raise ToolError(f"The place {one_line(label, 60)!r} has no data. Give its address, lat and lng, or notes.")
    if max(len(str(value)) for value in (label, *given.values())) > _LONGEST:
        raise ToolError(f"That is too long: each field has up to {_LONGEST:,} characters. Shorten it.")
    if len(label) > _LABEL:
        raise ToolError(f"The label has {len(label)} characters. Use {_LABEL} at most, and notes for the rest.")


def _position(lat: float | None, lng: float | None) -> dict[str, float]:
    if (lat is None) != (lng is None):
        raise ToolError("lat and lng must be given together. Give both, or none.")
    if lat is None or lng is None:
        return {}
    if not (-90 <= lat <= 90 and -180 <= lng <= 180):
        raise ToolError(f"lat {lat}, lng {lng} is not a valid place: lat must be from -90 to 90, lng from -180 to 180.")
    return {"lat": lat, "lng": lng}


def _index(places: list[Place], label: str) -> int | None:
    wanted = folded(label)
    return next((i for i, place in enumerate(places) if folded(place["label"]) == wanted), None)


def _unknown(places: list[Place], label: str) -> str:
    labels = [place["label"] for place in places]
    known = ", ".join(repr(one_line(name, 60)) for name in labels[:_NAMED]) or "none"
    hint = did_you_mean(near_names(label, labels))
    return f"There is no place {one_line(label, 60)!r}. {hint or f'Available: {known}.'}"


def _cell(value: Any) -> str:
    return one_line(str(value), _SHOWN) if value not in (None, "") else ""


def _told(place: Place) -> str:
    position = [_cell(place.get(key)) for key in ("lat", "lng")]
    where = f"({', '.join(position)})" if all(position) else ""
    words = [_cell(place.get(key)) for key in ("name", "address")]
    words += [where, *(_cell(place.get(key)) for key in ("phone", "website", "notes"))]
    return f"{_cell(place['label'])}: {', '.join(filter(None, words))}"
