"""The health of web services: when each last answered, and when and why it last failed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ..api.errors import ToolError
from ..api.record import Record
from ..api.timeouts import Timeouts
from ..util.numbers import amount
from ..util.text import one_line
from .json_file import JsonFile

FILE = "services.json"
_REASON = 300
_FRESH = 60.0
"""The minimum number of seconds between two writes of a success."""
_MOST = 200


class ServiceState(Record):
    """The health of a service; times are in seconds since the epoch, 0 for never. `why` explains the last failure."""

    name: str
    title: str
    worked: float = 0.0
    failed: float = 0.0
    why: str = ""

    @property
    def is_failing(self) -> bool:
        """Whether the most recent result is a failure."""
        return self.failed > self.worked


class ServiceHealth:
    """The health of a pack's services, shared by all Marvins of a user. `marvin doctor` shows it.

    It never raises: what cannot be stored is left out.

    Args:
        folder: the folder of the file: `PackContext.folders.state`.
        timeouts: `PackContext.timeouts`; otherwise the defaults.
    """

    def __init__(self, folder: Path, timeouts: Timeouts | None = None) -> None:
        self._file = JsonFile(folder / FILE, dict, timeouts=timeouts)

    async def worked(self, name: str, title: str = "") -> None:
        """Record that a service answered."""
        now = time.time()

        def note(states: dict[str, Any]) -> None:
            before = _state(name, states.get(name))
            if before.is_failing or not 0 <= now - before.worked < _FRESH:
                _put(states, before.replace(title=title or name, worked=now))

        await self._change(note)

    async def failed(self, name: str, title: str, why: str) -> None:
        """Record that a service failed, with the reason."""
        now = time.time()

        def note(states: dict[str, Any]) -> None:
            _put(states, _state(name, states.get(name)).replace(title=title or name, failed=now, why=why))

        await self._change(note)

    async def states(self) -> tuple[ServiceState, ...]:
        """The stored health by name."""
        try:
            kept = await self._file.read()
        except ToolError:
            return ()
        return tuple(_state(name, kept[name]) for name in sorted(kept))

    async def _change(self, note: Any) -> None:
        try:
            await self._file.change(note)
        except ToolError:
            pass  # the answer of the service matters more than this record


def _state(name: str, kept: Any) -> ServiceState:
    given = kept if isinstance(kept, dict) else {}
    return ServiceState(
        name=one_line(name, _REASON),
        title=one_line(str(given.get("title") or name), _REASON),
        worked=amount(given.get("worked")) or 0.0,
        failed=amount(given.get("failed")) or 0.0,
        why=one_line(str(given.get("why") or ""), _REASON),
    )


def _put(states: dict[str, Any], state: ServiceState) -> None:
    if state.name in states or len(states) < _MOST:
        kept = state.as_dict()
        del kept["name"]
        states[state.name] = {**kept, "why": one_line(state.why, _REASON)}
