"""Settings of a Marvin that runs as an agent: its complete environment, and a pipe whose closing ends it."""

from __future__ import annotations

from collections.abc import Mapping

from ...api.record import Record

LIFELINE = "MARVIN_LIFELINE"
"""Identifies the pipe on standard input. The agent ends when the pipe closes, even if its parent crashed."""


class AgentLife(Record):
    """How an agent runs: its complete environment, and the seconds that it has to shut down."""

    environment: Mapping[str, str]
    grace: float
    lifeline: str = LIFELINE
