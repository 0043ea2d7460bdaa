"""What the everyday tools are configured with."""

from __future__ import annotations

from marvin_core import Settings


class LifeSettings(Settings):
    """The section `life` below `packs:` in config.yaml."""

    exchange_rates: str = "https://api.frankfurter.dev/v1"
    """Where exchange rates come from: a service with the interface of Frankfurter."""
