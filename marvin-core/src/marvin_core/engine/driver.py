"""One prompt after the other: hooks, the agent's run, and how it ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, TypeAlias

from ..api.errors import BudgetExceeded, MarvinError
from ..api.events import AgentEnd, AgentStart, Emit
from ..api.messages import Message, user
from ..api.session import TurnResult
from ..conversation.conversation import Conversation
from .agent import Agent
from .hook_runner import HookRunner

Reason: TypeAlias = Literal["done", "cancelled", "error", "rounds", "budget"]


class Driver:
    """Takes prompts. One submission is in flight at a time; `busy` says whether one is."""

    def __init__(
        self,
        make_agent: Callable[[], Agent],
        conversation: Conversation,
        hooks: HookRunner,
        emit: Emit,
        before_prompt: Callable[[], Awaitable[None]],
        after_turn: Callable[[], Awaitable[None]],
    ) -> None:
        self._make_agent = make_agent
        self._conversation = conversation
        self._hooks = hooks
        self._emit = emit
        self._before_prompt = before_prompt
        self._after_turn = after_turn
        self._queue: list[str] = []
        self.busy = False

    def send(self, text: str) -> None:
        """Queue a message for the model; it goes along with the next request."""
        self._queue.append(text)

    def queued(self) -> Sequence[Message]:
        """The queued messages; they count as delivered."""
        messages = [user(text) for text in self._queue]
        self._queue.clear()
        return messages

    @property
    def waiting(self) -> bool:
        """Whether a message is queued."""
        return bool(self._queue)

    def check_free(self) -> None:
        """Raise `MarvinError` where a submission is in flight."""
        if self.busy:
            raise MarvinError("An answer is still running. Wait for it, or cancel it first.")

    async def submit(self, text: str) -> TurnResult:
        """Run one prompt to its end. A failure is told in the result; cancelling passes through.

        Raises:
            MarvinError: where a submission is in flight already.
        """
        return await self._run(text)

    async def retry(self) -> TurnResult:
        """Ask the model again, from the conversation as it stands. Otherwise as `submit`."""
        return await self._run(None)

    async def _run(self, text: str | None) -> TurnResult:
        self.check_free()
        self.busy = True
        answers = self._conversation.begin_answers()
        reason: Reason = "cancelled"
        error: Exception | None = None
        try:
            if text is None:
                asked = [message.text for message in self._conversation.messages if message.role == "user"]
                self._emit(AgentStart(prompt=asked[-1] if asked else ""))
            else:
                text = await self._hooks.on_prompt(text)
                self._emit(AgentStart(prompt=text))
                await self._before_prompt()
                self._conversation.append(user(text))
            reason = await self._make_agent().run()
        except Exception as raised:  # told to whoever submitted; a chat must outlive any failure
            error = raised
            reason = "budget" if isinstance(raised, BudgetExceeded) else "error"
        finally:
            self.busy = False
            answer = _joined(answers)
            self._emit(AgentEnd(stop_reason=reason, text=answer, error=str(error or "")))
            await self._after_turn()
        return TurnResult(text=answer, error=error)


def _joined(texts: Sequence[str]) -> str:
    """The texts of several answers, each beginning on a line of its own."""
    earlier = [text if text.endswith("\n") or not text else f"{text}\n" for text in texts[:-1]]
    return "".join([*earlier, *texts[-1:]])
