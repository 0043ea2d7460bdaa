"""The clock of the machine."""

from __future__ import annotations

import time


class SystemClock:
    """The clock of the machine, as `Clock` describes it."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never go backwards."""
        return time.monotonic()
