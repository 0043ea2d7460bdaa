"""How an agent goes on after an answer: messages that came in meanwhile, auto-continue, and play mode."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal, TypeAlias

from ..api.errors import ToolError
from .parts import SessionParts

ContinueMode: TypeAlias = Literal["off", "auto", "play"]

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


class Autonomy:
    """Decides after each round of an agent whether there is another one.

    While `turns` is not 0 it bounds the rounds of a prompt.
    """

    def __init__(self, parts: SessionParts) -> None:
        self._parts = parts
        self._worked = self._finished = False
        self._plain = 0
        self.turns = 0
        self.switch("off")

    def switch(self, going: ContinueMode) -> None:
        """Go over to another way of going on; the tool that ends it is offered only then."""
        self.going: ContinueMode = going
        for name, (its, reason) in ENDINGS.items():
            if its == going:
                self._parts.toolbox.release(name)
            else:
                self._parts.toolbox.hold(name, reason)

    @asynccontextmanager
    async def playing(self, dollars: float | None, turns: int) -> AsyncIterator[str]:
        """Play mode: in the playground, for so many turns, and USD where that is given; then all is as before.

        Gives the prompt to begin with.
        """
        playground = self._parts.config.data_folder / "playground"
        playground.mkdir(parents=True, exist_ok=True)
        before, self.turns = self.going, turns
        budget = self._parts.setup.budgets.of(dollars) if dollars is not None else None
        self._parts.model.ceiling = budget
        self.switch("play")
        try:
            with self._parts.workspace.visiting(playground):
                yield PLAY
        finally:
            self.turns, self._parts.model.ceiling = 0, None
            self.switch(before)
            if budget is not None:
                await budget.aclose()

    def send(self, text: str) -> None:
        """Have the model read this along with its next request, in the middle of what it does."""
        self._parts.inbox.send(text)

    def begin(self) -> None:
        """A new prompt."""
        self._worked = self._finished = False
        self._plain = 0

    def finish(self, way: ContinueMode) -> None:
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
        if self._parts.inbox.waiting:
            return True
        self._plain += 1
        if self._finished or self.going == "off":
            return False
        if self.going == "auto":
            if not self._worked or self._plain >= _ENOUGH:
                return False
            self._parts.inbox.send(GO_ON)
        return True
