"""The tool switch_profile."""

from __future__ import annotations

from typing import Annotated

from marvin_core import MarvinError, ToolContext, ToolError, ToolResult, call_of, in_thread, tool


@tool(access=["write"], aliases={"profile_name": ("name", "profile")}, unlisted=["unless_moved_from"])
async def switch_profile(
    profile_name: Annotated[str, "The profile; it is created if it does not exist"],
    unless_moved_from: Annotated[str, "For /undo only: the profile that must be active"] = "",
    *,
    context: ToolContext,
) -> ToolResult:
    """Use another profile from now on: its preferences, saved places and chat log."""
    name, before = profile_name.strip(), context.profile_folder.name
    if unless_moved_from and before != unless_moved_from:
        raise ToolError(f"The profile {before} is active now, not {unless_moved_from}. Switch by hand.")
    session = context.session
    try:
        folder = await in_thread(lambda: session.switch_profile(name))
    except (MarvinError, OSError) as error:
        raise ToolError(f"The profile was not switched: {error}") from error
    if name == before:
        return ToolResult(content=f"The profile {name} is already active ({folder}).")
    inverse = call_of(switch_profile, profile_name=before, unless_moved_from=name)
    return ToolResult(content=f"The profile is {name} now ({folder}).", undo=inverse)
