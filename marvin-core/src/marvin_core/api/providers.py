"""The interface of model providers."""

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
"""The provider without a model: used in a chat, or if it is named."""

ToolChoice: TypeAlias = Literal["auto", "none"]
ThinkingLevel: TypeAlias = Literal["off", "low", "medium", "high"]
"""How hard a model thinks. Off is the minimum of the model."""
CacheLifetime: TypeAlias = Literal["", "5m", "1h"]
"""The lifetime of cache entries, for services with a choice; empty for the service's default."""


class ModelFacts(Record):
    """The facts of a model; None, or an empty text, if unknown.

    `window` and `longest`, the longest answer, are in tokens. `input`, `output` and `cache_write`, the price of cache
    writes, are in USD per million tokens; `request` is in USD per request. `ends` is the date of its shutdown, as in
    2026-12-11.
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
        """These facts, with unknown ones taken from the other facts."""
        known = {name: value for name, value in self.as_dict().items() if value not in (None, "")}
        return other.replace(**known)


class ServedModel(Record):
    """A model in the model list of a service, with the facts given there."""

    name: str
    facts: ModelFacts = ModelFacts()


class Request(Record):
    """One request to a model: the system prompt, the conversation so far, and the tools.

    The first `stable` characters of `system` are the same in each request, so that providers can mark them for caching.
    `waiting` are deferred tools: the model can search for them and call them, but they are not described. Only a
    provider that `Defers` uses them. With `deferred` the service itself adds those that a search in the conversation
    found, and `tools` has none of those. `output_schema` is the JSON schema of the answer, if it has one; it is sent to
    services that support one.
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
        """The request for a service without tool search: found tools are added to the other tools.

        They are added in the order in which they were found, so that the list only grows.

        Args:
            most: the maximum number of tools of the service; see `within`.
        """
        if not self.deferred:
            return self.within(most)
        named = found_in(self.messages)
        waiting = {spec.name: spec for spec in self.waiting if spec.name in named}
        tools = (*self.tools, *(waiting[name] for name in named if name in waiting))
        rest = tuple(spec for spec in self.waiting if spec.name not in waiting)
        return self.replace(tools=tools, waiting=rest, deferred=False).within(most)

    def within(self, most: int | None) -> Request:
        """The request with at most so many tools: of too many, the first ones and the newest ones are kept.

        Use it for fallback models; the request was built for the first model.
        """
        beyond = 0 if most is None else len(self.tools) - most
        if beyond <= 0:
            return self
        first = (len(self.tools) - beyond) // 2
        kept = (*self.tools[:first], *self.tools[first + beyond :])
        return self.replace(tools=kept, waiting=(*self.tools[first : first + beyond], *self.waiting))


def found_in(messages: Sequence[Message]) -> dict[str, None]:
    """The names of the tools that searches in a conversation found, in that order; the best match of a search last."""
    found: dict[str, None] = {}
    for message in messages:
        if message.role != "tool":
            continue
        for output in message.content:
            if isinstance(output, ToolOutput) and output.name == SEARCH:
                found.update(dict.fromkeys(reversed(output.reveals)))
    return found


class TextDelta(Record):
    """A piece of text of the answer."""

    text: str


class ThinkingDelta(Record):
    """A piece of reasoning, or opaque data for the reasoning so far."""

    text: str
    provider_data: ProviderData | None = None


class CallDelta(Record):
    """A piece of a tool call.

    `key` identifies the call within the answer. `id` and `name` are complete, and come in the first piece at the
    latest; `arguments` is a fragment of their JSON text.
    """

    key: int
    id: str = ""
    name: str = ""
    arguments: str = ""
    provider_data: ProviderData | None = None


class UsageDelta(Record):
    """The token counts so far; the last one is valid."""

    usage: Usage


class Stop(Record):
    """The end of an answer and its stop reason. Always the last item; a stream without it raises `StreamBroken`."""

    reason: StopReason


class Retrying(Record):
    """Sent by a wrapper before a retry: nothing of this answer was shown or stored yet."""

    text: str


class Switched(Record):
    """Sent by a wrapper before a retry with another model: discard the answer so far."""

    previous: str
    model: str
    reason: str


