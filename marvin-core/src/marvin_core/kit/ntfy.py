"""Notifications in the background of a run, which neither delay it nor make it fail."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from ..api.errors import MarvinError
from ..api.timeouts import Timeouts
from ..util.text import one_line
from .notices import NtfyServer, Push, PushPriority, publish

if TYPE_CHECKING:
    import httpx

_MOST_WAITING = 50
_WHY = 300


class Notifier:
    """Publishes notifications to one topic in the background, in order.

    A notification that fails is counted and not retried. The queue holds at most 50: a new one replaces the oldest,
    which counts as failed.

    Args:
        http: `ToolContext.http`, or the client of a hook.
        topic: the topic. With an invalid one each notification fails; check it with `is_topic`.
        server: the public server by default.
        timeouts: `notice` is the limit of each request, `notice_end` that of `close`.
    """

    def __init__(
        self,
        http: httpx.AsyncClient,
        topic: str,
        server: NtfyServer | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        self.published = 0
        self.failed = 0
        self.reason = ""
        """The reason of the most recent failure, on one line."""
        self._http = http
        self._topic = topic
        self._server = server
        self._timeouts = timeouts or Timeouts()
        self._waiting: deque[Push] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._closed = False

    def send(
        self, text: str, *, title: str = "", priority: PushPriority = "default", tags: tuple[str, ...] = ()
    ) -> None:
        """Queue a notification; returns at once and raises nothing. Requires a running event loop."""
        if self._closed:
            self._fail("the run was over already")
            return
        if len(self._waiting) >= _MOST_WAITING:
            self._waiting.popleft()
            self._fail("more notifications were produced than the server accepted")
        self._waiting.append(Push(topic=self._topic, text=text, title=title, priority=priority, tags=tags))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._publish_all())

    async def close(self) -> str:
        """Wait until the queue is published, for at most `timeouts.notice_end`.

        Returns:
            a sentence about failed notifications; empty if there are none.
        """
        self._closed = True
        if self._worker is not None:
            await asyncio.wait({self._worker}, timeout=self._timeouts.notice_end)
            if not self._worker.done():
                self._worker.cancel()
                await asyncio.wait({self._worker}, timeout=self._timeouts.notice_end)
        if self._waiting:
            self._fail("the server did not accept them in time", len(self._waiting))
            self._waiting.clear()
        if not self.failed:
            return ""
        number = "1 notification was" if self.failed == 1 else f"{self.failed} notifications were"
        return f"{number} not published: {self.reason}"

    async def _publish_all(self) -> None:
        while self._waiting:
            # It stays in the queue until it is published: a cancelled one still counts.
            push = self._waiting[0]
            why_not = await self._published(push)
            # If it is missing, a newer one replaced it, and it was counted then.
            is_counted = not (self._waiting and self._waiting[0] is push)
            if not is_counted:
                self._waiting.popleft()
            if not why_not:
                self.published += 1
                self.failed -= is_counted
            elif not is_counted:
                self._fail(why_not)

    async def _published(self, push: Push) -> str:
        """Why a notification was not published; empty on success."""
        try:
            async with asyncio.timeout(self._timeouts.notice):
                await publish(self._http, push, self._server)
        except TimeoutError:
            return "the server did not answer in time"
        except MarvinError as error:
            return str(error)
        # Whatever else is wrong with a notice, such as a client that was closed: it is not worth the run.
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""

    def _fail(self, reason: str, count: int = 1) -> None:
        self.failed += count
        self.reason = one_line(reason, _WHY)
