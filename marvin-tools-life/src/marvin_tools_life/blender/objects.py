"""The tools for the objects of a Blender scene."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from marvin_core import (
    Call,
    Field,
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

from . import scripts
from .connection import ask
from .work import blender_execute_code

T = TypeVar("T")

Three: TypeAlias = Annotated[list[float], Field(min_length=3, max_length=3)]
Shape: TypeAlias = Literal["cube", "sphere", "cylinder", "cone", "torus", "plane", "uv_sphere", "ico_sphere"]
_MOST = 200
_NAME = 63
"""Bytes of a name in Blender."""
_NAMED = 800
_TRANSFORMS = ("location", "rotation", "scale")


@tool(access=["read"])
async def blender_get_scene(*, context: ToolContext) -> ToolResult:
    """List the objects, lights, cameras and materials of the scene that is open in Blender."""
    return await _done(context, scripts.SCENE, {"most": _MOST}, _scene)


def _scene(scene: Any) -> ToolResult:
    rows = [
        (str(one["name"]), one["type"].lower(), _numbers(one["location"]), ", ".join(one["materials"]))
        for one in scene["objects"]
    ]
    lines = [
        f"Scene {scene['name']!r}: {scene['total']} objects, camera {scene['camera'] or 'none'}, {scene['engine']}"
    ]
    lines += [
        f"{name} ({kind}) at {place}" + (f", material {materials}" if materials else "")
        for name, kind, place, materials in rows
    ]
    if scene["total"] > len(rows):
        lines.append(f"{scene['total'] - len(rows)} more objects are left out.")
    lines += [f"Light {one['name']}: {one['kind'].lower()}, {one['energy']:g} W" for one in scene["lights"]]
    lines.append(f"Materials: {', '.join(scene['materials']) or 'none'}")
    table = Table(columns=("object", "kind", "location", "materials"), rows=rows, title=str(scene["name"]))
    return ToolResult(content="\n".join(map(one_line, lines)), show=[table])


@tool(access=["read"])
async def blender_get_object(object_name: Annotated[str, "The object"], *, context: ToolContext) -> str:
    """Show everything about one object in Blender: mesh, materials, transforms, modifiers."""
    return await _done(context, scripts.OBJECT, {"name": object_name}, _object)


def _object(found: Any) -> str:
    lines = [_described(found)]
    lines += [
        f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in found.items()
        if value not in (None, [], {}) and name not in ("name", *_TRANSFORMS)
    ]
    return "\n".join(map(one_line, lines))


@tool(access=["write"])
async def blender_create_object(
    object_type: Annotated[Shape, "Its shape"],
    name: Annotated[str, "The name; default: chosen by Blender"] = "",
    location: Annotated[Three, "x, y, z"] = [0, 0, 0],  # noqa: B006  # nothing changes it, and the schema shows it
    scale: Annotated[Three, "In x, y, z"] = [1, 1, 1],  # noqa: B006
    rotation: Annotated[Three, "In radians"] = [0, 0, 0],  # noqa: B006
    *,
    context: ToolContext,
) -> ToolResult:
    """Add a primitive to the scene in Blender."""
    _check(location=location, scale=scale, rotation=rotation)
    given = {"type": object_type, "name": _name(name), "location": location, "scale": scale, "rotation": rotation}
    return await _done(context, scripts.CREATE, given, _created)


def _created(made: Any) -> ToolResult:
    # Blender appends a number to a name that is taken.
    text = f"Created {_described(made)}."
    return ToolResult(content=text, undo=call_of(blender_delete_object, object_name=str(made["name"])))


@tool(access=["write"])
async def blender_modify_object(
    object_name: Annotated[str, "The object"],
    location: Annotated[Three | None, "x, y, z"] = None,
    scale: Annotated[Three | None, "In x, y, z"] = None,
    rotation: Annotated[Three | None, "In radians"] = None,
    *,
    context: ToolContext,
) -> ToolResult:
    """Move, scale or rotate an object in Blender."""
    wanted = {"location": location, "scale": scale, "rotation": rotation}
    changed = {field: value for field, value in wanted.items() if value is not None}
    if not changed:
        raise ToolError("No change was given. Give location, scale or rotation, with three numbers each.")
    _check(**changed)

    def modified(told: Any) -> ToolResult:
        exact = dict(told["before"]["exact"])
        left = [field for field in ("location", "scale") if field not in changed]
        back = {field: value for field, value in exact.items() if field not in left}
        undo = _call(scripts.MOVE_BACK, {**back, "rotation": "rotation" in changed})
        return ToolResult(content=f"Now {_described(told['after'])}; before {_described(told['before'])}.", undo=undo)

    return await _done(context, scripts.MODIFY, {"name": object_name, **wanted}, modified)


@tool(access=["write"])
async def blender_delete_object(object_name: Annotated[str, "The object"], *, context: ToolContext) -> ToolResult:
    """Delete an object in Blender. /undo brings it back while the file is open."""

    def deleted(told: Any) -> ToolResult:
        return ToolResult(content=f"Deleted {object_name}.", undo=_call(scripts.RESTORE, {"kept": told["kept"]}))

    return await _done(context, scripts.DELETE, {"name": object_name}, deleted)


@tool(access=["write"])
async def blender_set_material(
    object_name: Annotated[str, "The object"],
    material_name: Annotated[str, "Created if it does not exist"] = "",
    color: Annotated[
        list[Annotated[float, Field(ge=0, le=1)]], Field(min_length=3, max_length=4), "Red, green, blue, alpha"
    ] = [0.8, 0.8, 0.8, 1],  # noqa: B006  # nothing changes it, and the schema shows it
    *,
    context: ToolContext,
) -> ToolResult:
    """Give an object in Blender a material of a colour, 0 to 1."""
    _check(color=color)
    given = {"name": object_name, "material": _name(material_name), "color": [*color, 1.0][:4]}

    def painted(told: Any) -> ToolResult:
        if "unfit" in told:
            kind = str(told["unfit"]).lower()
            raise ToolError(f"{object_name} is a {kind}, which cannot have a material. Choose a mesh.")
        undone = {"name": object_name, **{field: told[field] for field in ("material", "old", "before", "added")}}
        text = f"{told['object']} has the material {told['material']} with the colour {_numbers(given['color'])} now."
        return ToolResult(content=text, undo=_call(scripts.UNPAINT, undone))

    return await _done(context, scripts.MATERIAL, given, painted)


async def _done(context: ToolContext, body: str, given: Mapping[str, Any], read: Callable[[Any], T]) -> T:
    """`read` of a script's output; a missing object is an error with the names of the existing ones."""
    answer = await ask(
        context, context.processes, "execute_code", {"code": scripts.script(body, given)}, context.timeouts.http
    )
    printed = str(answer.get("result", "")) if isinstance(answer, dict) else ""
    line = next((line for line in printed.splitlines() if line.startswith(scripts.MARK)), "")
    try:
        told = json.loads(line.removeprefix(scripts.MARK))
        if "missing" in told:
            raise _missing(str(told["missing"]), [str(name) for name in told["names"]])
        return read(told)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):  # printed by another add-on
        raise ToolError(
            f"Blender did not report a result: {one_line(printed, 200) or 'nothing'}. blender_get_scene shows the "
            "scene."
        ) from None


def _missing(name: str, names: Sequence[str]) -> ToolError:
    near = did_you_mean(near_names(name, names)) or f"Available: {', '.join(names[:20]) or 'none'}."
    return ToolError(f"There is no object {one_line(name, _NAME)!r} in Blender. {one_line(near, _NAMED)}")


def _call(body: str, given: Mapping[str, Any]) -> Call:
    return call_of(blender_execute_code, code=scripts.script(body, given))


def _check(**fields: list[float]) -> None:
    for name, values in fields.items():
        if not all(math.isfinite(value) for value in values):
            raise ToolError(f"{name} contains a value that is not a finite number. Give finite numbers.")


def _name(text: str) -> str:
    name = " ".join(text.split())
    if len(name.encode("utf-8", "replace")) > _NAME:
        raise ToolError(f"{one_line(name, 80)!r} is too long. Names in Blender have at most {_NAME} bytes.")
    return name


def _described(one: Mapping[str, Any]) -> str:
    places = ", ".join(f"{field} {_numbers(one[field])}" for field in _TRANSFORMS)
    return f"{one['name']}: {places}"


def _numbers(values: Iterable[Any]) -> str:
    return "(" + ", ".join(f"{value:g}" for value in values) + ")"
