"""The contract between the agent and a model service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from .limits import Limits
from .messages import Message, ProviderData, StopReason, ToolOutput, Usage
from .record import Record
from .timeouts import Timeouts
from .tools import SEARCH, ToolSpec

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

    from .tool_context import PackContext


OFFLINE = "offline"
"""The provider that has no model: never chosen but in a chat, or by its name."""

ToolChoice: TypeAlias = Literal["auto", "none"]
ThinkingLevel: TypeAlias = Literal["off", "low", "medium", "high"]
"""How hard a model thinks. Off is the least that it can do."""
CacheLifetime: TypeAlias = Literal["", "5m", "1h"]
"""How long a service that lets one choose keeps what it read; empty for as long as it does by itself."""


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


class Request(Record):
    """One request to a model: the system prompt, the conversation so far, and the tools on offer.

    The first `stable` characters of `system` are the same from request to request: a service that caches
    what it is told to is told to cache up to there. `waiting` are tools that the model can find and call, but is not
    told of: only a provider that `Defers` does something with them. With `deferred` the service is to add those of them
    that a search in the conversation found, and `tools` has none of those. `output_schema` is the JSON schema of the
    answer, if it has one: services that know how to are asked to hold the model to it.
    """

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    waiting: tuple[ToolSpec, ...] = ()
    deferred: bool = False
    tool_choice: ToolChoice = "auto"
    thinking: ThinkingLevel = "off"
    max_output_tokens: int | None = None
    stable: int = 0
    output_schema: Mapping[str, Any] | None = None

    def with_revealed(self, most: int | None = None) -> Request:
        """The request for a service that adds nothing by itself: with the tools that searches found.

        They come in the order in which they were found, so that the list only grows.

        Args:
            most: how many tools the service takes; see `within`.
        """
        if not self.deferred:
            return self.within(most)
        named = found_in(self.messages)
        waiting = {spec.name: spec for spec in self.waiting if spec.name in named}
        tools = (*self.tools, *(waiting[name] for name in named if name in waiting))
        rest = tuple(spec for spec in self.waiting if spec.name not in waiting)
        return self.replace(tools=tools, waiting=rest, deferred=False).within(most)

    def within(self, most: int | None) -> Request:
        """The request with no more tools than a service takes: of too many, the first ones and the newest ones stay.

        That is for whoever stands in for another one; what is asked first was chosen for it.
        """
        beyond = 0 if most is None else len(self.tools) - most
        if beyond <= 0:
            return self
        first = (len(self.tools) - beyond) // 2
        kept = (*self.tools[:first], *self.tools[first + beyond :])
        return self.replace(tools=kept, waiting=(*self.tools[first : first + beyond], *self.waiting))


def found_in(messages: Sequence[Message]) -> dict[str, None]:
    """The names of the tools that searches in a conversation found, in that order; of one search the best one last."""
    found: dict[str, None] = {}
    for message in messages:
        if message.role != "tool":
            continue
        for output in message.content:
            if isinstance(output, ToolOutput) and output.name == SEARCH:
                found.update(dict.fromkeys(reversed(output.reveals)))
    return found


class TextDelta(Record):
    """A piece of visible text."""

    text: str


class ThinkingDelta(Record):
    """A piece of reasoning, or the opaque data that belongs to the reasoning so far."""

    text: str
    provider_data: ProviderData | None = None


class CallDelta(Record):
    """A piece of a tool call.

    `key` tells the calls of one answer apart. `id` and `name` come whole, in the first piece at the
    latest; `arguments` is a fragment of their JSON text.
    """

    key: int
    id: str = ""
    name: str = ""
    arguments: str = ""
    provider_data: ProviderData | None = None


class UsageDelta(Record):
    """The token counts so far; the last one counts."""

    usage: Usage


class Stop(Record):
    """The end of an answer and its reason. Always the last; a stream without it raises `StreamBroken`."""

    reason: StopReason


class Retrying(Record):
    """A wrapper says that it starts over: nothing of this answer has been shown or kept so far."""

    text: str


class Switched(Record):
    """A wrapper says that another model starts over: what came of this answer so far does not count."""

    previous: str
    model: str
    reason: str


Delta: TypeAlias = TextDelta | ThinkingDelta | CallDelta | UsageDelta | Stop | Retrying | Switched


class Provider(Protocol):
    """A model behind a wire format.

    `context_window` is in tokens, None where unknown. `max_tools` is the most tools a request may
    carry, None for no limit.
    """

    @property
    def name(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def context_window(self) -> int | None: ...
    @property
    def max_tools(self) -> int | None: ...

    def stream(self, request: Request) -> AsyncIterator[Delta]:
        """The answer, piece by piece. An async generator: close it with `aclosing`.

        Raises:
            ProviderError: one of its sub-classes, at any point of the iteration.
        """
        ...

    async def aclose(self) -> None:
        """Close its connections."""
        ...


@runtime_checkable
class Lists(Protocol):
    """A provider that can say which models its service serves."""

    async def served(self) -> list[ServedModel]:
        """The models with what the service says of them; empty where it lists none.

        Raises:
            ProviderError: where it cannot be reached, refuses the key, or fails.
        """
        ...


@runtime_checkable
class Measures(Protocol):
    """A provider that can ask its service how long a context its model takes."""

    async def find_window(self) -> int | None:
        """The context window in tokens, which `context_window` tells from then on; None where nobody says."""
        ...


class Defers(Protocol):
    """A provider that may be behind a service which adds the tools by itself that an output `reveals`."""

    @property
    def defers(self) -> bool:
        """Whether it is. `Request.tools` has none of those then, and `Request.waiting` has them."""
        ...


def adds_revealed(provider: Provider | Defers) -> bool:
    """Whether the service behind a provider adds by itself what an output reveals."""
    # Each request asks several times, and of each wrapper `isinstance` with a protocol would ask twice.
    return bool(getattr(provider, "defers", False))


@runtime_checkable
class Unlimited(Protocol):
    """A provider that may be behind a service which takes no limit for the length of an answer."""

    @property
    def unlimited(self) -> bool:
        """Whether it is. `Request.max_output_tokens` means nothing there, so a cost ceiling covers the longest one."""
        ...


class Secret:
    """A value that must not be shown: neither its text form nor its representation tells it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The value itself, for a request header."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    def __bool__(self) -> bool:
        return bool(self._value)


