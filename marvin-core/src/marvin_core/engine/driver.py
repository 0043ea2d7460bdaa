"""One prompt after the other: hooks, the agent's run, and how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from ..api.errors import BudgetExceeded, MarvinError, OutputMismatch
from ..api.events import AgentEnd, AgentStart
from ..api.messages import user
from ..api.session import Attached, TurnResult
from ..conversation.compactor import CAPS, Compactor
from ..sessions.writer import Bill
from ..util.failures import is_failure, shown, told
from ..util.text import RECEIVED_LIMIT, cut, one_line
from ..util.threads import in_thread
from .agent import Agent
from .hook_runner import HookRunner
from .parts import SessionParts

STOPS = 3
"""How often hooks may continue a prompt."""
Reason: TypeAlias = Literal["done", "cancelled", "error", "rounds", "budget"]


class Driver:
    """Takes prompts. One submission is in flight at a time; `busy` says whether one is."""

    def __init__(self, parts: SessionParts, hooks: HookRunner, agent: Agent, compactor: Compactor) -> None:
        self._parts = parts
        self._hooks = hooks
        self._agent = agent
        self._compactor = compactor
        self.busy = False
        self._accounting: asyncio.Future[None] | None = None
        self._last = self._opened = ""

    def check_free(self) -> None:
        """Raise `MarvinError` where a submission is in flight."""
        if self.busy:
            raise MarvinError("An answer is still running. Wait for it, or cancel it first.")

    async def submit(self, text: str | None, attached: Attached) -> TurnResult:
        """Run one prompt to its end. An error is part of the result; a cancellation is raised.

        Args:
            text: the prompt; without one the last answer is requested again.
            attached: the attachments of the prompt.

        Raises:
            MarvinError: a prompt is already running.
        """
        self.check_free()
        self.busy = True
        self._parts.inbox.open()
        self._parts.progress.error, self._parts.progress.replay = None, ()
        answers = self._parts.conversation.begin_answers()
        reason: Reason = "cancelled"
        error: Exception | None = None
        output: str | None = None
        try:
            try:
                await self._begin(text, attached)
                await self._take_up()
                reason = await self._answered(answers)
                output = await self._in_form(answers)
            finally:
                await self._parts.progress.settled()
        except BaseException as raised:  # the caller gets the error; a chat must outlive any failure
            if not is_failure(raised):
                raise
            error = _shown(_told(raised), self._parts.bus.clean)
            reason = "budget" if isinstance(raised, BudgetExceeded) else "error"
        finally:
            self.busy = False
            self._parts.progress.error = error
            self._parts.model.prompt_ended()
            answer = _joined(answers)
            self._parts.bus.emit(AgentEnd(stop_reason=reason, text=answer, error="" if error is None else str(error)))
            self._parts.inbox.close()
            self._accounting = asyncio.ensure_future(self._account(self._accounting, *self._bill()))
            await self._parts.writer.flush(self._parts.state)
            await self._parts.profile.flush()
        return TurnResult(text=answer, error=error, output=output)

    async def _answered(self, answers: Sequence[str]) -> Reason:
        """Run a prompt, including answers to messages of hooks."""
        for _ in range(STOPS):
            reason = await self._agent.run()
            if reason != "done":
                return reason
            for said in await self._hooks.on_stop(answers[-1] if answers else ""):
                self._parts.inbox.send(said, "hook")
            if not self._parts.inbox.waiting:
                return reason
        return await self._agent.run()

    async def _in_form(self, answers: Sequence[str]) -> str | None:
        """The last answer as JSON, if a schema is set; an answer that does not fit is requested once more.

        Raises:
            OutputMismatch: the second answer does not fit either.
        """
        schema = self._parts.config.output_schema
        if schema is None:
            return None
        from .output_form import AGAIN, OutputForm

        form = OutputForm(schema)
        try:
            return form.read(answers[-1] if answers else "")
        except OutputMismatch as wrong:
            self._parts.bus.warn(f"The answer does not match the schema, so the model is asked once more: {wrong}")
            self._parts.take(user(AGAIN.format(problem=wrong)), "marvin")
        await self._agent.run()
        try:
            return form.read(answers[-1] if answers else "")
        except OutputMismatch as wrong:
            raise OutputMismatch(
                f"The answer does not match the schema of --output-schema: {wrong} Make the schema simpler, or "
                "choose another model."
            ) from None

    def opened(self) -> None:
        """A session was resumed: its previous cost counts under the ceiling from the next prompt on."""
        self._opened = self._parts.writer.id

    def forked(self, session_id: str) -> None:
        """A fork of this session continues: the previous cost is part of the fork as well."""
        if session_id == self._opened:
            self.opened()

    def take_up_now(self) -> None:
        """Count the cost of the resumed session. Blocks, so the event loop must not run yet."""
        self._opened = ""
        self._parts.writer.spent(self._parts.usage.take_up(self._parts.writer.id, self._parts.writer.cost))

    async def _take_up(self) -> None:
        """As `take_up_now`, unless that was done; and set the session in the ledger."""
        parts, (session_id, bill) = self._parts, self._bill()
        if session_id != self._last or session_id == self._opened:
            await self.accounted()  # earlier costs belong to the previous prompt
        self._last = session_id
        if parts.setup.budget is None:
            return
        if session_id == self._opened:
            before = await bill(0.0)
            await bill(await in_thread(lambda: parts.usage.take_up(session_id, before)))
            self._opened = ""
        cost = await bill(0.0)
        await in_thread(lambda: parts.usage.work_for(session_id, cost))

    def _bill(self) -> tuple[str, Bill]:
        return self._parts.writer.id, self._parts.writer.bill()

    async def _account(self, earlier: asyncio.Future[None] | None, session_id: str, bill: Bill) -> None:
        """Add the cost of a prompt to the session and to usage.json, in the background."""
        if earlier is not None:
            await asyncio.wait([earlier])
        try:
            cost = await bill(await in_thread(self._parts.usage.prompt_ended))
            if self._parts.setup.budget is not None:
                await in_thread(lambda: self._parts.usage.work_for(session_id, cost))
        except Exception as error:  # the answer is complete, and the chat continues
            self._parts.bus.warn(f"The cost of the last prompt could not be recorded: {shown(error)}")

    async def accounted(self) -> None:
        """Wait until the cost of the prompts is stored."""
        if self._accounting is not None:
            await asyncio.shield(self._accounting)

    async def settled(self, limit: float) -> None:
        """As `accounted`, for at most so many seconds; reports what was not stored, at the end of a run."""
        if self._accounting is not None:
            await asyncio.wait([self._accounting], timeout=limit)

    async def _begin(self, text: str | None, attached: Attached) -> None:
        parts = self._parts
        if text is None:
            asked = [message.text for message in parts.conversation.messages if message.role == "user"]
            parts.bus.emit(AgentStart(prompt=asked[-1] if asked else ""))
            return
        if parts.workspace.playing:  # nobody said it
            parts.bus.emit(AgentStart(prompt=text))
            parts.take(user(text), "auto")
            return
        text = parts.redactor.text(text)
        try:
            if parts.setup.tool_source is not None:
                await parts.setup.tool_source.ready()
            if parts.setup.hooks:
                packs = map(parts.setup.packs().of_hook, parts.setup.hooks)
                await parts.fetch_secrets(name for pack in packs for name in pack.secrets)
            text = parts.redactor.text(await self._hooks.on_prompt(text))
        finally:  # a prompt that is cancelled meanwhile ends, so it has to begin
            parts.bus.emit(AgentStart(prompt=text))
        await self._compactor.cap(CAPS[parts.workspace.mode])
        if parts.setup.asker is not None:  # only a chat can rewind
            self._note(text)
        if attached.tools:
            parts.carried.of(parts.model.provider)  # which tools are deferred depends on the model
            parts.carried.reveal(attached.tools)
        parts.take(user(text, *attached.images), "typed")

    def _note(self, text: str) -> None:
        parts, position = self._parts, self._parts.writer.position
        if position is not None:
            parts.progress.prompts.append((shown_prompt(text), parts.clock.now(), position[1]))


def shown_prompt(text: str) -> str:
    """A prompt for lists."""
    return cut(one_line(text), RECEIVED_LIMIT)


def _told(raised: BaseException) -> Exception:
    """The exception of a prompt as an error with a text."""
    if not isinstance(raised, Exception):
        return MarvinError(
            f"The answer was ended by code that raised {type(raised).__name__}. Try again without that pack."
        )
    try:
        str(raised)
    except Exception:
        return MarvinError(f"The answer was ended by {told(raised)}. Try again without the pack that raised it.")
    return raised


def _shown(error: Exception, clean: Callable[[str], str]) -> Exception:
    """The error with its text redacted."""
    shown = clean(str(error))
    if shown == str(error):
        return error
    error.args = (shown,)
    return error if str(error) == shown else MarvinError(shown)


def _joined(texts: Sequence[str]) -> str:
    """The texts of several answers, each beginning on a new line."""
    earlier = [text if text.endswith("\n") or not text else f"{text}\n" for text in texts[:-1]]
    return "".join([*earlier, *texts[-1:]])
