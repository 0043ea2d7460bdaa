"""What config.yaml may hold: each field of these records is a key.

The type of a field says which values it takes, its default what holds without it, and the string below it what it
means. The check (`model`), the reference page and `marvin config set` are derived from them. The records of sections
that the rest of Marvin works with are in `api`.
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
    Price,
    SandboxUse,
    ShellHook,
    ToolSearchUse,
)
from ...api.limits import Limits
from ...api.providers import ThinkingLevel
from ...api.record import Record
from ...api.timeouts import Timeouts

if TYPE_CHECKING:
    # These names are looked up where the check is made, so that no start imports pydantic for them.
    from .checks import Addresses, Hooks, Hosts, Servers, ShortForm, Text, TierName, network_word

R = TypeVar("R", bound=Record)
T = TypeVar("T")
_NONE: Mapping[str, Any] = MappingProxyType({})


class Each(Mapping[str, T], Generic[T]):
    """The default of a section with entries under any names: none yet. `kind` is the record that an entry becomes."""

    def __init__(self, kind: type[Record]) -> None:
        self.kind = kind

    def __getitem__(self, key: str) -> T:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class Interface(ChatPreferences):
    """`ui:`, where it is a mapping."""

    name: str = ""
    """The interface of the chat; packs bring others beside `plain`."""


class PackChoices(Record):
    """`packs:`. Every other name there is that of a pack, whose own model checks what stands below it."""

    rest: ClassVar[str] = "sections"
    off: tuple[Text, ...] = ()
    """Packs that are not used, by their names or those of their distributions."""
    prefer: tuple[Text, ...] = ()
    """Packs that come first where several bring the same name; Marvin's own come before all of them."""
    sections: Mapping[str, Mapping[str, Any]] = _NONE
    """The settings of a pack, by the name in `marvin packs list`; see below for ours."""


class NetworkSettings(Record):
    """`network:`; a text alone is the kind, and hosts are a kind of their own."""

    kind: Literal["", "none", "loopback", "all", "hosts"] = ""
    hosts: Hosts = ()
    """Reach these hosts only: example.org for all of its ports, example.org:443 for one, *.example.com for
    sub-domains."""


class FileSettings(Record):
    """config.yaml as a whole. A key that is an empty text counts as one that is not there."""

    provider: str = ""
    """The model service, where neither --provider nor LLM_PROVIDER names one."""
    model: str = ""
    """The model, where neither --model nor MARVIN_MODEL names one."""
    models: Mapping[TierName, str] = _NONE
    """The model of a tier."""
    thinking: ThinkingLevel | None = None
    """How hard models think, where neither --thinking nor MARVIN_THINKING says so. Without it they think as little as
    they can."""
    tier_thinking: Mapping[TierName, ThinkingLevel] = _NONE
    """How hard the model of this tier thinks, whatever else is said."""
    cache: Literal["5m", "1h"] | None = None
    """How long services keep what they read, where one may choose; 1h costs more to write."""
    providers: Mapping[str, EndpointSettings] = Each(EndpointSettings)
    fallback: tuple[Text, ...] = ()
    """The models that go on where one fails, in this order: `PROVIDER` or `PROVIDER/MODEL`."""
    tools: str = ""
    """Tool sets, groups and names, as in --tools."""
    tool_search: ToolSearchUse = "auto"
    """Whether tools wait until the model looks for them, where neither --tool-search nor MARVIN_TOOL_SEARCH says so:
    `auto`, where there are many; `on`, all but a few; `off`, only where the service takes no more."""
    ui: Annotated[Interface, ShortForm("name")] = Interface()
    """The interface of the chat, as `ui.name`; or the keys below it, which are those of the plain chat."""
    theme: str = "dark"
    """What the chat is drawn with: dark, light, contrast, colorblind, or a theme of your own."""
    screen_reader: bool = False
    """`on`: the chat is written for a screen reader, as with --screen-reader."""
    packs: PackChoices = PackChoices()
    permission_mode: PermissionMode | None = None
    """How much is asked before calls run. Without it a chat begins with auto where the sandbox holds, else with
    ask."""
    permissions: Permissions = Permissions()
    labels: Labels = Labels()
    mcp_servers: Servers = Each(McpSettings)
    hooks: Hooks = Each(ShellHook)
    """Commands that this event starts: a method of `Hook`, as before_tool, or the type of an event; see
    [Commands on events](../how-to/shell-hooks.md)."""
    child_env: tuple[Text, ...] = ()
    """Secret variables that programs which tools start may see all the same."""
    sandbox: SandboxUse = "auto"
    """Whether commands run in a sandbox, where neither --sandbox nor MARVIN_SANDBOX says so: `auto`, where one works;
    `required`, only in one; `off`, never."""
    transport: Literal["direct", "stock"] = "direct"
    """`direct`, Marvin's own connections to model services, or `stock`, those of the library httpx."""
    ca_file: str = ""
    """A file with the certificate authorities to trust; without it that of SSL_CERT_FILE."""
    prices: Mapping[str, Price] = Each(Price)
    instructions: str = ""
    """Text that every system prompt carries."""
    allow_addresses: Addresses = ()
    """Hosts and networks that tools may reach, though they are private or this machine itself."""
    network: Annotated[NetworkSettings, ShortForm("kind", network_word, otherwise="hosts")] = NetworkSettings()
    """What commands reach in the sandbox: none, loopback or all, where --network and MARVIN_NETWORK name nothing.
    Without it that is loopback in a chat, which asks about further hosts, and all elsewhere."""
    seed: bool = True
    """`off`: a chat does not begin with what was said last in its folder."""
    timeouts: Timeouts = Timeouts()
    limits: Limits = Limits()


def record_of(kind: type[R], data: Mapping[str, Any]) -> R:
    """The record of what the check passed, as JSON holds it."""
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
