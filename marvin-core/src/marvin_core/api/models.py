"""Where a session gets its models from, the keys of their services, and what bounds the cost of requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

from .errors import BudgetExceeded
from .messages import Usage
from .providers import Provider, Request, Secret
from .record import Record


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


class AgentModel(Record):
    """The model of an agent: what its command line names, and the variables in which it gets the key."""

    provider: str
    model: str
    variables: tuple[str, ...] = ()


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

    def for_agent(self, name: str, current: Provider | None) -> AgentModel:
        """The model of an agent that this session starts.

        Args:
            name: as `named` takes it, or a tier; empty for the current model. The model of a tier that is not set, and
                that nobody serves, is the current service's default.

        Raises:
            UsageError, ConfigError: as `named`.
        """
        ...

    def know(self, name: str | None, current: Provider | None) -> None:
        """Learn what services have to say of a name, and have its key, so that `named` need not ask. Blocks.

        Without a name the same for `pro`.

        Raises:
            ConfigError: where the system's keyring does not give the key.
        """
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


KeyPlace: TypeAlias = Literal["keyring", "file"]
"""Where a key is kept: in the system's keyring, or in a file that only its user can read."""


class KeyControl(Protocol):
    """The keys of model services."""

    def services(self) -> Sequence[str]:
        """Those that take a key."""
        ...

    def variable(self, service: str) -> str:
        """The variable that the key of a service belongs to. Raises `UsageError` where there is none."""
        ...

    def has_login(self, service: str) -> bool:
        """Whether a service has accounts instead of keys."""
        ...

    async def read(self, question: str) -> str | None:
        """What the user types, unseen; None where the interface cannot read so."""
        ...

    async def place(self) -> KeyPlace:
        """Where the user wants to have a key kept, where there is a choice."""
        ...

    async def try_out(self, service: str, key: Secret) -> str:
        """Use a key from now on; returns what its service says to a request that costs nothing.

        Raises:
            UsageError: where it can be no key.
            AuthFailed: where the service does not accept it; the key before is used again.
        """
        ...

    def keep(self, service: str, key: Secret, place: KeyPlace) -> str:
        """Keep a key for later runs; returns what to tell. Blocks. Raises `MarvinError` and OSError."""
        ...

    def forget(self, service: str) -> str:
        """Forget the key that was kept for a service; returns what to tell. Blocks, raises as `keep`."""
        ...


class Meter(Protocol):
    """Counts model requests; `count` tells the cost in USD, None where that is not known.

    `whole` says whether the service told all that was used.
    """

    def add(self, provider: str, model: str, usage: Usage) -> None: ...
    async def count(self, provider: str, model: str, usage: Usage, *, whole: bool = True) -> float | None: ...


class Reservation(Record):
    """A request whose worst case is reserved. `size` is in bytes; a request that costs nothing has no `key`.

    `output` is the tokens that its answer may have, and `most_bytes` the bytes from which on it surely has more; 0
    for no end. `amount` is in micro-dollars.
    """

    provider: str
    model: str
    size: int = 0
    input_tokens: int = 0
    key: str = ""
    amount: int = 0
    output: int = 0
    most_bytes: int = 0


class CostCeiling(Protocol):
    """What requests may cost together. `Budget` says what these do."""

    async def reserve(
        self, provider: str, model: str, request: Request, *, limited: bool = True
    ) -> tuple[Request, Reservation]: ...
    async def settle(
        self, hold: Reservation, usage: Usage | None, came: int, *, complete: bool, silent: bool = False
    ) -> None: ...
    async def refused(self, hold: Reservation) -> None: ...
    async def begin_last(self) -> None: ...
    def end_last(self) -> None: ...
    async def reached(self) -> BudgetExceeded: ...
    @property
    def standing(self) -> tuple[float, float] | None: ...
