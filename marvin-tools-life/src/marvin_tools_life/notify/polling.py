"""Showing new messages at each prompt of a chat."""

from __future__ import annotations

import asyncio

from marvin_core import AgentEnd, Event, HookContext, MarvinError, MessageEnd, MessageUpdate, RequestFailed

from .messages import ask, take

_REFUSALS = (400, 401, 403, 404)
"""Statuses that only the user can fix: the server's URL, the token, or a topic."""


class Polling:
    """Requests new messages while a prompt is processed, and shows them between answers."""

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        """The last request."""
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._wanted = False
        self._told: set[str] = set()

    def begin(self, context: HookContext) -> None:
        """Start a request, or another one once the running one is done; returns at once."""
        self._wanted = True
        if self.task is None or self.task.done():
            self.task = asyncio.create_task(self._ask(context))

    def see(self, event: Event) -> None:
        """Track whether an answer is being written: a notice would interrupt it."""
        if isinstance(event, MessageUpdate) and event.kind == "text":
            self._quiet.clear()
        elif isinstance(event, (MessageEnd, AgentEnd)):
            self._quiet.set()

    async def _ask(self, context: HookContext) -> None:
        while self._wanted:
            self._wanted = False
            await self._show(context)

    async def _show(self, context: HookContext) -> None:
        """Show new messages as notices. If the server does not answer, nothing is shown: the next prompt retries.

        A refusal is shown once for each reason, as it would repeat at every prompt.
        """
        try:
            answer = await ask(context, context.timeouts.hook)
            await self._quiet.wait()
            messages, more = await take(context, answer)
        except RequestFailed as error:
            if error.status in _REFUSALS:
                self._tell_once(context, str(error.status), f"New ntfy messages are not available: {error}")
            return
        except MarvinError as error:
            self._tell_once(context, str(error), str(error))
            return
        for message in messages:
            context.notify(f"🔔 {message.text}")
        if more:
            context.notify(f"🔔 {more} older messages were left out; the ntfy app shows them.")

    def _tell_once(self, context: HookContext, reason: str, text: str) -> None:
        if reason not in self._told:
            self._told.add(reason)
            context.notify(text)
