"""Marvin's public interface: what a pack may import.

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from .version import API, __version__

# Type checkers take it for the constant of `typing`, which would cost `marvin --version` as much as Python itself.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pydantic import Field

    from .api.agents import (
        AgentEnding,
        AgentProgress,
        AgentResult,
        Agents,
        AgentTask,
        ApartTask,
        Isolation,
        PipelinePhase,
    )
    from .api.config import (
        Attention,
        ChatPreferences,
        Config,
        EndpointSettings,
        Labels,
        McpServer,
        McpSettings,
        NetworkKind,
        NetworkPolicy,
        OnAsk,
        OutputFormat,
        PackSettings,
        PermissionMode,
        Permissions,
        ProjectFiles,
        SandboxUse,
        ShellHook,
        Sink,
        Source,
        StatusPart,
        ToolSearchUse,
    )
    from .api.controls import (
        AutonomyControl,
        Branch,
        Choice,
        ContextUse,
        ModelControl,
        PersonControl,
        Picking,
        ProfileControl,
        PromptEntry,
        SaidEntry,
        SessionEntry,
        SessionsControl,
        SessionStanding,
        ToolControl,
        UndoControl,
        UndoEntry,
    )
    from .api.errors import (
        AuthFailed,
        BadRequest,
        BudgetExceeded,
        ConfigError,
        ContextOverflow,
        FileChanged,
        MarvinError,
        ModelNotFound,
        NeverUndone,
        NotActed,
        OutputLimit,
        Overloaded,
        PathRefused,
        ProviderError,
        QuotaExhausted,
        RateLimited,
        Refused,
        RequestFailed,
        StreamBroken,
        ToolError,
        Unreachable,
        UsageError,
    )
    from .api.events import (
        AgentEnd,
        AgentStart,
        AppStart,
        CallOrigin,
        Event,
        MessageEnd,
        MessageOrigin,
        MessageStart,
        MessageUpdate,
        ModelCycle,
        Notice,
        SessionClear,
        SessionResume,
        SessionStart,
        ToolExecutionEnd,
        ToolExecutionStart,
        ToolExecutionUpdate,
        TurnEnd,
        TurnStart,
        Unsubscribe,
        UsageReport,
    )
    from .api.hooks import Ask, Deny, Hook, HookContext, Verdict
    from .api.hookspecs import hookimpl
    from .api.limits import Limits, Price, Telemetry
    from .api.messages import (
        Block,
        Call,
        Cell,
        Image,
        Link,
        Message,
        ModelUsage,
        Picture,
        ProviderData,
        Role,
        Shown,
        StopReason,
        Table,
        Text,
        Thinking,
        ToolCall,
        ToolOutput,
        Usage,
        UsageSummary,
    )
    from .api.models import (
        AgentModel,
        CostCeiling,
        KeyControl,
        KeyPlace,
        ModelEntry,
        ModelListener,
        Reservation,
        Serving,
    )
    from .api.permissions import (
        AskedCall,
        PermissionAnswer,
        PermissionControl,
        PermissionUI,
        ProjectTrust,
        Question,
        Reply,
    )
    from .api.processes import Conversation, Job, Processes, ProcessResult
    from .api.providers import (
        CacheLifetime,
        CallDelta,
        ClientFactory,
        Delta,
        Endpoint,
        Provider,
        ProviderSpec,
        Request,
        Retrying,
        Secret,
        Stop,
        Switched,
        TextDelta,
        ThinkingDelta,
        ThinkingLevel,
        ToolChoice,
        UsageDelta,
    )
    from .api.record import Record
    from .api.session import (
        Attached,
        ChatSettings,
        Command,
        CommandFunction,
        RunningCall,
        SessionControl,
        SessionSnapshot,
        TurnResult,
        UISpec,
    )
    from .api.settings import Settings
    from .api.timeouts import Timeouts
    from .api.tool_context import (
        Clock,
        FileInfo,
        FileKind,
        FileWrite,
        PackContext,
        PackFolders,
        Paths,
        SessionView,
        ToolContext,
    )
    from .api.tools import (
        Access,
        Gate,
        Mode,
        Sign,
        Tool,
        ToolDecorator,
        ToolGroup,
        ToolResult,
        ToolSet,
        ToolSpec,
        ToolTimeout,
        tool,
    )
    from .api.ui import UI, AsksSecrets, AsksText, CliContext, CopiesText, Lead, OpensEditors, PicksChoices, RunControl
    from .guard.files.key_files import is_key_file
    from .guard.files.no_links import is_there, open_without_links, opened_folder, own_folder
    from .guard.files.worktree_folders import remove_worktree, remove_worktree_locks
    from .guard.processes.apart import ApartJobs, ApartOrder
    from .kit.addresses import web_address
    from .kit.editing.applying import edit_files
    from .kit.editing.failures import EditFailed
    from .kit.editing.formats import is_patch, read_patch
    from .kit.editing.known import KnownFiles, ReadLines, Standing
    from .kit.editing.patch import FilePatch, Hunk, PatchError, PatchKind
    from .kit.editing.planning import EditedFile, EditedPlace, EditKind
    from .kit.editing.snapshot import place_of
    from .kit.editing.whole_files import (
        AppendedText,
        WrittenFile,
        append_to_file,
        write_text_file,
    )
    from .kit.fetching import Fetched, RequestOptions, delete, fetch, fetch_json, open_url, post, post_json
    from .kit.files.committable import (
        HABITUALLY_IGNORED,
        KEY_SAMPLE,
        NAME_REFUSED,
        refused_names,
        usually_ignored,
        why_content_left_out,
        why_left_out,
    )
    from .kit.files.diffs import unified_diff
    from .kit.files.encodings import binary_kind, count_lines, image_type
    from .kit.files.finding import FoundFile, FoundFiles, find_files
    from .kit.files.listing import real_place
    from .kit.files.reading import TextSource
    from .kit.files.sections import LinePart, TextSection
    from .kit.files.tree import FolderTree, folder_tree
    from .kit.image_files import image_flaw
    from .kit.json_file import JsonFile
    from .kit.markup import plain_text
    from .kit.notices import NtfyServer, Push, PushPriority, publish
    from .kit.ntfy import Notifier
    from .kit.rate_limit import RateLimit
    from .kit.search.lines import FoundLine
    from .kit.search.results import SearchQuery, SearchResult
    from .kit.search.searching import search_files
    from .kit.service_health import ServiceHealth, ServiceState
    from .kit.stored_file import StoredFile
    from .kit.text import head_and_tail, numbered, output_text
    from .kit.undo import call_of
    from .kit.yaml_file import YamlFile
    from .tickets.commands import TicketOutcome, TicketPlace, run_tickets, ticket_commands
    from .tickets.folder import TicketFolder, find_ticket_folder
    from .tickets.ticket import Ticket, TicketError
    from .usage.shared import SharedBudget
    from .util.git_calls import (
        GIT_ALONE,
        GIT_ASKS_NOBODY,
        GIT_PROGRAMS,
        GIT_TRANSFERS,
        git_command,
        git_without_programs,
    )
    from .util.patterns.topics import is_topic
    from .util.state_files import is_locked, take_lock, update_file
    from .util.text import counted, did_you_mean, near_names, one_line
    from .util.threads import in_thread

_NAMES_IN = {
    "api.agents": "AgentEnding AgentProgress AgentResult AgentTask Agents ApartTask Isolation PipelinePhase",
    "api.config": (
        "Attention ChatPreferences Config EndpointSettings Labels McpServer McpSettings NetworkKind NetworkPolicy "
        "OnAsk OutputFormat PackSettings PermissionMode Permissions ProjectFiles SandboxUse ShellHook Sink "
        "Source StatusPart ToolSearchUse"
    ),
    "api.controls": (
        "AutonomyControl Branch Choice ContextUse ModelControl PersonControl Picking ProfileControl PromptEntry "
        "SaidEntry SessionEntry SessionStanding SessionsControl ToolControl UndoControl UndoEntry"
    ),
    "api.errors": (
        "AuthFailed BadRequest BudgetExceeded ConfigError ContextOverflow FileChanged MarvinError ModelNotFound "
        "NeverUndone NotActed OutputLimit Overloaded PathRefused ProviderError QuotaExhausted RateLimited Refused "
        "RequestFailed StreamBroken ToolError Unreachable UsageError"
    ),
    "api.events": (
        "AgentEnd AgentStart AppStart CallOrigin Event MessageEnd MessageOrigin MessageStart MessageUpdate "
        "ModelCycle Notice SessionClear SessionResume SessionStart ToolExecutionEnd ToolExecutionStart "
        "ToolExecutionUpdate TurnEnd TurnStart Unsubscribe UsageReport"
    ),
    "api.hooks": "Ask Deny Hook HookContext Verdict",
    "api.hookspecs": "hookimpl",
    "api.limits": "Limits Price Telemetry",
    "api.messages": (
        "Block Call Cell Image Link Message ModelUsage Picture ProviderData Role Shown StopReason Table Text "
        "Thinking ToolCall ToolOutput Usage UsageSummary"
    ),
    "api.models": "AgentModel CostCeiling KeyControl KeyPlace ModelEntry ModelListener Reservation Serving",
    "api.permissions": "AskedCall PermissionAnswer PermissionControl PermissionUI ProjectTrust Question Reply",
    "api.providers": (
        "CacheLifetime CallDelta ClientFactory Delta Endpoint Provider ProviderSpec Request Retrying Secret "
        "Stop Switched TextDelta ThinkingDelta ThinkingLevel ToolChoice UsageDelta"
    ),
    "api.record": "Record",
    "api.session": (
        "Attached ChatSettings Command CommandFunction RunningCall SessionControl SessionSnapshot TurnResult UISpec"
    ),
    "api.settings": "Settings",
    "api.timeouts": "Timeouts",
    "api.processes": "Conversation Job ProcessResult Processes",
    "api.tool_context": ("Clock FileInfo FileKind FileWrite PackContext PackFolders Paths SessionView ToolContext"),
    "api.tools": "Access Gate Mode Sign Tool ToolDecorator ToolGroup ToolResult ToolSet ToolSpec ToolTimeout tool",
    "api.ui": "UI AsksSecrets AsksText CliContext CopiesText Lead OpensEditors PicksChoices RunControl",
    "guard.files.key_files": "is_key_file",
    "guard.processes.apart": "ApartJobs ApartOrder",
    "guard.files.no_links": "is_there open_without_links opened_folder own_folder",
    "guard.files.worktree_folders": "remove_worktree remove_worktree_locks",
    "kit.addresses": "web_address",
    "kit.editing.applying": "edit_files",
    "kit.editing.failures": "EditFailed",
    "kit.editing.formats": "is_patch read_patch",
    "kit.editing.known": "KnownFiles ReadLines Standing",
    "kit.editing.patch": "FilePatch Hunk PatchError PatchKind",
    "kit.editing.planning": "EditKind EditedFile EditedPlace",
    "kit.editing.snapshot": "place_of",
    "kit.editing.whole_files": "AppendedText WrittenFile append_to_file write_text_file",
    "kit.fetching": "Fetched RequestOptions delete fetch fetch_json open_url post post_json",
    "kit.files.committable": (
        "HABITUALLY_IGNORED KEY_SAMPLE NAME_REFUSED refused_names usually_ignored why_content_left_out why_left_out"
    ),
    "kit.files.diffs": "unified_diff",
    "kit.files.encodings": "binary_kind count_lines image_type",
    "kit.files.finding": "FoundFile FoundFiles find_files",
    "kit.files.listing": "real_place",
    "kit.files.reading": "TextSource",
    "kit.files.sections": "LinePart TextSection",
    "kit.files.tree": "FolderTree folder_tree",
    "kit.image_files": "image_flaw",
    "kit.json_file": "JsonFile",
    "kit.markup": "plain_text",
    "kit.notices": "NtfyServer Push PushPriority publish",
    "kit.ntfy": "Notifier",
    "kit.rate_limit": "RateLimit",
    "kit.search.lines": "FoundLine",
    "kit.search.results": "SearchQuery SearchResult",
    "kit.search.searching": "search_files",
    "kit.service_health": "ServiceHealth ServiceState",
    "kit.stored_file": "StoredFile",
    "kit.text": "head_and_tail numbered output_text",
    "kit.undo": "call_of",
    "kit.yaml_file": "YamlFile",
    "tickets.commands": "TicketOutcome TicketPlace run_tickets ticket_commands",
    "tickets.folder": "TicketFolder find_ticket_folder",
    "tickets.ticket": "Ticket TicketError",
    "usage.shared": "SharedBudget",
    "util.git_calls": "GIT_ALONE GIT_ASKS_NOBODY GIT_PROGRAMS GIT_TRANSFERS git_command git_without_programs",
    "util.patterns.topics": "is_topic",
    "util.state_files": "is_locked take_lock update_file",
    "util.text": "counted did_you_mean near_names one_line",
    "util.threads": "in_thread",
}
_HOME_OF = {name: home for home, names in _NAMES_IN.items() for name in names.split()}

__all__ = [
    "API",
    "GIT_ALONE",
    "GIT_ASKS_NOBODY",
    "GIT_PROGRAMS",
    "GIT_TRANSFERS",
    "HABITUALLY_IGNORED",
    "KEY_SAMPLE",
    "NAME_REFUSED",
    "UI",
    "Access",
    "AgentEnd",
    "AgentEnding",
    "AgentModel",
    "AgentProgress",
    "AgentResult",
    "AgentStart",
    "AgentTask",
    "Agents",
    "ApartJobs",
    "ApartOrder",
    "ApartTask",
    "AppStart",
    "AppendedText",
    "Ask",
    "AskedCall",
    "AsksSecrets",
    "AsksText",
    "Attached",
    "Attention",
    "AuthFailed",
    "AutonomyControl",
    "BadRequest",
    "Block",
    "Branch",
    "BudgetExceeded",
    "CacheLifetime",
    "Call",
    "CallDelta",
    "CallOrigin",
    "Cell",
    "ChatPreferences",
    "ChatSettings",
    "Choice",
    "CliContext",
    "ClientFactory",
    "Clock",
    "Command",
    "CommandFunction",
    "Config",
    "ConfigError",
    "ContextOverflow",
    "ContextUse",
    "Conversation",
    "CopiesText",
    "CostCeiling",
    "Delta",
    "Deny",
    "EditFailed",
    "EditKind",
    "EditedFile",
    "EditedPlace",
    "Endpoint",
    "EndpointSettings",
    "Event",
    "Fetched",
    "Field",
    "FileChanged",
    "FileInfo",
    "FileKind",
    "FilePatch",
    "FileWrite",
    "FolderTree",
    "FoundFile",
    "FoundFiles",
    "FoundLine",
    "Gate",
    "Hook",
    "HookContext",
    "Hunk",
    "Image",
    "Isolation",
    "Job",
    "JsonFile",
    "KeyControl",
    "KeyPlace",
    "KnownFiles",
    "Labels",
    "Lead",
    "Limits",
    "LinePart",
    "Link",
    "MarvinError",
    "McpServer",
    "McpSettings",
    "Message",
    "MessageEnd",
    "MessageOrigin",
    "MessageStart",
    "MessageUpdate",
    "Mode",
    "ModelControl",
    "ModelCycle",
    "ModelEntry",
    "ModelListener",
    "ModelNotFound",
    "ModelUsage",
    "NetworkKind",
    "NetworkPolicy",
    "NeverUndone",
    "NotActed",
    "Notice",
    "Notifier",
    "NtfyServer",
    "OnAsk",
    "OpensEditors",
    "OutputFormat",
    "OutputLimit",
    "Overloaded",
    "PackContext",
    "PackFolders",
    "PackSettings",
    "PatchError",
    "PatchKind",
    "PathRefused",
    "Paths",
    "PermissionAnswer",
    "PermissionControl",
    "PermissionMode",
    "PermissionUI",
    "Permissions",
    "PersonControl",
    "Picking",
    "PicksChoices",
    "Picture",
    "PipelinePhase",
    "Price",
    "ProcessResult",
    "Processes",
    "ProfileControl",
    "ProjectFiles",
    "ProjectTrust",
    "PromptEntry",
    "Provider",
    "ProviderData",
    "ProviderError",
    "ProviderSpec",
    "Push",
    "PushPriority",
    "Question",
    "QuotaExhausted",
    "RateLimit",
    "RateLimited",
    "ReadLines",
    "Record",
    "Refused",
    "Reply",
    "Request",
    "RequestFailed",
    "RequestOptions",
    "Reservation",
    "Retrying",
    "Role",
    "RunControl",
    "RunningCall",
    "SaidEntry",
    "SandboxUse",
    "SearchQuery",
    "SearchResult",
    "Secret",
    "ServiceHealth",
    "ServiceState",
    "Serving",
    "SessionClear",
    "SessionControl",
    "SessionEntry",
    "SessionResume",
    "SessionSnapshot",
    "SessionStanding",
    "SessionStart",
    "SessionView",
    "SessionsControl",
    "Settings",
    "SharedBudget",
    "ShellHook",
    "Shown",
    "Sign",
    "Sink",
    "Source",
    "Standing",
    "StatusPart",
    "Stop",
    "StopReason",
    "StoredFile",
    "StreamBroken",
    "Switched",
    "Table",
    "Telemetry",
    "Text",
    "TextDelta",
    "TextSection",
    "TextSource",
    "Thinking",
    "ThinkingDelta",
    "ThinkingLevel",
    "Ticket",
    "TicketError",
    "TicketFolder",
    "TicketOutcome",
    "TicketPlace",
    "Timeouts",
    "Tool",
    "ToolCall",
    "ToolChoice",
    "ToolContext",
    "ToolControl",
    "ToolDecorator",
    "ToolError",
    "ToolExecutionEnd",
    "ToolExecutionStart",
    "ToolExecutionUpdate",
    "ToolGroup",
    "ToolOutput",
    "ToolResult",
    "ToolSearchUse",
    "ToolSet",
    "ToolSpec",
    "ToolTimeout",
    "TurnEnd",
    "TurnResult",
    "TurnStart",
    "UISpec",
    "UndoControl",
    "UndoEntry",
    "Unreachable",
    "Unsubscribe",
    "Usage",
    "UsageDelta",
    "UsageError",
    "UsageReport",
    "UsageSummary",
    "Verdict",
    "WrittenFile",
    "YamlFile",
    "__version__",
    "append_to_file",
    "binary_kind",
    "call_of",
    "count_lines",
    "counted",
    "delete",
    "did_you_mean",
    "edit_files",
    "fetch",
    "fetch_json",
    "find_files",
    "find_ticket_folder",
    "folder_tree",
    "git_command",
    "git_without_programs",
    "head_and_tail",
    "hookimpl",
    "image_flaw",
    "image_type",
    "in_thread",
    "is_key_file",
    "is_locked",
    "is_patch",
    "is_there",
    "is_topic",
    "near_names",
    "numbered",
    "one_line",
    "open_url",
    "open_without_links",
    "opened_folder",
    "output_text",
    "own_folder",
    "place_of",
    "plain_text",
    "post",
    "post_json",
    "publish",
    "read_patch",
    "real_place",
    "refused_names",
    "remove_worktree",
    "remove_worktree_locks",
    "run_tickets",
    "search_files",
    "take_lock",
    "ticket_commands",
    "tool",
    "unified_diff",
    "update_file",
    "usually_ignored",
    "web_address",
    "why_content_left_out",
    "why_left_out",
    "write_text_file",
]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        from importlib import import_module

        value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    elif name == "Field":
        import pydantic

        value = pydantic.Field
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
