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

    from .api.config import (
        Config,
        EndpointSettings,
        OnAsk,
        OutputFormat,
        Permissions,
        Price,
        Source,
    )
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
    from .api.models import (
        ModelEntry,
        ModelListener,
        Serving,
    )
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
        SessionControl,
        SessionEntry,
        SessionsControl,
        ToolControl,
        TurnResult,
    )
    from .api.timeouts import Timeouts
    from .api.tool_context import (
        Clock,
        FileInfo,
        FileKind,
        Job,
        ModelUsage,
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
    from .api.usage import (
        CostCeiling,
        Reservation,
    )
    from .util.state_files import update_file
    from .util.threads import in_thread

_NAMES_IN = {
    "api.config": "Config EndpointSettings OnAsk OutputFormat Permissions Price Source",
    "api.errors": (
        "AuthFailed BadRequest BudgetExceeded ConfigError ContextOverflow MarvinError ModelNotFound "
        "NotActed OutputLimit Overloaded PathRefused ProviderError QuotaExhausted RateLimited "
        "Refused StreamBroken ToolError Unreachable"
    ),
    "api.events": (
        "AgentEnd AgentStart AppStart CallOrigin Event MessageEnd MessageStart MessageUpdate "
        "ModelCycle Notice SessionClear SessionResume SessionStart ToolExecutionEnd "
        "ToolExecutionStart ToolExecutionUpdate TurnEnd TurnStart Unsubscribe UsageReport"
    ),
    "api.hooks": "Ask Deny Hook HookContext Verdict",
    "api.hookspecs": "hookimpl",
    "api.limits": "Limits",
    "api.messages": (
        "Block Call Cell Image Link Message Picture ProviderData Role Shown StopReason Table Text "
        "Thinking ToolCall ToolOutput Usage"
    ),
    "api.models": "ModelEntry ModelListener Serving",
    "api.providers": (
        "CacheLifetime CallDelta ClientFactory Delta Endpoint Provider ProviderSpec Request "
        "Retrying Secret Stop Switched TextDelta ThinkingDelta ThinkingLevel ToolChoice UsageDelta"
    ),
    "api.record": "Record",
    "api.session": (
        "AutonomyControl Branch ChatSettings Command CommandFunction ModelControl ProfileControl "
        "SessionControl SessionEntry SessionsControl ToolControl TurnResult"
    ),
    "api.timeouts": "Timeouts",
    "api.tool_context": (
        "Clock FileInfo FileKind Job ModelUsage Paths ProcessResult Processes SessionView ToolContext UsageSummary"
    ),
    "api.tools": ("Access Gate Mode Sign Tool ToolDecorator ToolGroup ToolResult ToolSet ToolSpec ToolTimeout tool"),
    "api.ui": "UI UISpec",
    "api.usage": "CostCeiling Reservation",
    "util.state_files": "update_file",
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
    "Field",
    "FileInfo",
    "FileKind",
    "Gate",
    "Hook",
    "HookContext",
    "Image",
    "Job",
    "Limits",
    "Link",
    "MarvinError",
    "Message",
    "MessageEnd",
    "MessageStart",
    "MessageUpdate",
    "Mode",
    "ModelControl",
    "ModelCycle",
    "ModelEntry",
    "ModelListener",
    "ModelNotFound",
    "ModelUsage",
    "NotActed",
    "Notice",
    "OnAsk",
    "OutputFormat",
    "OutputLimit",
    "Overloaded",
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
    "QuotaExhausted",
    "RateLimited",
    "Record",
    "Refused",
    "Request",
    "Reservation",
    "Retrying",
    "Role",
    "Secret",
    "Serving",
    "SessionClear",
    "SessionControl",
    "SessionEntry",
    "SessionResume",
    "SessionStart",
    "SessionView",
    "SessionsControl",
    "Shown",
    "Sign",
    "Source",
    "Stop",
    "StopReason",
    "StreamBroken",
    "Switched",
    "Table",
    "Text",
    "TextDelta",
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
    "__version__",
    "hookimpl",
    "in_thread",
    "tool",
    "update_file",
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
