"""Where a session gets its models from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from .providers import Provider
from .record import Record

if TYPE_CHECKING:
    from .usage import CostCeiling


class Serving(Record):
    """A model that is ready to answer, and why it was chosen."""

    provider: Provider
    reason: str


class ModelEntry(Record):
    """A model service as lists show it; `reason` says why it can be used, and is empty where it cannot."""

    provider: str
    models: tuple[str, ...]
    reason: str
    how_to: str


class ModelListener(Protocol):
    """Who goes along with a change of the model in the middle of a prompt."""

    def moved(self, provider: Provider) -> None:
        """From here on this model answers."""
        ...

    def lent(self, provider: Provider) -> None:
        """This model stands in until the prompt is over."""
        ...


class ModelSource(Protocol):
    """Where a session gets its models from. Providers are made on first use and kept."""

    @property
    def how_to(self) -> str:
        """What to do where there is no model."""
        ...

    def first(self) -> Serving | None:
        """The model that a session begins with; None where none is configured."""
        ...

    def named(self, name: str, current: Provider | None) -> Serving:
        """The model that a name means: `PROVIDER/MODEL`, the name of a model, or of a provider.

        Raises:
            UsageError, ConfigError: where there is none, or its provider is not set up.
        """
        ...

    def know(self, name: str) -> None:
        """Learn what services have to say of a name, so that `named` need not ask them. Blocks for a while."""
        ...

    def ending(self, provider: Provider) -> str:
        """What is to be said of a model that ends soon; empty of any other, and once it was said."""
        ...

    def refresh(self, provider: Provider) -> None:
        """Look after what is known of the models of this provider's service, in the background, now and then."""
        ...

    def pro(self, current: Provider | None) -> Serving:
        """The model for prompts that deserve the best one. Raises as `named`."""
        ...

    def resilient(
        self, provider: Provider, follower: ModelListener, *, restarts: bool, ceiling: CostCeiling | None
    ) -> Provider:
        """The provider, wrapped for one prompt: it tries again, and goes on with another model where that helps.

        Args:
            follower: told of each model that goes on.
            restarts: whether an answer of which something was shown may be given again by another model.
            ceiling: what the prompt may cost, beside the ceiling of the run.
        """
        ...

    def listed(self) -> Sequence[ModelEntry]:
        """Every service, those that are set up first."""
        ...

    def patient(self, coding: bool) -> None:
        """Wait for silent services as long as coding mode takes, or as a chat does."""
        ...

    async def aclose(self) -> None:
        """Close the connections of all providers."""
        ...
