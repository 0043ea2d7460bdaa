"""The events of a running agent, one per line, read as they arrive and with bounded memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...api.agents import AgentProgress
from ...api.messages import ModelUsage
from ...util.failures import is_failure
from ...util.numbers import amount
from ...util.text import one_line
from ...util.untrusted_json import parse_json

_LONGEST = 8_000_000
"""The maximum size of an event in bytes; a longer one is skipped."""
_READ = (
    *(b"session_start", b"session_resume", b"turn_start", b"tool_execution_start", b"message_end", b"usage"),
    b"agent_end",
)
_BEGINNINGS = tuple(b'{"type":"%b"' % name for name in _READ)
_SHOWN = 120
_COST = "MARVIN_COST:"
_REASON = 2_000
"""The number of characters at the end of standard error that explain why an agent failed."""


class AgentStream:
    """Reads the events of one agent. `tell` gets a line for each tool call of the agent."""

    def __init__(self, tell: AgentProgress | None) -> None:
        self._tell = tell
        self._line = bytearray()
        self._passing_over = False
        self._round = 0
        self._said = ""
        self.session_id = ""
        self.error = ""
        self.used: dict[str, ModelUsage] = {}
        """The usage of its own requests, by model."""

    @property
    def text(self) -> str:
        """Its last message."""
        return self._said

    def feed(self, chunk: bytes) -> bool:
        """Take the next bytes of standard output. It never asks to stop: an agent ends by itself."""
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            self._add(line)
            if not self._passing_over:
                self._take(bytes(self._line))
            self._line.clear()
            self._passing_over = False
        self._add(rest)
        return False

    def _add(self, part: bytes) -> None:
        if self._passing_over:
            return
        self._line += part
        # Most events are not used, and unused ones are not kept.
        if len(self._line) > _LONGEST or not any(
            self._line.startswith(start[: len(self._line)]) for start in _BEGINNINGS
        ):
            self._passing_over = True
            self._line.clear()

    def _take(self, line: bytes) -> None:
        if not line.startswith(_BEGINNINGS):
            return
        try:
            event = parse_json(line)
            self._note(event["type"], event)
        except (ValueError, KeyError, TypeError, AttributeError):  # not one of our events: an agent of another version
            return

    def _note(self, kind: str, event: Mapping[str, Any]) -> None:
        if kind in ("session_start", "session_resume"):
            self.session_id = str(event["session_id"])
        elif kind == "turn_start":
            self._round = int(event["round"])
        elif kind == "message_end":
            self._heard(event["message"], event.get("origin"))
        elif kind == "tool_execution_start":
            self._show(str(event["name"]), event["arguments"])
        elif kind == "usage":
            self._count(str(event["model"]), amount(event["cost"]))
        else:
            self._said = str(event["text"]) or self._said
            self.error = str(event.get("error") or "")

    def _heard(self, message: Mapping[str, Any], origin: object) -> None:
        """Keep the text of its last answer; an answer with tool calls is not a result."""
        if origin != "model":
            return
        blocks = [block for block in message.get("content", ()) if isinstance(block, dict)]
        if not any(block.get("type") == "tool_call" for block in blocks):
            self._said = "".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")

    def _count(self, model: str, cost: float | None) -> None:
        before = self.used.get(model, ModelUsage(requests=0, cost=0.0))
        known = None if cost is None or before.cost is None else before.cost + cost
        self.used[model] = ModelUsage(requests=before.requests + 1, cost=known)

    def _show(self, name: str, arguments: Mapping[str, Any]) -> None:
        if self._tell is None:
            return
        given = ", ".join(f"{key}={value}" for key, value in arguments.items())
        try:
            self._tell(one_line(f"round {self._round}: {name} {given}", _SHOWN))
        except Exception as error:  # an error of an interface; the agent continues
            if not is_failure(error):
                raise
            self._tell = None


def used_by(stderr: bytes) -> dict[str, ModelUsage] | None:
    """The usage of an agent and those below it, by model, from its last line; None without that line."""
    last = stderr.decode("utf-8", "replace").rstrip("\n").rpartition("\n")[2]
    if not last.startswith(_COST):
        return None
    try:
        told = parse_json(last.removeprefix(_COST))
        turns, costs = told["model_turns"], told["model_cost"]
        return {
            str(model): ModelUsage(requests=int(count), cost=amount(costs.get(model))) for model, count in turns.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def said_on_stderr(stderr: bytes) -> str:
    """The end of an agent's output for people, without the line of its cost."""
    lines = stderr.decode("utf-8", "replace").splitlines()
    text = "\n".join(line.removeprefix("marvin: ") for line in lines if not line.startswith(_COST)).strip()
    return text if len(text) <= _REASON else "…" + text[-_REASON:]