Delta: TypeAlias = TextDelta | ThinkingDelta | CallDelta | UsageDelta | Stop | Retrying | Switched


class Provider(Protocol):
    """A model behind an API.

    `context_window` is in tokens, None if unknown. `max_tools` is the maximum number of tools in a request, None for no
    limit.
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
        """Stream the answer. An async generator: close it with `aclosing`.

        Raises:
            ProviderError: a subclass of it, at any point of the iteration.
        """
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...


@runtime_checkable
class Lists(Protocol):
    """A provider that can list the models of its service."""

    async def served(self) -> list[ServedModel]:
        """The models with the facts in the list; empty if the service has no list.

        Raises:
            ProviderError: the service cannot be reached, rejects the key, or fails.
        """
        ...


@runtime_checkable
class Measures(Protocol):
    """A provider that can ask its service for the context window of its model."""

    async def find_window(self) -> int | None:
        """The context window in tokens, which also sets `context_window`; None if unknown."""
        ...


class Defers(Protocol):
    """A provider for services that can add the tools of `reveals` themselves."""

    @property
    def defers(self) -> bool:
        """Whether the service does. If so, `Request.waiting` has those tools, and `Request.tools` does not."""
        ...


def adds_revealed(provider: Provider | Defers) -> bool:
    """Whether the service of a provider adds revealed tools itself."""
    # Each request asks several times, and of each wrapper `isinstance` with a protocol would ask twice.
    return bool(getattr(provider, "defers", False))


@runtime_checkable
class Unlimited(Protocol):
    """A provider for services that may have no limit for the length of an answer."""

    @property
    def unlimited(self) -> bool:
        """Whether the service has none. It ignores `Request.max_output_tokens`; ceilings reserve the longest one."""
        ...


class Secret:
    """A secret value: neither `str` nor `repr` shows it."""

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
    """The address and credentials of a service: the argument of a provider's factory.

    `context_window` and `max_output`, the longest answer, are in tokens; None if unknown. `profile_folder` is the
    folder of the active profile, which stores logins. `environment` returns the environment for a program of the
    provider. Call `learn` with each secret that the provider itself obtains, so that it is redacted.
    `pack` has the settings, secrets and folders of the pack of the provider; it is None for those of the core.
    `look_up_window` fetches a context window that is not known locally, and blocks. `cache` is the lifetime of
    cache entries.
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

    `factory` is `module:callable`, called with an `Endpoint` and a function that creates the HTTP client on first use.
    `key_variables` are tried in order, then `key_file` in the home folder; a provider with neither needs no key. Keys
    in `home_key_variables` are sent to the service's own address only, never to a custom one. `model_variable` and
    `url_variable` override the defaults. With `keyless`, a custom address in `url_variable` selects the provider and
    needs no key. With `login`, the active profile holds a login instead of a key. `ready` is `module:callable`, called
    with the environment of the provider's program if neither key nor address shows whether the provider is set up: it
    returns the reason, or an empty text if it is not. `handed_on` are the secret variables that this program gets.
    `windows` holds context windows and `outputs` the longest answers, in tokens by the prefix of a model's name.
    `models` are suggestions for people. `families` are the prefixes of all model names of the service; a `gateway` has
    models of many makers, which only its list names. `how_to` completes "To set a provider: ..." in texts for people.
    `extra` is the extra of marvin-core that installs the package of the same name, if the provider needs one; those
    texts begin with installing it if it is missing. `source` is the distribution that provides it, set when it is
    loaded.
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
        """The context window of a model, in tokens; None if this provider does not know it."""
        return _by_beginning(self.windows or {}, model)

    def output(self, model: str) -> int | None:
        """The longest answer of a model, in tokens; None if this provider does not know it."""
        return _by_beginning(self.outputs or {}, model)


def _by_beginning(table: Mapping[str, int], model: str) -> int | None:
    fitting = [start for start in table if model.startswith(start)]
    return table[max(fitting, key=len)] if fitting else None


ClientFactory: TypeAlias = "Callable[[], httpx.AsyncClient]"
ProviderFactory: TypeAlias = Callable[[Endpoint, ClientFactory], Provider]
