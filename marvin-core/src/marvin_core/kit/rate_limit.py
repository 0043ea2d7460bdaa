"""Rate limits for services, shared by all Marvins of a user."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..api.errors import RequestFailed
from ..api.timeouts import Timeouts
from ..util.numbers import amount
from ..util.state_files import LockTimeout, locked, replace_file
from ..util.threads import in_thread
from ..util.untrusted_json import parse_json

_SET_BACK = 1.0
"""The maximum difference between the clocks of two processes, in seconds."""
_LONGEST = 7 * 24 * 3600.0
"""The longest stored pause of a service, in seconds."""

_Turns = dict[str, float]
"""The earliest time of the next request by host, in seconds since the epoch."""


class RateLimit:
    """Allows one request per host and `interval`, over all processes.

    The times are in one small file, changed under its lock: a process that is killed leaves no lock. Pass it
    to `fetch` as `turns`, and create a new object for each call: it has no other state.

    Args:
        folder: the folder of the file: the cache folder of the pack. Packs with the same folder share the limit.
        interval: the minimum seconds between two requests to a host.
        longest: the maximum wait, in seconds; `timeouts.http_turn` by default.
        timeouts: `PackContext.timeouts`; otherwise the defaults.
    """

    def __init__(
        self, folder: Path, interval: float, *, longest: float | None = None, timeouts: Timeouts | None = None
    ) -> None:
        self._path = folder / "turns.json"
        self._interval = interval
        self._timeouts = timeouts or Timeouts()
        self._longest = self._timeouts.http_turn if longest is None else longest

    async def wait(self, host: str) -> None:
        """Wait until a request to this host is allowed. Does not block the event loop.

        The slot is reserved at once; a cancellation during the wait does not release it.

        Raises:
            RequestFailed: the wait would exceed the maximum; no slot is reserved.
        """

        def take(turns: _Turns, now: float) -> float:
            begin = max(now, turns.get(host, 0.0))
            if begin - now > self._longest:
                raise RequestFailed(
                    f"{host} accepts no further requests now: it would be {begin - now:,.0f} s until the next one. "
                    "Try again later, or use another source.",
                    retry_after=begin - now,
                )
            turns[host] = begin + self._interval
            return begin - now

        pause = await in_thread(lambda: self._changed(take))
        if pause > 0:
            await asyncio.sleep(pause)

    async def postpone(self, host: str, seconds: float) -> None:
        """Block requests of all processes to a host for so many seconds, because it asked for that."""

        def put_off(turns: _Turns, now: float) -> float:
            turns[host] = max(turns.get(host, 0.0), now + min(seconds, _LONGEST))
            return 0.0

        await in_thread(lambda: self._changed(put_off))

    def _changed(self, change: Callable[[_Turns, float], float]) -> float:
        """The result of a change of the stored times; read and written under the lock."""
        try:
            with locked(self._path, self._timeouts.lock, self._timeouts.lock_poll):
                now = time.time()
                turns = self._read(now)
                result = change(turns, now)
                kept = {"written": now, "next": {host: at for host, at in turns.items() if at > now}}
                replace_file(self._path, json.dumps(kept).encode())
                return result
        except (OSError, LockTimeout) as error:
            raise RequestFailed(
                f"The file {self._path}, which records when services may be called again, cannot be used: "
                f"{getattr(error, 'strerror', None) or error}. Tell the user."
            ) from error

    def _read(self, now: float) -> _Turns:
        """The stored times; none if the file is damaged, or the clock was set back since."""
        try:
            data: Any = parse_json(self._path.read_bytes())
            if not isinstance(data, dict) or amount(data["written"]) is None or data["written"] > now + _SET_BACK:
                return {}
            latest = now + _LONGEST
            return {str(host): float(at) for host, at in data["next"].items() if 0 <= float(at) <= latest}
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
            return {}
