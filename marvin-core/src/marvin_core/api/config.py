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
"""Whether commands run in a sandbox: if one works, always, or never."""
ToolSearchUse: TypeAlias = Literal["on", "off", "auto"]
"""Whether tools are deferred until the model searches for them: most of them, none, or if there are many."""
PermissionMode: TypeAlias = Literal["ask", "edit", "auto", "readonly"]
"""How much needs approval if no rule applies. Reading never does.

`ask`: everything that writes or runs something needs approval. `edit`: files inside the working directory may be
written; everything else needs approval. `auto`: as edit, and commands may run in the sandbox. `readonly`: whatever
writes or runs something is denied.
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
    """The same once a request contained descriptions of tools that neither Marvin nor you wrote, such as those of
    third-party packs and of projects."""
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

    Its texts may contain `${NAME}` or `${NAME:-DEFAULT}`, which stand for environment variables.
    """

    command: str = ""
    """The program of a server with tools (MCP). It is started when one of its tools is needed; see [MCP
    servers](../how-to/mcp-servers.md). `${NAME}` stands for a variable, also in the keys below."""
    args: tuple[str, ...] = ()
    """The arguments of the program."""
    env: Mapping[str, str] = MappingProxyType({})
    """Environment variables for the program."""
    cwd: str = ""
    """The folder that the program runs in; default: the working directory."""
    url: str = ""
    """The address of a running server, instead of a command."""
    headers: Mapping[str, str] = MappingProxyType({})
    """HTTP headers that are sent with every request to the address."""
    client_id: str = ""
    """The client id for logging in at the address; without it, Marvin registers itself there."""
    client_secret: str = ""
    """The secret of the client id, if the service gave one."""
    login_port: int = 0
    """The port on this machine for the redirect after a login; 0 takes a free one."""
    sampling: Literal["deny", "ask", "allow"] = "deny"
    """Whether the server may send prompts to the model (sampling): `deny`; `ask`, each time; or `allow`."""
    sandbox: bool = True
    """Whether the program runs in the sandbox, if there is one."""
    read_only: tuple[str, ...] = ()
    """Patterns with * and ? of the server's tools that change nothing. What the server itself says about this does not
    count."""
    off: bool = False
    """Whether the server is disabled."""


class McpServer(McpSettings):
    """A server that speaks the Model Context Protocol."""

    name: str = ""
    origin: str = "config.yaml"
    """The file that names it."""
    of_project: bool = False
    """Whether a file of the project names it. Then none of the user's keys are filled into its settings."""


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
    """The configuration of a pack; `marvin_register_settings` returns it.

    `model` is `module:class`, a class derived from `Settings`; a module that begins with a dot is relative to the
    package of the plugin. Its fields are the keys of `packs.NAME:` in config.yaml, where NAME is the name of the pack's
    entry point. `variables` names an environment variable for a key, which takes precedence over config.yaml:
    `{"units": "ACME_UNITS"}`; a dot leads to a nested key. The entries of a list are separated by commas there.
    `secrets` are the variables with keys and passwords, each with a description for people: `{"ACME_KEY": "the key of
    Acme"}`. Their values are never in config.yaml, are redacted in everything that is shown or written, and are not
    passed to programs that tools start.
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
"""The parts of the status row."""
Attention: TypeAlias = Literal["bell", "notify", "title"]
"""How the chat asks for attention: by the bell, a notification of the terminal (OSC 9), or the window's title."""


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
    """Whether pictures from tools are drawn if the terminal supports it; otherwise their paths are shown."""
    attention: tuple[Attention, ...] = ("bell",)
    """How the chat asks for your attention: bell, notify, title."""


