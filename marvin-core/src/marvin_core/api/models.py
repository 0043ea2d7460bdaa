"""Models and their providers, API keys, and the cost ceiling of requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

from .errors import BudgetExceeded
from .messages import Usage
from .providers import Provider, Request, Secret
from .record import Record


class Serving(Record):
    """A model that is ready to use, and why it was chosen."""

    provider: Provider
    reason: str


class ModelEntry(Record):
    """A model service in a list; `reason` says why it can be used, and is empty if it cannot."""

    provider: str
    models: tuple[str, ...]
    reason: str
    how_to: str


class AgentModel(Record):
    """The model of a sub-agent: its command-line arguments, and the variables that pass the key."""

    provider: str
    model: str
    variables: tuple[str, ...] = ()


class ModelListener(Protocol):
    """Is notified when the model changes during a prompt."""

    def moved(self, provider: Provider) -> None:
        """This model is used from now on."""
        ...

    def lent(self, provider: Provider) -> None:
        """This model is used until the prompt is complete."""
        ...


class ModelSource(Protocol):
    """The models of a session. Providers are created on first use and kept."""

    @property
    def how_to(self) -> str:
        """What to do if there is no model."""
        ...

    def first(self) -> Serving | None:
        """The initial model of a session; None if none is configured."""
        ...

    def named(self, name: str, current: Provider | None) -> Serving:
        """The model with a name: `PROVIDER/MODEL`, the name of a model, or of a provider.

        Raises:
            UsageError, ConfigError: there is no such model, or its provider is not set up.
        """
        ...

    def for_agent(self, name: str, current: Provider | None) -> AgentModel:
        """The model of a sub-agent of this session.

        Args:
            name: as for `named`, or a tier; empty for the current model. A tier that is neither configured nor
                served means the current service's default.

        Raises:
            UsageError, ConfigError: as `named`.
        """
        ...

    def know(self, name: str | None, current: Provider | None) -> None:
        """Fetch what services know about a name, and read its key, so that `named` does not block. Blocks.

        Without a name it does so for `pro`.

        Raises:
            ConfigError: the system's keyring does not return the key.
        """
        ...

    def ending(self, provider: Provider) -> str:
        """A notice that a model will be retired soon; empty for any other model, and after the first time."""
        ...

    def refresh(self, provider: Provider) -> None:
        """Update the known facts about the models of this provider in the background, from time to time."""
        ...

    def pro(self, current: Provider | None) -> Serving:
        """The model for prompts that need the best one. Raises as `named`."""
        ...

    def resilient(
        self, provider: Provider, follower: ModelListener, *, restarts: bool, ceiling: CostCeiling | None
    ) -> Provider:
        """The provider, wrapped for one prompt: with retries, and with fallback to another model.

        Args:
            follower: notified of each fallback model.
            restarts: whether another model may repeat an answer that was shown in part.
            ceiling: the cost ceiling of the prompt, beside the one of the run.
        """
        ...

    def listed(self) -> Sequence[ModelEntry]:
        """Every service; those that are set up come first."""
        ...

    def patient(self, coding: bool) -> None:
        """Use the time-out for silent services of coding mode, or of chats."""
        ...

    async def aclose(self) -> None:
        """Close the connections of all providers."""
        ...


KeyPlace: TypeAlias = Literal["keyring", "file"]
"""Where an API key is stored: in the system's keyring, or in a file that only its user can read."""


class KeyControl(Protocol):
    """The API keys of model services."""

    def services(self) -> Sequence[str]:
        """The services that take a key."""
        ...

    def variable(self, service: str) -> str:
        """The variable for the key of a service. Raises `UsageError` if there is none."""
        ...

    def has_login(self, service: str) -> bool:
        """Whether a service uses logins instead of keys."""
        ...

    async def read(self, question: str) -> str | None:
        """Read a key from the user without showing it; None if the interface does not support this."""
        ...

    async def place(self) -> KeyPlace:
        """Ask the user where to store a key, if there is a choice."""
        ...

    async def try_out(self, service: str, key: Secret) -> str:
        """Use a key from now on; returns the result of a free request to its service.

        Raises:
            UsageError: the text cannot be a key.
            AuthFailed: the service rejects it; the previous key is used again.
        """
        ...

    def keep(self, service: str, key: Secret, place: KeyPlace) -> str:
        """Store a key for later runs; returns the message to show. Blocks. Raises `MarvinError` and OSError."""
        ...

    def forget(self, service: str) -> str:
        """Delete the stored key of a service; returns the message to show. Blocks, raises as `keep`."""
        ...


class Meter(Protocol):
    """Counts model requests; `count` returns the cost in USD, None if unknown.

    `whole` says whether the service reported all usage.
    """

    def add(self, provider: str, model: str, usage: Usage, *, whole: bool = True) -> None: ...
    async def count(self, provider: str, model: str, usage: Usage, *, whole: bool = True) -> float | None: ...


class Reservation(Record):
    """A request whose maximum cost is reserved. `size` is in bytes; a free request has no `key`.

    `output` is the maximum number of tokens of its answer. `most_bytes` is a size of the answer that certainly has
    more; 0 for no limit. `amount` is in micro-dollars.
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
    """A cost ceiling that several requests share. `Budget` documents the methods."""

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
