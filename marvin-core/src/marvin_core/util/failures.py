"""What foreign code raises: whether that is a failure of its own, or the whole work is to end, and how it is told."""

from __future__ import annotations

import asyncio

from ..api.errors import MarvinError


def is_failure(error: BaseException) -> bool:
    """Whether what a hook, a tool or a provider raised is its own failure, which ends nothing but itself.

    SystemExit and KeyboardInterrupt are: Marvin turns signals into cancellations. So is a cancellation that nobody
    asked for, and a GeneratorExit that does not close the coroutine which caught it. To be asked there, in its task.
    """
    if isinstance(error, asyncio.CancelledError):
        try:
            task = asyncio.current_task()
        except RuntimeError:  # outside of an event loop there is nothing to cancel
            return True
        return task is not None and not task.cancelling()
    if isinstance(error, GeneratorExit):  # closing raises it in the very frame that catches it, and nowhere below
        return error.__traceback__ is not None and error.__traceback__.tb_next is not None
    return True


def told(error: BaseException) -> str:
    """The type of an error and its text; of one that fails to give a text, the type alone."""
    name = type(error).__name__
    try:
        text = str(error)
    except BaseException:  # of a stranger's class: it must not take what tells of it along
        return f"{name} (its text cannot be shown)"
    return f"{name}: {text}" if text else name


def shown(error: BaseException) -> str:
    """An error as people see it; what is neither ours nor the system's is named with its type."""
    if isinstance(error, (MarvinError, OSError)):
        try:
            return str(error)
        except Exception:  # a class of a pack's own
            return told(error)
    return told(error)
