"""The tool of the garden."""

from marvin_core import ToolContext, tool

from .settings import GardenSettings


@tool(access=["write", "net"])
async def water(plant: str, context: ToolContext) -> str:
    """Water a plant."""
    settings = context.settings(GardenSettings)
    key = context.secret("GARDEN_KEY")
    answer = await context.http.get(f"{settings.pump.address}/on", headers={"key": key})
    with (context.folders.state / "log").open("a") as log:
        log.write(f"{plant}\n")
    context.state["watered"] = [*context.state.get("watered", []), plant]
    return f"{plant} got {settings.litres} litres with {key}: {answer.text}"
