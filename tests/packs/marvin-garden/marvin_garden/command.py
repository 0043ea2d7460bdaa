"""The slash command of the garden."""

from marvin_core import SessionControl

from .settings import GardenSettings


async def plants(session: SessionControl, text: str) -> str:
    """What /plants shows."""
    garden = session.pack("garden")
    return f"{', '.join(garden.settings(GardenSettings).plants)} {text} {garden.secret('GARDEN_KEY', None)}".strip()
