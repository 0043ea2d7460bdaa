"""Extras of a Marvin that runs as an agent: its complete environment, and a pipe whose closing ends it."""

from __future__ import annotations

from collections.abc import Mapping

from ...api.record import Record

LIFELINE = "MARVIN_LIFELINE"
"""The variable that names the pipe on standard input, at whose end the agent ends, however its parent did."""


class AgentLife(Record):
    """How an agent runs: its whole environment, and the seconds that it has to end itself when it is to."""

    environment: Mapping[str, str]
    grace: float
    lifeline: str = LIFELINE
