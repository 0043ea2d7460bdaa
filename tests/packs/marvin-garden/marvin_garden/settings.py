"""What the garden is configured with."""

from typing import Annotated, Literal

from marvin_core import Field, Settings


class Pump(Settings):
    """The pump, which config.yaml has below `pump:`."""

    address: str = "https://pump.example"
    """Where the pump listens."""
    hours: tuple[int, ...] = (6, 18)
    """When it may run."""


class GardenSettings(Settings):
    """Everything that can be set."""

    litres: Annotated[int, Field(ge=1, le=100)] = 5
    """How much water a plant gets."""
    season: Literal["spring", "summer"] = "spring"
    """The time of the year."""
    plants: tuple[str, ...] = ()
    """What grows in the garden."""
    pump: Pump = Pump()
    """The pump."""
