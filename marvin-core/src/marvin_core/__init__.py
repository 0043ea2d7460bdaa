"""Marvin's public interface: what a pack may import.

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

__version__ = "0.1.0"

# Type checkers take it for the constant of `typing`, which would cost `marvin --version` as much as Python itself.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pydantic import Field

    from .config import Config
    from .errors import (
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
    from .events import Event
    from .files import update_file
    from .hooks import Ask, Deny, Hook, HookContext, Verdict
    from .hookspecs import hookimpl
    from .messages import Image, Message, ProviderData, Text, Thinking, ToolCall, ToolOutput, Usage
    from .providers.base import (
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
    from .records import Record
    from .threads import in_thread
    from .tools import Call, ProcessResult, Tool, ToolContext, ToolGroup, ToolResult, ToolSpec, tool
    from .ui.base import UI, Command, SessionControl, TurnResult, UISpec

_HOME_OF = {
    "AuthFailed": "errors",
    "BadRequest": "errors",
    "BudgetExceeded": "errors",
    "ConfigError": "errors",
    "ContextOverflow": "errors",
    "MarvinError": "errors",
    "ModelNotFound": "errors",
    "NotActed": "errors",
    "OutputLimit": "errors",
    "Overloaded": "errors",
    "PathRefused": "errors",
    "ProviderError": "errors",
    "QuotaExhausted": "errors",
    "RateLimited": "errors",
    "Refused": "errors",
    "StreamBroken": "errors",
    "ToolError": "errors",
    "Unreachable": "errors",
    "Config": "config",
    "Event": "events",
    "update_file": "files",
    "Ask": "hooks",
    "Deny": "hooks",
    "Hook": "hooks",
    "HookContext": "hooks",
    "Verdict": "hooks",
    "hookimpl": "hookspecs",
    "Image": "messages",
    "Message": "messages",
    "ProviderData": "messages",
    "Text": "messages",
    "Thinking": "messages",
    "ToolCall": "messages",
    "ToolOutput": "messages",
    "Usage": "messages",
    "CallDelta": "providers.base",
    "ClientFactory": "providers.base",
    "Delta": "providers.base",
    "Endpoint": "providers.base",
    "Provider": "providers.base",
    "ProviderSpec": "providers.base",
    "Request": "providers.base",
    "Secret": "providers.base",
    "Stop": "providers.base",
    "TextDelta": "providers.base",
    "ThinkingDelta": "providers.base",
    "UsageDelta": "providers.base",
    "Record": "records",
    "in_thread": "threads",
    "Call": "tools",
    "ProcessResult": "tools",
    "Tool": "tools",
    "ToolContext": "tools",
    "ToolGroup": "tools",
    "ToolResult": "tools",
    "ToolSpec": "tools",
    "tool": "tools",
    "Command": "ui.base",
    "SessionControl": "ui.base",
    "TurnResult": "ui.base",
    "UI": "ui.base",
    "UISpec": "ui.base",
}

__all__ = [
    "UI",
    "Ask",
    "AuthFailed",
    "BadRequest",
    "BudgetExceeded",
    "Call",
    "CallDelta",
    "ClientFactory",
    "Command",
    "Config",
    "ConfigError",
    "ContextOverflow",
    "Delta",
    "Deny",
    "Endpoint",
    "Event",
    "Field",
    "Hook",
    "HookContext",
    "Image",
    "MarvinError",
    "Message",
    "ModelNotFound",
    "NotActed",
    "OutputLimit",
    "Overloaded",
    "PathRefused",
    "ProcessResult",
    "Provider",
    "ProviderData",
    "ProviderError",
    "ProviderSpec",
    "QuotaExhausted",
    "RateLimited",
    "Record",
    "Refused",
    "Request",
    "Secret",
    "SessionControl",
    "Stop",
    "StreamBroken",
    "Text",
    "TextDelta",
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
