"""Notices beside a run: none of them holds it up, and none makes it fail."""

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
    """Publishes notices to one topic, in their order, while the run goes on.

    A notice that cannot be published is counted and not tried again. At most 50 wait: the oldest of them makes room for
    a new one, and counts as not published.

    Args:
        http: `ToolContext.http`, or the client of a hook.
        topic: where they go. One that cannot be a topic makes each notice fail; `is_topic` tells beforehand.
        server: without one the public server.
        timeouts: `notice` bounds each request, `notice_end` the wait in `close`.
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
        """Why the newest of those that failed did, on one line."""
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
        """Have a notice published; returns at once and raises nothing. An event loop has to run."""
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
        """Wait for what is still to be published, for `timeouts.notice_end` at most.

        Returns:
            what to tell of notices that were not published, in a sentence; empty where all of them were.
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
            # It waits on in its place until it is published: what is cancelled meanwhile still counts.
            push = self._waiting[0]
            why_not = await self._published(push)
            # Where it is gone, it had to make room meanwhile and was counted then.
            is_counted = not (self._waiting and self._waiting[0] is push)
            if not is_counted:
                self._waiting.popleft()
            if not why_not:
                self.published += 1
                self.failed -= is_counted
            elif not is_counted:
                self._fail(why_not)

    async def _published(self, push: Push) -> str:
        """Why a notice could not be published; empty where it is."""
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
