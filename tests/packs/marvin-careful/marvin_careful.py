"""A hook: it asks before dice are rolled, and refuses more than three."""

from collections.abc import Iterable, Mapping
from typing import Any

from marvin_core import Ask, Deny, Hook, HookContext, ToolSpec, Verdict, hookimpl


class Careful(Hook):
    """Watches the dice."""

    async def before_tool(self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any]) -> Verdict:
        if spec.name != "roll_dice":
            return None
        if arguments.get("count", 1) > 3:
            return Deny(reason="more than three dice are gambling")
        return Ask(reason="dice are a serious matter")


@hookimpl
def marvin_register_hooks() -> Iterable[Hook]:
    """One hook."""
    return [Careful()]
