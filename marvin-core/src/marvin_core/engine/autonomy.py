"""Decides how an agent continues after an answer: messages that arrived meanwhile, auto-continue, and play mode."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Literal, TypeAlias

from ..api.errors import ToolError
from ..api.events import MessageOrigin, SessionResume
from ..util.state_files import make_private_folder
from ..util.text import local_time
from .parts import SessionParts

ContinueMode: TypeAlias = Literal["off", "auto", "play"]

GO_ON = "Go on with the task. If it is finished, call end_elaborate with a summary of what you did."
PLAY = (
    "This is play mode: you may do what you like. Nothing in the working directory matters to anyone, and nobody "
    "will answer. Explore, try, build or write whatever you find worthwhile, with the tools that you have. When you "
    "want to stop, call end_play_mode with the reason."
)
"""The opening of play mode; the model gets no other request then."""
ENDINGS = {"end_elaborate": ("auto", "only while /auto is on"), "end_play_mode": ("play", "only in play mode")}
"""The tool that ends each mode, and why it is not offered otherwise."""
_ENOUGH = 2
"""The number of consecutive answers without a tool call that ends auto-continue."""


class Autonomy:
    """Decides after each round of an agent whether another one follows.

    If `turns` is not 0, a prompt ends after this many requests; the calls of the last one are run.
    """

    def __init__(self, parts: SessionParts) -> None:
        self._parts = parts
        self._worked = self._finished = False
        self._plain = 0
        self.turns = 0
        self.switch("off")

    def switch(self, going: ContinueMode) -> None:
        """Switch to another mode; only then is the tool that ends it offered."""
        self.going: ContinueMode = going
        for name, (its, reason) in ENDINGS.items():
            if its == going:
                self._parts.toolbox.release(name)
            else:
                self._parts.toolbox.hold(name, reason)

    @asynccontextmanager
    async def playing(self, dollars: float | None, turns: int) -> AsyncIterator[str]:
        """Play mode: in the playground, for a number of turns and an optional cost in USD; then the old mode returns.

        It has a separate conversation. Yields its first prompt.
        """
        playground = self._parts.config.data_folder / "playground"
        make_private_folder(playground)
        budget = self._parts.setup.budgets.of(dollars) if dollars is not None else None
        before, self.turns = self.going, turns
        self._parts.model.ceiling = budget
        self.switch("play")
        try:
            async with self._parts.processes.jobs_apart():
                with self._parts.workspace.playing_in(playground), self._conversation_of_its_own():
                    await self._confine()
                    yield PLAY
        finally:
            self.turns, self._parts.model.ceiling = 0, None
            self._parts.toolbox.confine(None)
            self.switch(before)
            if budget is not None:
                await budget.aclose()

    async def _confine(self) -> None:
        """Offer the tools whose effects stay in the playground; programs only in an effective sandbox."""
        from ..guard.gates.play import closed_in_play

        toolbox, state = self._parts.toolbox, await self._parts.sandbox.state()
        if not state.holds and any("exec" in spec.access for spec in toolbox.offered):
            why = f" ({state.why})" if state.why else ""
            self._parts.bus.tell(f"There is no working sandbox here{why}, so play mode runs no programs.")
        toolbox.confine(partial(closed_in_play, holds=state.holds))

    @contextmanager
    def _conversation_of_its_own(self) -> Iterator[None]:
        """Set the current conversation aside while the context lasts; it continues unchanged afterwards."""
        parts = self._parts
        messages, state = parts.conversation.messages, dict(parts.state)
        parts.conversation.load(())
        parts.state.clear()
        try:
            with parts.writer.aside(), parts.profile.aside():
                yield
        finally:
            parts.inbox.take()  # messages for one conversation are not for the other
            parts.conversation.load(messages)
            parts.state.clear()
            parts.state.update(state)
            if parts.writer.id:
                model = parts.model
                parts.bus.emit(
                    SessionResume(
                        session_id=parts.writer.id,
                        provider=model.provider_name,
                        model=model.model,
                        messages=len(messages),
                        healed=0,
                    )
                )

    def before_round(self, number: int) -> Sequence[tuple[str, MessageOrigin]]:
        """Additional text for the model's next request.

        In play mode it is the progress, if nothing else follows the last answer: services reject a request that ends
        with an answer. It contains no question.
        """
        messages = self._parts.conversation.messages
        if self.going != "play" or self._parts.inbox.waiting or not messages or messages[-1].role != "assistant":
            return self._parts.inbox.take()
        time = local_time(self._parts.clock.now())
        return [(f"[{time}. Turn {number} of {self.turns}; nobody has written anything.]", "auto")]

    def send(self, text: str) -> None:
        """Add this to the model's next request, during its work."""
        self._parts.inbox.send(text, "steered")

    def begin(self) -> None:
        """Start a new prompt."""
        self._worked = self._finished = False
        self._plain = 0

    def finish(self, way: ContinueMode) -> None:
        """The model reported that it is done: its next answer without a call is the last one.

        Raises:
            ToolError: if this mode is not active.
        """
        if way != self.going:
            raise ToolError("No autonomous mode is on. Answer without a tool call to end your turn.")
        self._finished = True

    def goes_on(self, called: bool) -> bool:
        """Whether to continue after a round, in which tools were `called` or not.

        Text typed meanwhile is always read. With auto-continue, control returns at once if the prompt used no tool at
        all, and after two consecutive answers without one. In play mode the model is asked nothing in between.
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
            self._parts.inbox.send(GO_ON, "auto")
        return True
