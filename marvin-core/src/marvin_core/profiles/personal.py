"""The personal data of a profile that the model gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..api.record import Record


class Personal(Record):
    """The personal part of the prompt; only the profile's name if nothing personal may be told."""

    profile: str = ""
    preferences: Sequence[tuple[str, Any]] = ()
    places: Sequence[Mapping[str, Any]] = ()
    history: str = ""
