"""What a profile tells the model of the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..api.record import Record


class Personal(Record):
    """What the prompt says of the user; all but the profile's name is empty if nothing personal may be told."""

    profile: str = ""
    preferences: Sequence[tuple[str, Any]] = ()
    places: Sequence[Mapping[str, Any]] = ()
    history: str = ""
