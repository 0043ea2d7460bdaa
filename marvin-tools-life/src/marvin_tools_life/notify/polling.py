"""Showing new messages at each prompt of a chat."""

from __future__ import annotations

from marvin_core import HookContext, MarvinError, RequestFailed

from .messages import new_messages


async def show_new(context: HookContext) -> None:
    """Show what is new, as notices. Where the server does not answer, nothing is said: the next prompt asks again."""
    try:
        messages, more = await new_messages(context, context.timeouts.hook)
    except RequestFailed:
        return
    except MarvinError as error:
        context.notify(str(error))
        return
    for message in messages:
        context.notify(f"🔔 {message.text}")
    if more:
        context.notify(f"🔔 {more} older messages are left out; the ntfy app has them.")
