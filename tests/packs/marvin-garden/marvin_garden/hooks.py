"""The hook of the garden."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from marvin_core import Deny, Event, Hook, HookContext, Message, ToolResult, ToolSpec, Verdict

from .settings import GardenSettings


class Gardener(Hook):
    """Sees to it that nothing is watered twice."""

    async def on_prompt(self, context: HookContext, text: str) -> str | None:
        """Name the season."""
        return f"{text} (in {context.settings(GardenSettings).season})"

    async def system_prompt(self, context: HookContext) -> str | None:
        """Name the plants."""
        return f"Plants: {', '.join(context.settings(GardenSettings).plants) or 'none'}."

    async def before_request(self, context: HookContext, messages: Sequence[Message]) -> None:
        """Count the requests."""
        context.state["requests"] = context.state.get("requests", 0) + 1

    async def before_tool(self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any]) -> Verdict:
        """Deny a second watering."""
        if arguments.get("plant") in context.state.get("watered", []):
            return Deny(reason="it was watered already")
        return None

    async def after_tool(
        self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any], result: ToolResult
    ) -> ToolResult | None:
        """Tell the person."""
        context.notify(f"{spec.name} is done with {context.secret('GARDEN_KEY', 'no key')}")
        return None

    async def on_event(self, context: HookContext, event: Event) -> None:
        """Write down when it was, and tell."""
        with (context.folders.cache / "events").open("a") as log:
            log.write(f"{event.type} {context.clock.now() > 0} {context.interactive} {context.depth}\n")
        if event.type == "agent_start":
            context.notify(f"begun in {context.cwd.name}")
