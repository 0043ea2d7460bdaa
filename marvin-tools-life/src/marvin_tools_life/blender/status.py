"""Whether Blender answers."""

from __future__ import annotations

from marvin_core import PackContext, Processes, ToolError, one_line

from .connection import ask, place_of


async def status(context: PackContext, processes: Processes) -> str:
    """A message about Blender: where it answers, or how to start it."""
    try:
        scene = await ask(context, processes, "get_scene_info", {}, context.timeouts.model_list)
    except ToolError as error:
        return str(error)
    name = one_line(str(scene.get("name", "")), 80) if isinstance(scene, dict) else ""
    return f"Blender answers at {place_of(context)}" + (f", with the scene {name!r}." if name else ".")
