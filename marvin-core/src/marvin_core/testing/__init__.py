"""What packs test with: tools called as a session calls them, a server for every host, a real model server.

The names below are loaded when they are first used, as the pytest plugin lies in this package and
is imported in every environment that holds marvin-core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .answers import (
        Answer,
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
    from .model_server import ModelServer, RecordedRequest
    from .pack_runner import CliOutcome, PackRunner, PromptOutcome, ProviderAnswer
    from .replay import HttpReplay, ReplayedRequest
    from .scripted import ScriptedModels, ScriptedProvider
    from .tool_runner import Options, Outcome, ToolRunner

_HOME_OF = {
    "Answer": "answers",
    "CliOutcome": "pack_runner",
    "Guard": "leaks",
    "HttpReplay": "replay",
    "ModelServer": "model_server",
    "Options": "tool_runner",
    "Outcome": "tool_runner",
    "PackRunner": "pack_runner",
    "PromptOutcome": "pack_runner",
    "ProviderAnswer": "pack_runner",
    "RecordedRequest": "model_server",
    "ReplayedRequest": "replay",
    "ScriptedModels": "scripted",
    "ScriptedProvider": "scripted",
    "ToolRunner": "tool_runner",
    "burst": "answers",
    "calls": "answers",
    "closing": "answers",
    "cut_after": "answers",
    "document": "answers",
    "drop": "answers",
    "error": "answers",
    "events": "answers",
    "hang": "answers",
    "hang_after": "answers",
    "html": "answers",
    "paced": "answers",
    "pause": "answers",
    "raw": "answers",
    "split": "answers",
    "text": "answers",
}

__all__ = [
    "Answer",
    "CliOutcome",
    "Guard",
    "HttpReplay",
    "ModelServer",
    "Options",
    "Outcome",
    "PackRunner",
    "PromptOutcome",
    "ProviderAnswer",
    "RecordedRequest",
    "ReplayedRequest",
    "ScriptedModels",
    "ScriptedProvider",
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
