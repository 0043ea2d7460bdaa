"""Marvin's public interface: what a pack may import.

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from .version import __version__

# Type checkers take it for the constant of `typing`, which would cost `marvin --version` as much as Python itself.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pydantic import Field

    from .api.cli import CliContext
    from .api.config import Config, PackSettings
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
    from .api.events import Event
    from .api.hooks import Ask, Deny, Hook, HookContext, Verdict
    from .api.hookspecs import hookimpl
    from .api.messages import Image, Message, ProviderData, Text, Thinking, ToolCall, ToolOutput, Usage
    from .api.providers import (
        CallDelta,
        ClientFactory,
        Delta,
        Endpoint,
        Provider,
        ProviderSpec,
        Request,
        Secret,
        Stop,
        TextDelta,
        ThinkingDelta,
        UsageDelta,
    )
    from .api.record import Record
    from .api.session import Command, SessionControl, TurnResult
    from .api.settings import Settings
    from .api.tool_context import PackContext, PackFolders, ProcessResult, ToolContext
    from .api.tools import Call, Tool, ToolGroup, ToolResult, ToolSpec, tool
    from .api.ui import UI, UISpec
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

_HOME_OF = {
    "AuthFailed": "api.errors",
    "BadRequest": "api.errors",
    "BudgetExceeded": "api.errors",
    "ConfigError": "api.errors",
    "ContextOverflow": "api.errors",
    "MarvinError": "api.errors",
    "ModelNotFound": "api.errors",
    "NotActed": "api.errors",
    "OutputLimit": "api.errors",
    "Overloaded": "api.errors",
    "PathRefused": "api.errors",
    "ProviderError": "api.errors",
    "QuotaExhausted": "api.errors",
    "RateLimited": "api.errors",
    "Refused": "api.errors",
    "StreamBroken": "api.errors",
    "ToolError": "api.errors",
    "Unreachable": "api.errors",
    "CliContext": "api.cli",
    "Config": "api.config",
    "PackSettings": "api.config",
    "Settings": "api.settings",
    "PackContext": "api.tool_context",
    "PackFolders": "api.tool_context",
    "Event": "api.events",
    "update_file": "util.state_files",
    "Ask": "api.hooks",
    "Deny": "api.hooks",
    "Hook": "api.hooks",
    "HookContext": "api.hooks",
    "Verdict": "api.hooks",
    "hookimpl": "api.hookspecs",
    "Image": "api.messages",
    "Message": "api.messages",
    "ProviderData": "api.messages",
    "Text": "api.messages",
    "Thinking": "api.messages",
    "ToolCall": "api.messages",
    "ToolOutput": "api.messages",
    "Usage": "api.messages",
    "CallDelta": "api.providers",
    "ClientFactory": "api.providers",
    "Delta": "api.providers",
    "Endpoint": "api.providers",
    "Provider": "api.providers",
    "ProviderSpec": "api.providers",
    "Request": "api.providers",
    "Secret": "api.providers",
    "Stop": "api.providers",
    "TextDelta": "api.providers",
    "ThinkingDelta": "api.providers",
    "UsageDelta": "api.providers",
    "Record": "api.record",
    "in_thread": "util.threads",
    "Call": "api.tools",
    "ProcessResult": "api.tool_context",
    "Tool": "api.tools",
    "ToolContext": "api.tool_context",
    "ToolGroup": "api.tools",
    "ToolResult": "api.tools",
    "ToolSpec": "api.tools",
    "tool": "api.tools",
    "Command": "api.session",
    "SessionControl": "api.session",
    "TurnResult": "api.session",
    "UI": "api.ui",
    "UISpec": "api.ui",
    "AppendedText": "kit.files.editing",
    "FileChange": "kit.files.editing",
    "FolderTree": "kit.files.tree",
    "FoundFile": "kit.files.finding",
    "FoundLine": "kit.files.searching",
    "NoMatch": "kit.files.matching",
    "SearchQuery": "kit.files.searching",
    "SearchResult": "kit.files.searching",
    "TextSection": "kit.files.sections",
    "TextSource": "kit.files.reading",
    "WrittenFile": "kit.files.editing",
    "append_to_file": "kit.files.editing",
    "count_lines": "kit.files.encodings",
    "did_you_mean": "util.text",
    "find_files": "kit.files.finding",
    "folder_tree": "kit.files.tree",
    "image_type": "kit.files.encodings",
    "near_names": "util.text",
    "one_line": "util.text",
    "real_place": "kit.files.listing",
    "replace_in_file": "kit.files.editing",
    "search_files": "kit.files.searching",
    "unified_diff": "kit.files.diffs",
    "write_text_file": "kit.files.editing",
    "Fetched": "kit.fetching",
    "JsonFile": "kit.json_file",
    "NtfyServer": "kit.notices",
    "Push": "kit.notices",
    "RateLimit": "kit.rate_limit",
    "RequestFailed": "api.errors",
    "RequestOptions": "kit.fetching",
    "YamlFile": "kit.yaml_file",
    "call_of": "kit.undo",
    "fetch": "kit.fetching",
    "fetch_json": "kit.fetching",
    "head_and_tail": "kit.text",
    "numbered": "kit.text",
    "open_url": "kit.fetching",
    "output_text": "kit.text",
    "plain_text": "kit.markup",
    "post": "kit.fetching",
    "post_json": "kit.fetching",
    "publish": "kit.notices",
    "web_address": "kit.addresses",
    "StoredFile": "kit.stored_file",
    "PushPriority": "kit.notices",
}

__all__ = [
    "UI",
    "AppendedText",
    "Ask",
    "AuthFailed",
    "BadRequest",
    "BudgetExceeded",
    "Call",
    "CallDelta",
    "CliContext",
    "ClientFactory",
    "Command",
    "Config",
    "ConfigError",
    "ContextOverflow",
    "Delta",
    "Deny",
    "Endpoint",
    "Event",
    "Fetched",
    "Field",
    "FileChange",
    "FolderTree",
    "FoundFile",
    "FoundLine",
    "Hook",
    "HookContext",
    "Image",
    "JsonFile",
    "MarvinError",
    "Message",
    "ModelNotFound",
    "NoMatch",
    "NotActed",
    "NtfyServer",
    "OutputLimit",
    "Overloaded",
    "PackContext",
    "PackFolders",
    "PackSettings",
    "PathRefused",
    "ProcessResult",
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
    "SearchQuery",
    "SearchResult",
    "Secret",
    "SessionControl",
    "Settings",
    "Stop",
    "StoredFile",
    "StreamBroken",
    "Text",
    "TextDelta",
    "TextSection",
    "TextSource",
    "Thinking",
    "ThinkingDelta",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolError",
    "ToolGroup",
    "ToolOutput",
    "ToolResult",
    "ToolSpec",
    "TurnResult",
    "UISpec",
    "Unreachable",
    "Usage",
    "UsageDelta",
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