class Endpoint(Record):
    """Where and as whom to ask: what a provider's factory is given.

    `context_window` and `max_output`, the longest answer, are in tokens; None where unknown. `profile_folder` is
    that of the active profile, where logins are kept. `environment` gives the one for a program of the provider's own.
    `learn` is to be told of each secret that the provider finds by itself, so that nobody is shown it.
    `pack` has the settings, secrets and folders of the pack that brings the provider; it is None for those of the core.
    `look_up_window` looks for the context window where it is not at hand, which blocks for a while. `cache` is how
    long the service is to keep what it read.
    """

    provider: str
    base_url: str
    model: str
    key: Secret
    key_hint: str
    context_window: int | None = None
    max_tools: int | None = None
    max_output: int | None = None
    headers: Mapping[str, str] | None = None
    profile_folder: Path | None = None
    environment: Callable[[], dict[str, str]] | None = None
    look_up_window: Callable[[], int | None] | None = None
    learn: Callable[[Secret], None] | None = None
    pack: PackContext | None = None
    cache: CacheLifetime = ""
    timeouts: Timeouts = Timeouts()
    limits: Limits = Limits()


class ProviderSpec(Record):
    """A provider as data.

    `factory` is `module:callable`, called with an `Endpoint` and a function that makes the HTTP
    client on first use. `key_variables` are tried in order, then `key_file` in the home folder; a
    provider with neither needs no key. Those of `home_key_variables` are sent to the service itself only, and to no
    address of one's own. `model_variable` and `url_variable` override the defaults; where `keyless`, an address of
    one's own in `url_variable` chooses the provider and needs no key. Where `login`, the active profile holds a login
    instead of a key. `ready` is `module:callable`, called with the environment of the provider's program where neither
    key nor address says whether the provider is set up: it returns why it is, or an empty text. `handed_on` are the
    secret variables that this program gets.
    `windows` holds context windows and `outputs` the longest answers, in tokens by the beginning of a model's name.
    `models` are those that people may want to choose from; `families` are the beginnings of the names
    of all that the service has, and a `gateway` has models of many makers, which only its list tells. `how_to`
    completes "To set a provider: ..." in the texts for people. `extra` is the extra of marvin-core that brings the
    package of the same name, where the provider needs one; those texts begin with installing it where it is missing.
    `source` is the distribution that brings it, and known once that is found.
    """

    name: str
    factory: str
    base_url: str
    default_model: str
    key_variables: tuple[str, ...] = ()
    key_file: str = ""
    model_variable: str = ""
    url_variable: str = ""
    keyless: bool = False
    login: bool = False
    in_process: bool = False
    ready: str = ""
    home_key_variables: tuple[str, ...] = ()
    handed_on: tuple[str, ...] = ()
    max_tools: int | None = None
    windows: Mapping[str, int] | None = None
    outputs: Mapping[str, int] | None = None
    models: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    gateway: bool = False
    how_to: str = ""
    source: str = ""
    extra: str = ""

    def window(self, model: str) -> int | None:
        """The context window of a model, in tokens; None where this provider does not know it."""
        return _by_beginning(self.windows or {}, model)

    def output(self, model: str) -> int | None:
        """The longest answer of a model, in tokens; None where this provider does not know it."""
        return _by_beginning(self.outputs or {}, model)


def _by_beginning(table: Mapping[str, int], model: str) -> int | None:
    fitting = [start for start in table if model.startswith(start)]
    return table[max(fitting, key=len)] if fitting else None


ClientFactory: TypeAlias = "Callable[[], httpx.AsyncClient]"
ProviderFactory: TypeAlias = Callable[[Endpoint, ClientFactory], Provider]
