"""Errors of third-party code: whether they end only that code or the whole work, and how they are shown."""

from __future__ import annotations

import asyncio

from ..api.errors import MarvinError


def is_failure(error: BaseException) -> bool:
    """Whether an exception is a failure of the hook, tool or provider that raised it, so that nothing else ends.

    This includes SystemExit and KeyboardInterrupt, since Marvin turns signals into cancellations. It includes a
    cancellation that nobody requested, and a GeneratorExit that does not close the coroutine that caught it. Call it in
    the task that caught the exception.
    """
    if isinstance(error, asyncio.CancelledError):
        try:
            task = asyncio.current_task()
        except RuntimeError:  # outside of an event loop nothing can be cancelled
            return True
        return task is not None and not task.cancelling()
    if isinstance(error, GeneratorExit):  # closing raises it in the very frame that catches it, and nowhere below
        return error.__traceback__ is not None and error.__traceback__.tb_next is not None
    return True


def told(error: BaseException) -> str:
    """The type and text of an error; only its type if it fails to give a text."""
    name = type(error).__name__
    try:
        text = str(error)
    except BaseException:  # a third-party class: its failure must not prevent the message
        return f"{name} (its text cannot be shown)"
    return f"{name}: {text}" if text else name


def shown(error: BaseException) -> str:
    """An error as it is shown to people. If it is neither Marvin's nor the system's, its type is named."""
    if isinstance(error, (MarvinError, OSError)):
        try:
            return str(error)
        except Exception:  # a class of a pack
            return told(error)
    return told(error)
