import random
from typing import Annotated

from marvin_core import Field, ToolContext, ToolError, hookimpl, tool


@tool(access=["read"])
async def roll_dice(
    sides: Annotated[int, Field(ge=2), "Faces on each die"] = 6,
    count: Annotated[int, Field(ge=1), "How many dice to roll"] = 1,
    *,
    context: ToolContext,
) -> str:
    """Roll dice and list the face each one shows."""
    if count > 100:
        raise ToolError(f"{count} dice do not fit on the table. Roll at most 100 at once.")
    context.progress("The dice roll.")
    return ", ".join(str(random.randint(1, sides)) for _ in range(count))


@hookimpl
def marvin_register_tools():
    return [roll_dice]
