"""What foreign code raises: whether that is a failure of its own, or the whole work is to end, and how it is told."""

from __future__ import annotations

import asyncio

from ..api.errors import MarvinError


def is_failure(error: BaseException) -> bool:
    """Whether what a hook, a tool or a provider raised is its own failure, which ends nothing but itself.

    SystemExit is one, and so is a cancellation that nobody asked for. To be asked in the task that caught it.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and not task.cancelling()
    return not isinstance(error, (KeyboardInterrupt, GeneratorExit))


def told(error: BaseException) -> str:
    """An error as people see it; what is neither ours nor the system's is named with its type."""
    if isinstance(error, (MarvinError, OSError)):
        return str(error)
    return f"internal error: {type(error).__name__}: {error}".removesuffix(": ")
