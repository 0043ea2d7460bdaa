"""The configuration: flags, environment and config.yaml merged into one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from .limits import Limits, Price, Telemetry
from .providers import CacheLifetime, ThinkingLevel
from .record import Record
from .timeouts import Timeouts

OutputFormat: TypeAlias = Literal["text", "json", "stream-json"]
Source: TypeAlias = Literal["", "flag", "environment", "file"]
"""Where a value comes from; empty for a default."""
OnAsk: TypeAlias = Literal["allow", "deny", "allow-all"]
"""What happens in a non-interactive run to a call that needs approval."""
SandboxUse: TypeAlias = Literal["auto", "required", "off"]
"""Whether commands run in a sandbox: where one works, only in one, or never."""
ToolSearchUse: TypeAlias = Literal["on", "off", "auto"]
"""Whether tools are deferred until the model searches for them: most of them, none, or only if there are many."""
PermissionMode: TypeAlias = Literal["ask", "edit", "auto", "readonly"]
"""How much needs approval where no rule applies. Reading never does.

`ask`: everything that writes or runs something needs approval. `edit`: files inside the working directory may be
written; everything else needs approval. `auto`: as edit, and commands may run in the sandbox. `readonly`:
whatever writes or runs something is denied.
"""
NetworkKind: TypeAlias = Literal["none", "loopback", "hosts", "all"]


class NetworkPolicy(Record):
    """The hosts that commands of a session can connect to.

    `none` and `loopback`: only each other. In the sandbox the commands have a loopback interface of their own, separate
    from that of the machine; with `loopback` a chat asks about each other host. `hosts` also allows the hosts in that
    field. `all` is the network of Marvin itself, including the loopback interface of the machine.
    """

    kind: NetworkKind
    hosts: tuple[str, ...] = ()
    """The allowed hosts: example.org, *.example.com for sub-domains, git.example.com:443."""

    def as_text(self) -> str:
        """The policy as --network and MARVIN_NETWORK take it."""
        return ",".join(self.hosts) if self.kind == "hosts" and self.hosts else self.kind.replace("hosts", "loopback")


class Permissions(Record):
    """The rules of config.yaml, each `tool` or `tool(pattern)`."""

    allow: tuple[str, ...] = ()
    """Calls that need no approval: `TOOL` or `TOOL(PATTERN)`, with *, ? and [...]; see
    [Permissions](../how-to/permissions.md)."""
    ask: tuple[str, ...] = ()
    """Calls that need approval."""
    deny: tuple[str, ...] = ()
    """Calls that never run."""


Sink: TypeAlias = Literal["send", "spend", "run", "reach"]
"""What a tool can do with data read earlier: send it, spend money, run programs, or make network requests."""


class Labels(Record):
    """Which kinds of tools need approval once a session has read data of an origin."""

    web: tuple[Sink, ...] = ("send", "spend", "run")
    """Which tools need approval after something was read from the network: `send`, `spend`, `run`, or `reach` for all
    that reach the network; see [Permissions](../how-to/permissions.md#after-what-was-read)."""
    repository: tuple[Sink, ...] = ("send",)
    """The same for files of the working directory and the output of commands."""
    private: tuple[Sink, ...] = ("send",)
    """The same for stored data, such as notes and calendars."""
    secret: tuple[Sink, ...] = ("send",)
    """The same for results from which a key or password was removed."""
    tools: tuple[Sink, ...] = ("send",)
    """The same once a request carried descriptions of tools that neither Marvin nor you wrote, as those of packs of
    others and of projects."""
    unattended: bool = False
    """Whether this also applies to non-interactive runs. If so, these calls are denied."""


class ShellHook(Record):
    """One entry below `hooks:` in config.yaml: a command that runs on an event."""

    event: str
    """The method of `Hook`, or the type of the event."""
    command: str
    tools: tuple[str, ...] = ()
    """Patterns of tool names; only calls of these tools trigger it. Empty for all."""
    sandbox: bool = False
    """Whether it runs in the sandbox, like the model's commands, or with the permissions of the user."""
    file: str = "config.yaml"
    """Where it is defined, for people."""


class ProjectFiles(Record):
    """The trusted extensions of the working directory, with the content for which trust was given."""

    root: Path
    hooks: Mapping[str, str]
    """The sources of `.marvin/hooks` by name. They run in the sandbox. Each character stands for one byte."""
    commands: Mapping[str, str]
    """The texts of `.marvin/commands` by name."""
    tools: Path | None
    """A private copy of the folder `.marvin/tools`; None if that is empty."""


class McpSettings(Record):
    """One entry below `mcp_servers:` in config.yaml: a program to start, or an address to connect to.

    Its texts may hold `${NAME}` or `${NAME:-DEFAULT}`, which stand for environment variables.
    """

    command: str = ""
    """The program of a server with tools (MCP), started when one of them is wanted; see
    [MCP servers](../how-to/mcp-servers.md). `${NAME}` stands for a variable here and below."""
    args: tuple[str, ...] = ()
    """Its arguments."""
    env: Mapping[str, str] = MappingProxyType({})
    """Variables for it."""
    cwd: str = ""
    """The folder that it runs in; without it, the working directory."""
    url: str = ""
    """The address of a server that runs already, in place of a command."""
    headers: Mapping[str, str] = MappingProxyType({})
    """Sent with every request to that address."""
    client_id: str = ""
    """What the log-in service of that address knows Marvin by; without it, Marvin registers there by itself."""
    client_secret: str = ""
    """What goes with it, where the service gave one."""
    login_port: int = 0
    """The port of this machine that the log-in leads back to; 0 takes a free one."""
    sampling: Literal["deny", "ask", "allow"] = "deny"
    """Whether it may put questions to the model (sampling): `deny`; `ask`, each time; or `allow`."""
    sandbox: bool = True
    """Whether its program runs in the sandbox, where there is one."""
    read_only: tuple[str, ...] = ()
    """Its tools that change nothing, with * and ?. What the server says of its tools is no proof."""
    off: bool = False
    """Whether it is left out."""


class McpServer(McpSettings):
    """A server that speaks the Model Context Protocol."""

    name: str = ""
    origin: str = "config.yaml"
    """The file that names it."""
    of_project: bool = False
    """Whether a project's file names it. No key of the user's is filled into the setup of such a server."""


class EndpointSettings(Record):
    """One entry of `providers:` in config.yaml; empty fields keep the provider's defaults."""

    wire: str = ""
    """The wire format of the service; default: chat-completions."""
    base_url: str = ""
    """Its address, up to the version: https://models.example.com/v1."""
    key: str = ""
    """The name of the variable with its key, never the key itself."""
    models: tuple[str, ...] = ()
    """What it serves, the default first."""
    context_window: int | None = None
    """The context window of its models, in tokens."""
    windows: Mapping[str, int] | None = None
    """The context window, in tokens, of models whose name starts with NAME."""
    max_tools: int | None = None
    """The maximum number of tools in a request."""
    headers: Mapping[str, str] | None = None
    """HTTP headers that are sent with every request."""
    auth_url: str = ""
    """The address at which `marvin login` logs in."""
    free: bool | None = None
    """Whether its requests cost nothing. Without it, those to a server on this machine that runs its models itself do.
    Requests to a gateway on this machine cost what its model costs."""


class PackSettings(Record):
    """What a pack is configured with; `marvin_register_settings` returns it.

    `model` is `module:class`, a class derived from `Settings`; a module that begins with a dot counts from the package
    of the plugin. Its fields are the keys of `packs.NAME:` in config.yaml, NAME being the name of the pack's entry
    point. `variables` names an environment variable for a key, which counts more than config.yaml: `{"units":
    "ACME_UNITS"}`, a dot leading below. Of a list its entries are separated by commas there.
    `secrets` are the variables that hold keys and passwords, each with what it is, for people: `{"ACME_KEY": "the key
    of Acme"}`. Their values are never in config.yaml, are redacted wherever something is shown or written, and reach no
    program that tools start.
    """

    model: str = ""
    variables: Mapping[str, str] | None = None
    secrets: Mapping[str, str] | None = None


StatusPart: TypeAlias = Literal[
    "model",
    "mode",
    "thinking",
    "folder",
    "branch",
    "context",
    "cost",
    "running",
    "profile",
    "shell",
    "messages",
    "tokens",
]
"""What the status row can show."""
Attention: TypeAlias = Literal["bell", "notify", "title"]
"""How the chat calls for somebody: by the bell, a notification of the terminal (OSC 9), or the window's title."""


class ChatPreferences(Record):
    """How the chat on a terminal behaves, as `ui:` in config.yaml says."""

    markdown: bool = True
    """Whether Markdown in answers is rendered: `on`, or `off` to show the source as the model wrote it."""
    thinking: bool = False
    """Whether the thinking of a model is shown, dimmed and folded: `on` or `off`. Ctrl+O always shows it."""
    status: tuple[StatusPart, ...] = ("model", "mode", "thinking", "folder", "branch", "context", "cost", "running")
    """The parts of the status row, in order: model, mode, thinking, folder, branch, context, cost, running, profile,
    shell, messages, tokens. An empty list hides it."""
    keys: Literal["emacs", "vi"] = "emacs"
    """The key bindings of the line editor: `emacs` or `vi`."""
    completion: Literal["typing", "tab"] = "typing"
    """When completions are shown: `typing` (while a name or a file is typed) or `tab`."""
    pictures: bool = True
    """Whether pictures of tools are drawn where the terminal says that it can; else their paths are told."""
    attention: tuple[Attention, ...] = ("bell",)
    """How the chat asks for your attention: bell, notify, title."""


class Config(Record):
    """Everything that was asked for, without secrets. Paths are absolute."""

    prompt: str | None
    prompt_file: Path | None
    non_interactive: bool
    plain: bool
    design_first: bool
    pipeline_from: str
    """The phase that the pipeline begins with; empty for where it stopped."""
    pipeline_until: str
    """The phase that the pipeline ends with; empty for the last one."""
    upstream: Path | None
    """A folder of documents that the agents of the pipeline may read."""
    max_time: float | None
    """The seconds that the pipeline may take."""
    yes: bool
    """Whether the pipeline begins anew without asking."""
    strict: bool
    """Whether the pipeline fails where the evidence for its result is weak."""
    github: bool
    """Whether the pipeline writes annotations and the job summary of GitHub Actions."""
    ntfy: str
    """The topic that notices of a non-interactive run are sent to; empty for none."""
    ntfy_url: str
    """The server that takes them; empty for the public one."""
    working_dir: Path
    """The sandbox root."""
    rooted: bool
    """Whether the root was set with --working-dir."""
    in_home: bool
    """Whether the root is the home folder itself, where write and exec tools ask."""
    provider: str
    provider_origin: str
    provider_from: Source
    model: str
    model_origin: str
    model_from: Source
    thinking: ThinkingLevel
    """How hard the model thinks that the run begins with."""
    thinking_from: Source
    tiers: Mapping[str, str]
    """The model of each tier, by the tier's name."""
    tier_thinking: Mapping[str, ThinkingLevel]
    """How hard the models of tiers think, where something is said of them."""
    fallback: tuple[str, ...]
    """The models that go on where the chosen one fails."""
    tools: str
    tool_search: ToolSearchUse
    """Whether tools wait until a model looks for them."""
    output_format: OutputFormat
    output_schema: Mapping[str, Any] | None
    """The JSON schema that the last answer has to fit; None where it may have any form."""
    on_ask: OnAsk
    """What a run in which nobody can be asked does with calls that would be asked about."""
    on_ask_tools: Mapping[str, OnAsk]
    """The same for single tools."""
    permission_mode: PermissionMode | None
    """How much is asked from the start, where somebody chose it."""
    trust_project: bool
    """Whether this run may load what the working directory brings."""
    continue_session: bool
    resume: str
    max_cost: float | None
    """The cost ceiling in USD."""
    ledger: str
    """The address of the ledger that a parent handed over."""
    agent_slots: str
    """Where the places of the agents of a run are counted, as a parent handed it over."""
    home: Path
    config_folder: Path
    data_folder: Path
    cache_folder: Path
    state_folder: Path
    packs: frozenset[str] | None
    pack_sections: Mapping[str, Mapping[str, Any]]
    """`packs:` of config.yaml as it stands there: the settings of each pack, by its name, not checked yet."""
    packs_off: frozenset[str]
    """The packs that config.yaml switches off, by their names or those of their distributions."""
    packs_prefer: tuple[str, ...]
    """The packs that have a name which others bring as well, the first one first."""
    trace_hooks: bool
    depth: int
    read_only: bool
    writable_files: tuple[str, ...] | None
    ticket: str
    subagent_log: Path | None
    lifeline: str
    """Which pipe on standard input ends this agent with its own end, by its inode; empty for none."""
    color: bool
    theme: str
    """What the chat is drawn with."""
    screen_reader: bool
    """Whether the chat is written once, in words, from top to bottom."""
    editor: str
    """The user's editor: a program, and maybe its arguments."""
    terminal: str
    """The kind of terminal; empty where none is named. Many say that they are one of xterm's; xterm is just `xterm`."""
    curses: bool
    """Whether somebody asked for the chat of earlier versions."""
    ui: str
    """The interface of the chat; empty for `plain`."""
    chat: ChatPreferences
    http_proxy: str
    https_proxy: str
    no_proxy: str
    ca_file: str
    transport: str
    cache: CacheLifetime
    """How long services keep what they read, where one may choose."""
    permissions: Permissions
    labels: Labels
    """What is asked about after what was read."""
    shell_hooks: tuple[ShellHook, ...]
    """The commands that events start, in the order of config.yaml."""
    mcp_servers: Mapping[str, McpServer]
    """The servers with tools that config.yaml names."""
    endpoints: Mapping[str, EndpointSettings]
    prices: Mapping[str, Price]
    prices_url: str
    """Where a newer table of prices comes from; empty for where its makers keep it."""
    instructions: str
    seed: bool
    """Whether a chat begins with what was said last in its folder."""
    child_env: frozenset[str]
    sandbox: SandboxUse
    allow_addresses: tuple[str, ...]
    """Hosts and networks of this machine and its surroundings that tools may reach."""
    network: NetworkPolicy | None
    """What commands may reach; None where nobody said: everything where nobody is there to ask, else each other."""
    timeouts: Timeouts
    limits: Limits
    telemetry: Telemetry = Telemetry()
    """What is sent to a collector of OpenTelemetry."""
    record: Path | None = None
    """The file that the session is recorded to."""
    project: ProjectFiles | None = None
    """What the working directory brings, where that is trusted; its settings are among those above."""

    def when_asked(self, tool: str) -> OnAsk:
        """What a run in which nobody can be asked does with calls of a tool that would be asked about."""
        return self.on_ask_tools.get(tool, self.on_ask)

    @property
    def on_ask_text(self) -> str:
        """Those answers as --on-ask and MARVIN_ON_ASK take them."""
        return ",".join([self.on_ask, *(f"{tool}={answer}" for tool, answer in self.on_ask_tools.items())])

    @property
    def coding(self) -> bool:
        """Whether coding mode is on from the start."""
        return self.non_interactive
