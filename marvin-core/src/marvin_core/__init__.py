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

    from .api.cli import CliContext
    from .api.config import Config, EndpointSettings, OnAsk, OutputFormat, PackSettings, Permissions, Price, Source
    from .api.errors import (
        AuthFailed,
        BadRequest,
        BudgetExceeded,
        ConfigError,
        ContextOverflow,
        MarvinError,
        ModelNotFound,
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
    from .api.limits import Limits
    from .api.messages import (
        Block,
        Call,
        Cell,
        Image,
        Link,
        Message,
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
    )
    from .api.models import ModelEntry, ModelListener, Serving
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
        AutonomyControl,
        Branch,
        ChatSettings,
        Command,
        CommandFunction,
        ModelControl,
        ProfileControl,
        RunningCall,
        SessionControl,
        SessionEntry,
        SessionsControl,
        SessionSnapshot,
        ToolControl,
        TurnResult,
    )
    from .api.settings import Settings
    from .api.timeouts import Timeouts
    from .api.tool_context import (
        Clock,
        FileInfo,
        FileKind,
        Job,
        ModelUsage,
        PackContext,
        PackFolders,
        Paths,
        Processes,
        ProcessResult,
        SessionView,
        ToolContext,
        UsageSummary,
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
    from .api.ui import UI, UISpec
    from .api.usage import CostCeiling, Reservation
    from .kit.addresses import web_address
    from .kit.fetching import Fetched, RequestOptions, fetch, fetch_json, open_url, post, post_json
    from .kit.files.diffs import unified_diff
    from .kit.files.editing import (
        AppendedText,
        FileChange,
        WrittenFile,
        append_to_file,
        replace_in_file,
        write_text_file,
    )
    from .kit.files.encodings import count_lines, image_type
    from .kit.files.finding import FoundFile, find_files
    from .kit.files.listing import real_place
    from .kit.files.matching import NoMatch
    from .kit.files.reading import TextSource
    from .kit.files.searching import FoundLine, SearchQuery, SearchResult, search_files
    from .kit.files.sections import TextSection
    from .kit.files.tree import FolderTree, folder_tree
    from .kit.json_file import JsonFile
    from .kit.markup import plain_text
    from .kit.notices import NtfyServer, Push, PushPriority, publish
    from .kit.rate_limit import RateLimit
    from .kit.stored_file import StoredFile
    from .kit.text import head_and_tail, numbered, output_text
    from .kit.undo import call_of
    from .kit.yaml_file import YamlFile
    from .util.state_files import update_file
    from .util.text import did_you_mean, near_names, one_line
    from .util.threads import in_thread

_NAMES_IN = {
    "api.cli": "CliContext",
    "api.config": "Config EndpointSettings OnAsk OutputFormat PackSettings Permissions Price Source",
    "api.errors": (
        "AuthFailed BadRequest BudgetExceeded ConfigError ContextOverflow MarvinError ModelNotFound NotActed "
        "OutputLimit Overloaded PathRefused ProviderError QuotaExhausted RateLimited Refused RequestFailed "
        "StreamBroken ToolError Unreachable"
    ),
    "api.events": (
        "AgentEnd AgentStart AppStart CallOrigin Event MessageEnd MessageOrigin MessageStart MessageUpdate "
        "ModelCycle Notice SessionClear SessionResume SessionStart ToolExecutionEnd ToolExecutionStart "
        "ToolExecutionUpdate TurnEnd TurnStart Unsubscribe UsageReport"
    ),
    "api.hooks": "Ask Deny Hook HookContext Verdict",
    "api.hookspecs": "hookimpl",
    "api.limits": "Limits",
    "api.messages": (
        "Block Call Cell Image Link Message Picture ProviderData Role Shown StopReason Table Text Thinking "
        "ToolCall ToolOutput Usage"
    ),
    "api.models": "ModelEntry ModelListener Serving",
    "api.providers": (
        "CacheLifetime CallDelta ClientFactory Delta Endpoint Provider ProviderSpec Request Retrying Secret "
        "Stop Switched TextDelta ThinkingDelta ThinkingLevel ToolChoice UsageDelta"
    ),
    "api.record": "Record",
    "api.session": (
        "AutonomyControl Branch ChatSettings Command CommandFunction ModelControl ProfileControl RunningCall "
        "SessionControl SessionEntry SessionSnapshot SessionsControl ToolControl TurnResult"
    ),
    "api.settings": "Settings",
    "api.timeouts": "Timeouts",
    "api.tool_context": (
        "Clock FileInfo FileKind Job ModelUsage PackContext PackFolders Paths ProcessResult Processes "
        "SessionView ToolContext UsageSummary"
    ),
    "api.tools": "Access Gate Mode Sign Tool ToolDecorator ToolGroup ToolResult ToolSet ToolSpec ToolTimeout tool",
    "api.ui": "UI UISpec",
    "api.usage": "CostCeiling Reservation",
    "kit.addresses": "web_address",
    "kit.fetching": "Fetched RequestOptions fetch fetch_json open_url post post_json",
    "kit.files.diffs": "unified_diff",
    "kit.files.editing": "AppendedText FileChange WrittenFile append_to_file replace_in_file write_text_file",
    "kit.files.encodings": "count_lines image_type",
    "kit.files.finding": "FoundFile find_files",
    "kit.files.listing": "real_place",
    "kit.files.matching": "NoMatch",
    "kit.files.reading": "TextSource",
    "kit.files.searching": "FoundLine SearchQuery SearchResult search_files",
    "kit.files.sections": "TextSection",
    "kit.files.tree": "FolderTree folder_tree",
    "kit.json_file": "JsonFile",
    "kit.markup": "plain_text",
    "kit.notices": "NtfyServer Push PushPriority publish",
    "kit.rate_limit": "RateLimit",
    "kit.stored_file": "StoredFile",
    "kit.text": "head_and_tail numbered output_text",
    "kit.undo": "call_of",
    "kit.yaml_file": "YamlFile",
    "util.state_files": "update_file",
    "util.text": "did_you_mean near_names one_line",
    "util.threads": "in_thread",
}
_HOME_OF = {name: home for home, names in _NAMES_IN.items() for name in names.split()}

__all__ = [
    "API",
    "UI",
    "Access",
    "AgentEnd",
    "AgentStart",
    "AppStart",
    "AppendedText",
    "Ask",
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
    "ChatSettings",
    "CliContext",
    "ClientFactory",
    "Clock",
    "Command",
    "CommandFunction",
    "Config",
    "ConfigError",
    "ContextOverflow",
    "CostCeiling",
    "Delta",
    "Deny",
    "Endpoint",
    "EndpointSettings",
    "Event",
    "Fetched",
    "Field",
    "FileChange",
    "FileInfo",
    "FileKind",
    "FolderTree",
    "FoundFile",
    "FoundLine",
    "Gate",
    "Hook",
    "HookContext",
    "Image",
    "Job",
    "JsonFile",
    "Limits",
    "Link",
    "MarvinError",
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
    "NoMatch",
    "NotActed",
    "Notice",
    "NtfyServer",
    "OnAsk",
    "OutputFormat",
    "OutputLimit",
    "Overloaded",
    "PackContext",
    "PackFolders",
    "PackSettings",
    "PathRefused",
    "Paths",
    "Permissions",
    "Picture",
    "Price",
    "ProcessResult",
    "Processes",
    "ProfileControl",
    "Provider",
    "ProviderData",
    "ProviderError",
    "ProviderSpec",
    "Push",
    "PushPriority",
    "QuotaExhausted",
    "RateLimit",
    "RateLimited",
    "Record",
    "Refused",
    "Request",
    "RequestFailed",
    "RequestOptions",
    "Reservation",
    "Retrying",
    "Role",
    "RunningCall",
    "SearchQuery",
    "SearchResult",
    "Secret",
    "Serving",
    "SessionClear",
    "SessionControl",
    "SessionEntry",
    "SessionResume",
    "SessionSnapshot",
    "SessionStart",
    "SessionView",
    "SessionsControl",
    "Settings",
    "Shown",
    "Sign",
    "Source",
    "Stop",
    "StopReason",
    "StoredFile",
    "StreamBroken",
    "Switched",
    "Table",
    "Text",
    "TextDelta",
    "TextSection",
    "TextSource",
    "Thinking",
    "ThinkingDelta",
    "ThinkingLevel",
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
    "ToolSet",
    "ToolSpec",
    "ToolTimeout",
    "TurnEnd",
    "TurnResult",
    "TurnStart",
    "UISpec",
    "Unreachable",
    "Unsubscribe",
    "Usage",
    "UsageDelta",
    "UsageReport",
    "UsageSummary",
    "Verdict",
    "WrittenFile",
    "YamlFile",
    "__version__",
    "append_to_file",
    "call_of",
    "count_lines",
    "did_you_mean",
    "fetch",
    "fetch_json",
    "find_files",
    "folder_tree",
    "head_and_tail",
    "hookimpl",
    "image_type",
    "in_thread",
    "near_names",
    "numbered",
    "one_line",
    "open_url",
    "output_text",
    "plain_text",
    "post",
    "post_json",
    "publish",
    "real_place",
    "replace_in_file",
    "search_files",
    "tool",
    "unified_diff",
    "update_file",
    "web_address",
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
