"""The gates: checks of a call before all others, with state that is not part of the conversation.

Compacting, rewinding or clearing a conversation does not open a gate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...api.config import Config
from ...api.errors import ToolError
from ...api.tools import ToolSpec
from .agents import closed_to, needs_ticket
from .ticket_lines import creates, only_reads, parents_of, words_of

_STATE, _TICKET = "marvin-core", "ticket_below"
"""Where a session stores that the agent has its ticket, and its required parent."""


class CallGates:
    """The gates of one session. `state` is stored with the session; a created ticket stays created."""

    def __init__(self, config: Config, state: dict[str, dict[str, Any]]) -> None:
        self._config = config
        self._state = state
        self._asked_for_more = False

    def check(self, spec: ToolSpec, arguments: Mapping[str, Any], offered: Sequence[ToolSpec]) -> None:
        """Refuse a call that the agent may not make.

        Raises:
            ToolError: the text says which gate is closed, and how it opens if it does.
        """
        closed = closed_to(spec, self._config)
        if closed:
            raise ToolError(f"{spec.name} was not run: {closed}. Do it another way, or describe what you would do.")
        if self._config.read_only and spec.changes and spec.ticket_line:
            self._check_reading(spec, arguments)
        if spec.changes and self._is_without_ticket:
            self._check_ticket(spec, arguments, offered)

    def passed(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> None:
        """Record that a checked call succeeded; the creation of the agent's ticket opens the gate."""
        if self._is_without_ticket and spec.ticket_line and creates(words_of(arguments.get(spec.ticket_line))):
            self._state.setdefault(_STATE, {})[_TICKET] = self._config.ticket

    @property
    def _is_without_ticket(self) -> bool:
        if not needs_ticket(self._config):
            return False
        return bool(self._state.get(_STATE, {}).get(_TICKET) != self._config.ticket)

    def _check_reading(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> None:
        if not only_reads(words_of(arguments.get(spec.ticket_line))):
            raise ToolError(
                f"{spec.name} was not run: this agent is read-only (MARVIN_READONLY), so it can only read tickets. "
                "Use show, ls, ready, blocked, closed, dep tree or query."
            )

    def _check_ticket(self, spec: ToolSpec, arguments: Mapping[str, Any], offered: Sequence[ToolSpec]) -> None:
        if "ticket" not in spec.passes:
            raise ToolError(self._without_ticket(spec, offered))
        if not spec.ticket_line:
            return
        words = words_of(arguments.get(spec.ticket_line))
        if not words:
            raise ToolError(f"{spec.name} was not run: {spec.ticket_line} cannot be parsed. Check its quotes.")
        if not creates(words):
            return
        if not self._asked_for_more:
            self._asked_for_more = True
            raise ToolError(
                f"{spec.name} created nothing yet: the first attempt is refused on purpose, so that the ticket is "
                "written with care. Describe what should be done and why (-d), state acceptance criteria "
                f"(--acceptance), make it a child (--parent {self._config.ticket}), and call again."
            )
        if parents_of(words) != {self._config.ticket}:
            raise ToolError(
                f"{spec.name} created nothing: the ticket of this agent must be a child of {self._config.ticket}. "
                f"Call again with --parent {self._config.ticket}, and no other parent."
            )

    def _without_ticket(self, spec: ToolSpec, offered: Sequence[ToolSpec]) -> str:
        told = f"{spec.name} was not run: this agent must create its ticket before it writes or runs anything"
        tool = next((one for one in offered if one.ticket_line), None)
        if tool is None:
            return f"{told}, and no tool that creates tickets is offered here. Say so in your answer, and end."
        line = f"create 'TITLE' --parent {self._config.ticket} -d 'WHAT AND WHY' --acceptance 'CRITERIA'"
        return f'{told}. Call {tool.name} with {{"{tool.ticket_line}": "{line}"}} first.'
