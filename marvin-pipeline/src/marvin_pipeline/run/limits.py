"""The limits of a run: a cost ceiling, with a reserve, and a time limit."""

from __future__ import annotations

from collections.abc import Callable

from marvin_core import BudgetExceeded, Clock

_HOUR, _MINUTE = 3600, 60


class TimeUp(BudgetExceeded):
    """The run's time is over."""


class RunLimits:
    """The rest of a run's limits.

    Args:
        clock: gives the time.
        spent: the run's cost so far in USD.
        max_cost: USD; None for no ceiling.
        reserve: the part of the ceiling, from 0 to 1, that new agents must leave.
        max_time: seconds; None for no limit.
    """

    def __init__(
        self,
        clock: Clock,
        spent: Callable[[], float],
        max_cost: float | None = None,
        reserve: float = 0.0,
        max_time: float | None = None,
    ) -> None:
        self._clock = clock
        self._spent = spent
        self._begun = clock.monotonic()
        self.max_cost = max_cost
        self.reserve = 0.0 if max_cost is None else max_cost * reserve
        self.max_time = max_time

    @property
    def spent(self) -> float:
        """The run's known cost so far in USD."""
        return self._spent()

    @property
    def seconds(self) -> float:
        """Seconds since the run started."""
        return self._clock.monotonic() - self._begun

    @property
    def time_left(self) -> float | None:
        """Seconds that are left; None without a limit."""
        return None if self.max_time is None else self.max_time - self.seconds

    @property
    def money_left(self) -> float | None:
        """USD that new agents may use, without the reserve; None without a ceiling."""
        return None if self.max_cost is None else self.max_cost - self.reserve - self.spent

    def check_time(self) -> None:
        """Raise `TimeUp` if the time is over."""
        time = self.time_left
        if time is not None and time <= 0:
            raise TimeUp(
                f"The run has reached its time limit of {words_of(self.max_time or 0)}. Run it again to continue."
            )

    def check(self) -> None:
        """Raise if nothing new may be started.

        Raises:
            BudgetExceeded: only the reserve is left.
            TimeUp: the time is over.
        """
        self.check_time()
        money = self.money_left
        if money is not None and money <= 0:
            raise BudgetExceeded(
                f"{self.spent:.4f} of {self.max_cost:g} USD are used, and {self.reserve:g} USD of it are a reserve. "
                "Run it again with a higher --max-cost to continue."
            )


def words_of(seconds: float) -> str:
    """A duration for people, such as `1 h 5 min`."""
    if seconds < _MINUTE:
        return f"{seconds:.0f} s"
    hours, minutes = int(seconds // _HOUR), int(seconds % _HOUR // _MINUTE)
    return " ".join(part for part in (f"{hours} h" if hours else "", f"{minutes} min" if minutes else "") if part)
