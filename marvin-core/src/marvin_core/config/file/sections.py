"""The structure of config.yaml: each field of these records is a key.

The type of a field defines the valid values, its default applies if the key is not set, and the string below it is
its description. The check (`model`), the reference page and `marvin config set` are derived from these records. Records
of sections that other parts of Marvin use are in `api`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal, TypeVar

from ...api.config import (
    ChatPreferences,
    EndpointSettings,
    Labels,
    McpSettings,
    PermissionMode,
    Permissions,
    SandboxUse,
    ShellHook,
    ToolSearchUse,
)
from ...api.limits import Limits, Price, Telemetry
from ...api.providers import ThinkingLevel
from ...api.record import Record
from ...api.timeouts import Timeouts

if TYPE_CHECKING:
    # `model` resolves these names when it builds the check, so that a normal start does not import pydantic.
    from .checks import Addresses, Hooks, Hosts, Servers, ShortForm, Text, TierName, network_word

R = TypeVar("R", bound=Record)
T = TypeVar("T")
_NONE: Mapping[str, Any] = MappingProxyType({})


class Each(Mapping[str, T], Generic[T]):
    """The empty default of a section whose entries have arbitrary names. `kind` is the record type of an entry."""

    def __init__(self, kind: type[Record]) -> None:
        self.kind = kind

    def __getitem__(self, key: str) -> T:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class Interface(ChatPreferences):
    """`ui:`, if it is a mapping."""

    name: str = ""
    """The interface of the chat: `plain`, or one that a pack provides."""


class PackChoices(Record):
    """`packs:`. Every other name there is that of a pack, whose own model checks what stands below it."""

    rest: ClassVar[str] = "sections"
    off: tuple[Text, ...] = ()
    """The names of packs, or of their distributions, that are not loaded."""
    prefer: tuple[Text, ...] = ()
    """The packs that take precedence if several provide the same name. Marvin's own names take precedence over all
    packs."""
    sections: Mapping[str, Mapping[str, Any]] = _NONE
    """The settings of a pack, by the name in `marvin packs list`; see below for ours."""


class NetworkSettings(Record):
    """`network:`; a text alone is the kind, and hosts are a kind of their own."""

    kind: Literal["", "none", "loopback", "all", "hosts"] = ""
    hosts: Hosts = ()
    """Commands can reach these hosts only: example.org for all of its ports, example.org:443 for one,
    *.example.com for sub-domains."""


class FileSettings(Record):
    """config.yaml as a whole. A key that is an empty text counts as one that is not there."""

    provider: str = ""
    """The model service, if neither --provider nor LLM_PROVIDER is given."""
    model: str = ""
    """The model, if neither --model nor MARVIN_MODEL is given."""
    models: Mapping[TierName, str] = _NONE
    """The model of a tier."""
    thinking: ThinkingLevel | None = None
    """How much models think, if neither --thinking nor MARVIN_THINKING is given. Without it, as little as they can."""
    tier_thinking: Mapping[TierName, ThinkingLevel] = _NONE
    """How much the model of this tier thinks. It takes precedence over `thinking`."""
    cache: Literal["5m", "1h"] | None = None
    """How long services cache prompts, if the service offers a choice: 5m, or 1h, which costs more to write."""
    providers: Mapping[str, EndpointSettings] = Each(EndpointSettings)
    fallback: tuple[Text, ...] = ()
    """The models that take over if one fails, in this order: `PROVIDER` or `PROVIDER/MODEL`."""
    tools: str = ""
    """Tool sets, groups and names, as in --tools."""
    tool_search: ToolSearchUse = "auto"
    """Whether tools are hidden until the model searches for them, if neither --tool-search nor MARVIN_TOOL_SEARCH is
    given: `auto`, if there are many; `on`, all but a few; `off`, only if the service accepts no more."""
    ui: Annotated[Interface, ShortForm("name")] = Interface()
    """The interface of the chat, the same as `ui.name`. The keys below it are settings of the plain chat."""
    theme: str = "dark"
    """The colour theme of the chat: dark, light, contrast, colorblind, or the name of your own theme."""
    screen_reader: bool = False
    """`on` makes the chat suitable for a screen reader, as --screen-reader does."""
    packs: PackChoices = PackChoices()
    permission_mode: PermissionMode | None = None
    """Which calls need approval before they run: ask, edit, auto or readonly. Default in a chat: auto if the sandbox
    works, else ask."""
    permissions: Permissions = Permissions()
    labels: Labels = Labels()
    mcp_servers: Servers = Each(McpSettings)
    hooks: Hooks = Each(ShellHook)
    """Commands that run on this event: a method of `Hook`, such as before_tool, or the type of an event; see
    [Commands on events](../how-to/shell-hooks.md)."""
    child_env: tuple[Text, ...] = ()
    """Names of secret variables that the programs of tools may still see."""
    sandbox: SandboxUse = "auto"
    """Whether commands run in a sandbox, if neither --sandbox nor MARVIN_SANDBOX is given: `auto`, if one works;
    `required`; or `off`."""
    transport: Literal["direct", "stock"] = "direct"
    """How Marvin connects to model services: `direct`, with its own HTTP transport, or `stock`, with that of the
    library httpx."""
    ca_file: str = ""
    """A PEM file with the certificate authorities to trust; without it the file that SSL_CERT_FILE names."""
    prices: Mapping[str, Price] = Each(Price)
    instructions: str = ""
    """Text that is part of every system prompt."""
    allow_addresses: Addresses = ()
    """Hosts and networks that tools may reach even if they are private or this machine itself."""
    network: Annotated[NetworkSettings, ShortForm("kind", network_word, otherwise="hosts")] = NetworkSettings()
    """What commands can reach in the sandbox, if neither --network nor MARVIN_NETWORK is given: none, loopback or
    all. Without it: loopback in a chat, which asks before other hosts are reached; all elsewhere."""
    telemetry: Annotated[Telemetry, ShortForm("enabled", switch=True)] = Telemetry()
    """Whether traces and metrics are sent, the same as `telemetry.enabled`. The keys below it say where, and what."""
    seed: bool = True
    """Whether a chat starts with the last conversation of its folder: `on` or `off`."""
    timeouts: Timeouts = Timeouts()
    limits: Limits = Limits()


def record_of(kind: type[R], data: Mapping[str, Any]) -> R:
    """Convert checked JSON data to a record."""
    known, rest = kind._defaults, getattr(kind, "rest", "")
    values = {name: _value(known[name], value) for name, value in data.items() if name in known and name != rest}
    if len(values) < len(data):
        values[rest] = {name: value for name, value in data.items() if name not in values}
    return kind(**values)


def _value(usual: object, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if not isinstance(value, dict):
        return value
    if isinstance(usual, Record):
        return record_of(type(usual), value)
    return {key: _entry(usual.kind, entry) for key, entry in value.items()} if isinstance(usual, Each) else value


def _entry(kind: type[Record], entry: Any) -> Any:
    return tuple(record_of(kind, one) for one in entry) if isinstance(entry, list) else record_of(kind, entry)
