"""The timeouts for an answer of Copilot's runtime."""

from __future__ import annotations

from ...api.errors import ProviderError
from ...api.providers import Endpoint


class Patience:
    """Ends an answer that takes too long, or makes no progress.

    Times are those of the event loop's clock, in seconds. `silence` is the maximum time without progress of the answer,
    whatever else the runtime sends; None means the maximum time of an answer.
    """

    def __init__(self, endpoint: Endpoint, silence: float | None, now: float) -> None:
        self._endpoint = endpoint
        self._silence = endpoint.timeouts.answer if silence is None else silence
        self._end = now + endpoint.timeouts.answer
        self._last = now
        self._progress = 0
        self._heard = False

    def left(self, now: float) -> float:
        """The remaining time for the next event."""
        return max(min(self._last + self._silence, self._end) - now, 0.0)

    def heard(self, progress: int, now: float) -> ProviderError | None:
        """Record an event and the size of the answer so far; returns the error if the event came too late."""
        if progress != self._progress:
            self._progress, self._last, self._heard = progress, now, False
        else:
            self._heard = True
        return self.over(now) if now >= min(self._last + self._silence, self._end) else None

    def over(self, now: float) -> ProviderError:
        """The error for an answer that has timed out."""
        from ..http.past_limits import lifeless, too_long
        from .errors import silent

        if now >= self._end:
            return too_long(self._endpoint, self._endpoint.base_url, self._endpoint.timeouts.answer)
        if self._heard:
            return lifeless(self._endpoint, self._endpoint.base_url, self._silence)
        return silent(self._endpoint, self._silence)
