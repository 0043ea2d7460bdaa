"""Showing new messages at each prompt of a chat."""

from __future__ import annotations

import asyncio

from marvin_core import AgentEnd, Event, HookContext, MarvinError, MessageEnd, MessageUpdate, RequestFailed

from .messages import ask, take

_REFUSALS = (400, 401, 403, 404)
"""What only the user can mend: the address of the server, the token, or a topic."""


class Polling:
    """Asks for new messages while a prompt is at work, and shows them between answers."""

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        """The question that was asked last."""
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._wanted = False
        self._told: set[str] = set()

    def begin(self, context: HookContext) -> None:
        """Ask, or ask again as soon as the question that is under way has its answer; returns at once."""
        self._wanted = True
        if self.task is None or self.task.done():
            self.task = asyncio.create_task(self._ask(context))

    def see(self, event: Event) -> None:
        """Know whether an answer is being written: a notice in the middle of it would tear it apart."""
        if isinstance(event, MessageUpdate) and event.kind == "text":
            self._quiet.clear()
        elif isinstance(event, (MessageEnd, AgentEnd)):
            self._quiet.set()

    async def _ask(self, context: HookContext) -> None:
        while self._wanted:
            self._wanted = False
            await self._show(context)

    async def _show(self, context: HookContext) -> None:
        """Show what is new, as notices. Where the server does not answer, nothing is said: the next prompt asks again.

        A refusal is told, once for each reason, as it would be the same at every prompt.
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