class Config(Record):
    """The whole configuration, without secrets. Paths are absolute."""

    prompt: str | None
    prompt_file: Path | None
    non_interactive: bool
    plain: bool
    design_first: bool
    pipeline_from: str
    """The first phase of the pipeline; empty to continue where it stopped."""
    pipeline_until: str
    """The last phase of the pipeline; empty for all of them."""
    upstream: Path | None
    """A folder of documents for the agents of the pipeline."""
    max_time: float | None
    """The time limit of the pipeline, in seconds."""
    yes: bool
    """Whether the pipeline starts again from the beginning without asking."""
    strict: bool
    """Whether the pipeline fails if the evidence for its result is weak."""
    github: bool
    """Whether the pipeline writes annotations and the job summary of GitHub Actions."""
    ntfy: str
    """The topic for notifications of a non-interactive run; empty for none."""
    ntfy_url: str
    """The notification server; empty for the public one."""
    working_dir: Path
    """The sandbox root."""
    rooted: bool
    """Whether the root was set with --working-dir."""
    in_home: bool
    """Whether the root is the home folder itself, where tools that write or run programs need approval."""
    provider: str
    provider_origin: str
    provider_from: Source
    model: str
    model_origin: str
    model_from: Source
    thinking: ThinkingLevel
    """The initial thinking level of the model."""
    thinking_from: Source
    tiers: Mapping[str, str]
    """The model of each tier, by the tier's name."""
    tier_thinking: Mapping[str, ThinkingLevel]
    """The thinking level of each tier that has one, by the name of the tier."""
    fallback: tuple[str, ...]
    """The models to fall back to if the chosen one fails."""
    tools: str
    tool_search: ToolSearchUse
    """Whether tools are deferred until the model searches for them."""
    output_format: OutputFormat
    output_schema: Mapping[str, Any] | None
    """The JSON schema of the last answer; None for free text."""
    on_ask: OnAsk
    """What happens in a non-interactive run to calls that need approval."""
    on_ask_tools: Mapping[str, OnAsk]
    """The same for individual tools."""
    permission_mode: PermissionMode | None
    """The initial permission mode, if one was chosen."""
    trust_project: bool
    """Whether this run may load the extensions of the working directory."""
    continue_session: bool
    resume: str
    max_cost: float | None
    """The cost ceiling in USD."""
    ledger: str
    """The address of the cost ledger, as passed by the parent process."""
    agent_slots: str
    """Where the running agents of a run are counted, as passed by the parent process."""
    home: Path
    config_folder: Path
    data_folder: Path
    cache_folder: Path
    state_folder: Path
    packs: frozenset[str] | None
    pack_sections: Mapping[str, Mapping[str, Any]]
    """`packs:` in config.yaml, unchecked: the settings of each pack by its name."""
    packs_off: frozenset[str]
    """The packs that config.yaml disables, by their names or those of their distributions."""
    packs_prefer: tuple[str, ...]
    """The packs that get a name which several packs use, by preference."""
    trace_hooks: bool
    depth: int
    read_only: bool
    writable_files: tuple[str, ...] | None
    ticket: str
    subagent_log: Path | None
    lifeline: str
    """The inode of the pipe on standard input whose closing ends this agent; empty for none."""
    color: bool
    theme: str
    """The name of the theme."""
    screen_reader: bool
    """Whether the chat is written once, as text, from top to bottom."""
    editor: str
    """The user's editor: a program with optional arguments."""
    terminal: str
    """The type of the terminal; empty if unset. Many terminals claim to be xterm-like; xterm itself is just `xterm`."""
    curses: bool
    """Whether the chat of earlier versions was requested."""
    ui: str
    """The interface of the chat; empty for `plain`."""
    chat: ChatPreferences
    http_proxy: str
    https_proxy: str
    no_proxy: str
    ca_file: str
    transport: str
    cache: CacheLifetime
    """The lifetime of cache entries, for services with a choice."""
    permissions: Permissions
    labels: Labels
    """What needs approval after untrusted data was read."""
    shell_hooks: tuple[ShellHook, ...]
    """The commands that run on events, in the order of config.yaml."""
    mcp_servers: Mapping[str, McpServer]
    """The MCP servers in config.yaml."""
    endpoints: Mapping[str, EndpointSettings]
    prices: Mapping[str, Price]
    prices_url: str
    """The source of updated prices; empty for the default."""
    instructions: str
    seed: bool
    """Whether a chat begins with the last messages of its folder."""
    child_env: frozenset[str]
    sandbox: SandboxUse
    allow_addresses: tuple[str, ...]
    """Local hosts and networks that tools may reach."""
    network: NetworkPolicy | None
    """The network policy of commands; None for the default: everything in non-interactive runs, else each other."""
    timeouts: Timeouts
    limits: Limits
    telemetry: Telemetry = Telemetry()
    """The settings of OpenTelemetry."""
    record: Path | None = None
    """The file that records the session."""
    project: ProjectFiles | None = None
    """The extensions of a trusted working directory; its settings are already merged into those above."""

    def when_asked(self, tool: str) -> OnAsk:
        """What happens in a non-interactive run to calls of a tool that need approval."""
        return self.on_ask_tools.get(tool, self.on_ask)

    @property
    def on_ask_text(self) -> str:
        """The same values as --on-ask and MARVIN_ON_ASK take them."""
        return ",".join([self.on_ask, *(f"{tool}={answer}" for tool, answer in self.on_ask_tools.items())])

    @property
    def coding(self) -> bool:
        """Whether coding mode is on from the start."""
        return self.non_interactive
