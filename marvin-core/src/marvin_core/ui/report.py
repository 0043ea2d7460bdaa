"""The machine-readable output of a non-interactive run: its cost, and its result as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..api.messages import ModelUsage
from ..usage.sums import total
from ..util.terminal_text import json_for_terminals


def cost_line(summary: Mapping[str, Any]) -> str:
    """The last line on standard error of every non-interactive run, for programs that start Marvin."""
    return f"MARVIN_COST:{json.dumps(summary, separators=(',', ':'))}"


def result_line(
    session_id: str,
    text: str,
    usage: Mapping[str, int],
    summary: Mapping[str, Any],
    code: int,
    output: str | None = None,
) -> str:
    """The output of `--output-format json`: one object, on a line of its own.

    Args:
        summary: the fields of MARVIN_COST, and `providers` as `costs_of` returns them.
        output: the JSON value of an answer that conforms to the required schema.
    """
    report = {
        "type": "result",
        "session_id": session_id,
        "text": text,
        "usage": usage,
        "cost": summary["session_cost"],
        "providers": summary.get("providers", {}),
        "turns": summary["llm_turns"],
        "is_error": code != 0,
        "exit_code": code,
    }
    if output is not None:
        report["output"] = json.loads(output)
    return json_for_terminals(json.dumps(report, ensure_ascii=False)) + "\n"


def costs_of(providers: Mapping[str, Mapping[str, ModelUsage]]) -> dict[str, Any]:
    """The usage of each provider and of each of its models, as JSON data."""
    return {
        provider: {
            **total(models.values()).as_dict(),
            "models": {name: used.as_dict() for name, used in models.items()},
        }
        for provider, models in providers.items()
    }
