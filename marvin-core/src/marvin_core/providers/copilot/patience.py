"""How long an answer of Copilot's runtime is waited for."""

from __future__ import annotations

from ...api.errors import ProviderError
from ...api.providers import Endpoint


class Patience:
    """Ends an answer that takes too long, or does not go on. Moments are those of the event loop's clock, in seconds.

    `silence` is the longest time in which nothing of the answer may come, whatever else the runtime sends; None for
    as long as an answer may take.
    """

    def __init__(self, endpoint: Endpoint, silence: float | None, now: float) -> None:
        self._endpoint = endpoint
        self._silence = endpoint.timeouts.answer if silence is None else silence
        self._end = now + endpoint.timeouts.answer
        self._last = now
        self._progress = 0
        self._heard = False

    def left(self, now: float) -> float:
        """How long the next event may be waited for."""
        return max(min(self._last + self._silence, self._end) - now, 0.0)

    def heard(self, progress: int, now: float) -> ProviderError | None:
        """Take note of an event, after which so much of the answer is there; the error where it came too late."""
        if progress != self._progress:
            self._progress, self._last, self._heard = progress, now, False
        else:
            self._heard = True
        return self.over(now) if now >= min(self._last + self._silence, self._end) else None

    def over(self, now: float) -> ProviderError:
        """The error for an answer that is waited for no longer."""
        from ..http.past_limits import lifeless, too_long
        from .errors import silent

        if now >= self._end:
            return too_long(self._endpoint, self._endpoint.base_url, self._endpoint.timeouts.answer)
        if self._heard:
            return lifeless(self._endpoint, self._endpoint.base_url, self._silence)
        return silent(self._endpoint, self._silence)
