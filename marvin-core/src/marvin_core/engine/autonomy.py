"""How an agent goes on after an answer: messages that came in meanwhile, auto-continue, and play mode."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from ..api.errors import ToolError
from ..guard.files.workspace import Workspace

if TYPE_CHECKING:
    from ..usage.budget import Budget

Going: TypeAlias = Literal["off", "auto", "play"]

GO_ON = "Go on with the task. If it is finished, call end_elaborate with a summary of what you did."
PLAY = (
    "This is play mode: time of your own. The working directory is a playground where nothing matters to anybody, and "
    "nobody will answer. Explore, try, build or write what you find worth it, with the tools that you have. When you "
    "have had enough, call end_play_mode with the reason."
)
"""What opens play mode; nothing more is said to the model then."""
ENDINGS = {"end_elaborate": ("auto", "only while /auto is on"), "end_play_mode": ("play", "only in play mode")}
"""The tools that end each, and why they are not offered else."""
_ENOUGH = 2
"""Answers without a tool call, one after the other, that end auto-continue."""


class Holder(Protocol):
    """Offers tools, or holds them back."""

    def hold(self, name: str, reason: str) -> None: ...
    def release(self, name: str) -> None: ...


class Queue(Protocol):
    """Messages for the model that wait for its next request."""

    @property
    def waiting(self) -> bool: ...
    def send(self, text: str) -> None: ...


class Autonomy:
    """Decides after each round of an agent whether there is another one.

    `allow` makes a budget of this many USD. While `turns` is not 0 it bounds the rounds of a prompt, and `ceiling`,
    unless None, what it may cost.
    """

    def __init__(
        self, tools: Holder, queue: Queue, workspace: Workspace, playground: Path, allow: Callable[[float], Budget]
    ) -> None:
        self._tools = tools
        self._queue = queue
        self._workspace = workspace
        self._playground = playground
        self._allow = allow
        self._worked = self._finished = False
        self._plain = 0
        self.turns = 0
        self.ceiling: Budget | None = None
        self.switch("off")

    def switch(self, going: Going) -> None:
        """Go over to another way of going on; the tool that ends it is offered only then."""
        self.going: Going = going
        for name, (its, reason) in ENDINGS.items():
            if its == going:
                self._tools.release(name)
            else:
                self._tools.hold(name, reason)

    @asynccontextmanager
    async def playing(self, dollars: float | None, turns: int) -> AsyncIterator[str]:
        """Play mode: in the playground, for so many turns, and USD where that is given; then all is as before.

        Gives the prompt to begin with.
        """
        self._playground.mkdir(parents=True, exist_ok=True)
        before, self.turns = self.going, turns
        self.ceiling = self._allow(dollars) if dollars is not None else None
        self.switch("play")
        try:
            with self._workspace.visiting(self._playground):
                yield PLAY
        finally:
            ceiling, self.turns, self.ceiling = self.ceiling, 0, None
            self.switch(before)
            if ceiling is not None:
                await ceiling.aclose()

    def send(self, text: str) -> None:
        """Have the model read this along with its next request, in the middle of what it does."""
        self._queue.send(text)

    def begin(self) -> None:
        """A new prompt."""
        self._worked = self._finished = False
        self._plain = 0

    def finish(self, way: Going) -> None:
        """The model said that it is done: its next answer without a call is the last.

        Raises:
            ToolError: where it does not go on by itself in this way.
        """
        if way != self.going:
            raise ToolError("Nothing goes on by itself here. Answer without a tool call to end your turn.")
        self._finished = True

    def goes_on(self, called: bool) -> bool:
        """Whether to go on after a round, in which tools were `called` or not.

        What was typed meanwhile is always read. With auto-continue an answer that used no tool at all returns control
        at once, and so do two in a row. In play mode nothing is said to the model in between.
        """
        if called:
            self._worked, self._plain = True, 0
            return True
        if self._queue.waiting:
            return True
        self._plain += 1
        if self._finished or self.going == "off":
            return False
        if self.going == "auto":
            if not self._worked or self._plain >= _ENOUGH:
                return False
            self._queue.send(GO_ON)
        return True
