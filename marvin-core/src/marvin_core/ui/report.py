"""What a non-interactive run writes for programs: its cost, and its result as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..util.terminal_text import json_for_terminals


def cost_line(summary: Mapping[str, Any]) -> str:
    """The last line on standard error of every non-interactive run, for programs that start Marvin."""
    return f"MARVIN_COST:{json.dumps(summary, separators=(',', ':'))}"


def result_line(session_id: str, text: str, usage: Mapping[str, int], summary: Mapping[str, Any], code: int) -> str:
    """What `--output-format json` prints: one object, on a line of its own."""
    report = {
        "type": "result",
        "session_id": session_id,
        "text": text,
        "usage": usage,
        "cost": summary["session_cost"],
        "turns": summary["llm_turns"],
        "is_error": code != 0,
        "exit_code": code,
    }
    return json_for_terminals(json.dumps(report, ensure_ascii=False)) + "\n"
