"""Several services for one purpose, tried in order until one answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from marvin_core import CallOrigin, ToolError

from .catalog import Service

T = TypeVar("T")


class Backend(Generic[T]):
    """A service, and the function that calls it."""

    def __init__(self, service: Service, ask: Callable[[], Awaitable[T]]) -> None:
        self.service = service
        self.ask = ask


class Answered(Generic[T]):
    """A service's answer, and the errors of the services before it."""

    def __init__(self, value: T, service: Service, failures: Sequence[str]) -> None:
        self.value = value
        self.service = service
        self.failures = tuple(failures)

    @property
    def source(self) -> str:
        """The line that names the service, and the errors before it."""
        return source_line([self.service], self.failures)


async def first_answer(origin: CallOrigin, backends: Sequence[Backend[T]], advice: str = "") -> Answered[T]:
    """The answer of the first backend that succeeds. A trial tries all of them.

    Args:
        origin: `ToolContext.origin`.
        advice: a sentence for the error if none succeeds.

    Raises:
        ToolError: none answered; the text has the error of each.
    """
    failures: list[str] = []
    first: Answered[T] | None = None
    for backend in backends:
        try:
            value = await backend.ask()
        except ToolError as error:
            failures.append(str(error))
            continue
        first = first or Answered(value, backend.service, failures)
        if origin != "trial":
            return first
    if first is None:
        raise all_failed(failures, advice)
    return Answered(first.value, first.service, failures)


def all_failed(failures: Sequence[str], advice: str = "") -> ToolError:
    """The error if no service answered."""
    if len(failures) == 1:
        return ToolError(" ".join(filter(None, (failures[0], advice))))
    lines = [f"None of {len(failures)} services answered:", *(f"- {failure}" for failure in failures), advice]
    return ToolError("\n".join(filter(None, lines)))


def source_line(services: Sequence[Service], failures: Sequence[str] = ()) -> str:
    """The services of an answer, and the errors of others."""
    names = dict.fromkeys(service.source for service in services)
    failed = "".join(f" Failed: {failure}" for failure in failures)
    return f"[Source: {', '.join(names)}.{failed}]"
