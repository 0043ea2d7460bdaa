"""What is known of a model: how much it takes and gives, what it costs, and when it ends."""

from __future__ import annotations

from .record import Record


class ModelFacts(Record):
    """The facts of a model; None, or an empty text, where nobody says.

    `window` and `longest`, the longest answer, are in tokens; `input`, `output` and `cache_write`, what goes into a
    cache, in USD per million tokens; `request` in USD for each. `ends` is the day on which the service turns it off, as
    in 2026-12-11.
    """

    window: int | None = None
    longest: int | None = None
    input: float | None = None
    output: float | None = None
    cache_write: float | None = None
    request: float | None = None
    thinks: bool | None = None
    images: bool | None = None
    ends: str = ""

    def or_else(self, other: ModelFacts) -> ModelFacts:
        """These facts, and those of the other where these say nothing."""
        known = {name: value for name, value in self.as_dict().items() if value not in (None, "")}
        return other.replace(**known)


class ServedModel(Record):
    """A model in the list of a service, with what the list says of it."""

    name: str
    facts: ModelFacts = ModelFacts()
