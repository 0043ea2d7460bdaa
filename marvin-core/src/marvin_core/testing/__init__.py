"""The test kit for packs: calls of tools as in a session, a server in place of every host, a model server.

The names below are loaded on first use, because the pytest plugin is in this package, and pytest imports it in every
environment with marvin-core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .answers import (
        Answer,
        Step,
        burst,
        calls,
        closing,
        cut_after,
        document,
        drop,
        error,
        events,
        hang,
        hang_after,
        html,
        paced,
        pause,
        raw,
        split,
        text,
    )
    from .leaks import Guard
    from .model_server import LoopbackServer, ModelServer, RecordedRequest
    from .pack_runner import CliOutcome, PackRunner, PromptOutcome, ProviderAnswer, Script
    from .replay import HttpReplay, ReplayedRequest
    from .scripted import (
        ScriptedModels,
        ScriptedProvider,
        ScriptStep,
    )
    from .tool_runner import Options, Outcome, ToolRunner

_HOME_OF = {
    "Answer": "answers",
    "burst": "answers",
    "calls": "answers",
    "CliOutcome": "pack_runner",
    "closing": "answers",
    "cut_after": "answers",
    "document": "answers",
    "drop": "answers",
    "error": "answers",
    "events": "answers",
    "Guard": "leaks",
    "hang": "answers",
    "hang_after": "answers",
    "html": "answers",
    "HttpReplay": "replay",
    "LoopbackServer": "model_server",
    "ModelServer": "model_server",
    "Options": "tool_runner",
    "Outcome": "tool_runner",
    "paced": "answers",
    "PackRunner": "pack_runner",
    "pause": "answers",
    "PromptOutcome": "pack_runner",
    "ProviderAnswer": "pack_runner",
    "raw": "answers",
    "RecordedRequest": "model_server",
    "ReplayedRequest": "replay",
    "ScriptedModels": "scripted",
    "ScriptedProvider": "scripted",
    "Script": "pack_runner",
    "ScriptStep": "scripted",
    "split": "answers",
    "Step": "answers",
    "text": "answers",
    "ToolRunner": "tool_runner",
}

__all__ = [
    "Answer",
    "CliOutcome",
    "Guard",
    "HttpReplay",
    "LoopbackServer",
    "ModelServer",
    "Options",
    "Outcome",
    "PackRunner",
    "PromptOutcome",
    "ProviderAnswer",
    "RecordedRequest",
    "ReplayedRequest",
    "Script",
    "ScriptStep",
    "ScriptedModels",
    "ScriptedProvider",
    "Step",
    "ToolRunner",
    "burst",
    "calls",
    "closing",
    "cut_after",
    "document",
    "drop",
    "error",
    "events",
    "hang",
    "hang_after",
    "html",
    "paced",
    "pause",
    "raw",
    "split",
    "text",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
