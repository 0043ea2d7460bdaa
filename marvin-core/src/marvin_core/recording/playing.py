"""Replays a conversation in a separate session, and compares it with the recording."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

from ..api.errors import UsageError
from ..api.events import AgentEnd, Event, ToolExecutionEnd, ToolExecutionStart
from ..api.messages import Image, Message
from ..api.providers import Request, ThinkingLevel
from ..api.record import Record
from ..api.session import Attached
from ..api.tools import ToolSpec, is_tool_name
from .cassette import Recorded, RecordedPrompt, RecordedRequest
from .comparing import compare_requests, prompt_place
from .form import message_of
from .places import each_text, places_of
from .report import Report, diff_of
from .served import ServedModels, Tape
from .stand_ins import CALL, RecordedResults, answer_nothing, let_all_run, works_on_session

if TYPE_CHECKING:
    from ..engine.parts import SessionParts, SessionSetup
    from ..engine.session import Session


class How(Record):
    """The options of a replay."""

    real: bool = False
    """Whether tools actually run."""
    strict: bool = False
    """Whether changed instructions or tools count as a difference."""
    pace: float = 0.0
    """The speed of an answer in characters per second; 0 for all at once."""


class Player:
    """Replays a conversation. `name` is the prefix of its prompts in the report; empty for the session itself."""

    def __init__(self, of: Recorded, how: How, report: Report, name: str = "") -> None:
        self._of = of
        self._how = how
        self._report = report
        self._name = name
        self._prompt: RecordedPrompt | None = None
        self._number = 0
        self._came: set[str] = set()
        self._parts: SessionParts | None = None

    def arranged(self, setup: SessionSetup) -> SessionSetup:
        """Provides a session with recorded answers instead of models, and recorded results unless tools are real."""
        self._places = places_of(setup.config, setup.config.working_dir)
        self._tape = Tape(self._of, self._places, self._heard, self._steer, self._how.pace)
        self._models = ServedModels(self._of, self._tape)
        self._results = RecordedResults(self._places, setup.tool_source, real=self._how.real)
        tools = tuple(self._tools(setup.tools))
        attended = self._of.head.get("attended") is True and not self._how.real
        return setup.replace(
            models=self._models,
            tools=tools,
            tool_source=self._results,
            asker=answer_nothing if attended else None,
            permit=let_all_run if attended else None,
            text_asker=None,
            commands=(),
            budget=None,
        )

    def _tools(self, installed: Sequence[ToolSpec]) -> Iterator[ToolSpec]:
        """The available tools, including those that ask, or that are not installed here."""
        calls = [call for prompt in self._of.prompts for call in prompt.calls.values()]
        called, starting = {call.name for call in calls}, {call.name for call in calls if call.starts_agent}
        never = starting | {call.name for call in calls if call.asks}
        for spec in installed:
            stands_in = spec.name in called and (spec.interactive or not self._how.real or spec.name in never)
            if works_on_session(spec) or not stands_in:
                yield spec
                continue
            never.add(spec.name)
            yield spec.replace(interactive=False, requires=())
        known = {spec.name for spec in installed}
        for name, described in _described(self._of).items():
            if name not in known:
                self._report.note(f"the tool {name} is not installed here, so its recorded results are used")
                never.add(name)
                yield described
        if starting and self._how.real:
            self._report.note("sub-agents do not work in a replay: the calls that start them have recorded results")
        self._results.never = frozenset(never)

    def attach(self, parts: SessionParts) -> None:
        """Attach to the session."""
        self._parts = parts
        parts.bus.subscribe(self._listen)

    async def play(self, session: Session) -> None:
        """Replay all prompts in order."""
        for number, prompt in enumerate(self._of.prompts, 1):
            self._number, self._prompt = number, prompt
            self._came.clear()
            self._report.prompts += 1
            self._tape.begin(number - 1)
            self._results.begin(prompt)
            self._as_recorded(session, prompt)
            await self._submitted(session, prompt)
            self._missing(prompt)
        if self._of.beside:
            self._report.note(f"requests of slash commands are not replayed ({len(self._of.beside)} recorded)")

    async def _submitted(self, session: Session, prompt: RecordedPrompt) -> None:
        text, images = self._places.put_back(prompt.text), tuple(_images(prompt))
        task = asyncio.ensure_future(session.submit(text, Attached(images=images)))
        self._tape.cancel = task.cancel
        own = asyncio.current_task()
        try:
            await task
        except asyncio.CancelledError:
            if own is not None and own.cancelling():
                task.cancel()
                raise

    def _as_recorded(self, session: Session, prompt: RecordedPrompt) -> None:
        """Restore the state of the session before this prompt, if a step that is not replayed produced it."""
        parts = session.parts
        session.switch_mode("coding" if prompt.mode == "coding" else "chat")
        if prompt.tools and prompt.tools != parts.toolbox.selection:
            try:
                parts.toolbox.choose(prompt.tools)
            except UsageError as error:
                self._report.note(f"the tools were others: {error}")
        for text in prompt.steered:
            self._steer(self._places.put_back(text))
        if prompt.commands:
            self._report.note(f"slash commands are not run again: {', '.join(f'/{name}' for name in prompt.commands)}")
        if not prompt.requests or not prompt.requests[0].value:
            return
        first = prompt.requests[0]
        level = first.value.get("thinking")
        if level in get_args(ThinkingLevel):
            parts.model.thinking = level or "off"
        if (first.provider, first.model) != (parts.model.provider_name, parts.model.model):
            parts.model.moved(self._models.at(first).provider)
        if self._number == 1 or prompt.commands:
            self._said_before(parts, prompt, first)

    def _said_before(self, parts: SessionParts, prompt: RecordedPrompt, first: RecordedRequest) -> None:
        """Begin with the messages of an earlier session, or with those that a command left."""
        place = prompt_place(first.value, prompt.text)
        if place is None:
            return
        try:
            before = [self._message(value) for value in first.value["messages"][:place]]
        except ValueError as error:
            self._report.differs("cassette", self._where(first), f"its messages cannot be read: {error}")
            return
        parts.conversation.load(before)

    def _message(self, value: Mapping[str, Any]) -> Message:
        return message_of(each_text(value, self._places.put_back))

    def _steer(self, text: str) -> None:
        if self._parts is not None:
            self._parts.inbox.send(text, "steered")

    def _where(self, asked: RecordedRequest | None = None) -> str:
        where = f"{self._name}prompt {self._number}"
        if asked is None or self._prompt is None:
            return where
        return f"{where}, request {self._prompt.requests.index(asked) + 1}"

    def _heard(self, request: Request, found: RecordedRequest | None) -> None:
        self._report.requests += 1
        assert self._prompt is not None
        if found is None or found.answer is None:
            if self._prompt.done is None:
                self._report.note(f"{self._where()} was not recorded to its end")
            elif not self._tape.was_cancelled:
                self._report.differs("request", self._where(), "a request came that was not recorded")
            return
        compare_requests(request, found, (self._places, self._report, self._where(found)), strict=self._how.strict)

    def _listen(self, event: Event) -> None:
        if isinstance(event, ToolExecutionStart):
            CALL.set(event.call_id)
        elif isinstance(event, ToolExecutionEnd):
            self._ran(event)
        elif isinstance(event, AgentEnd):
            self._ended(event)

    def _ran(self, event: ToolExecutionEnd) -> None:
        assert self._prompt is not None
        self._report.calls += 1
        self._came.add(event.call_id)
        where = f"{self._where()}, call of {event.name}"
        call = self._prompt.calls.get(event.call_id)
        if call is None:
            self._report.differs("call", where, "it came, and was not recorded")
            return
        if call.result is None:
            return
        if (call.result.get("is_error") is True) != event.is_error:
            self._report.differs("result", where, "it failed now" if event.is_error else "it does not fail any more")
        recorded = call.result.get("text")
        diff = diff_of(recorded, self._places.hide(event.text)) if isinstance(recorded, str) else ""
        if diff:
            self._report.differs("result", where, "its result is different", diff)

    def _ended(self, event: AgentEnd) -> None:
        done = self._prompt.done if self._prompt is not None else None
        if done is None:
            return
        if done.get("stop_reason") != event.stop_reason:
            told = f"it ended with {event.stop_reason}; recorded is {str(done.get('stop_reason'))[:20]}. {event.error}"
            self._report.differs("ending", self._where(), told.rstrip())

    def _missing(self, prompt: RecordedPrompt) -> None:
        left = [asked for asked in self._tape.left if asked.answer is not None]
        if left:
            self._report.differs("answer", self._where(), f"recorded answers that were not asked for: {len(left)}")
        for call in prompt.calls.values():
            if call.id not in self._came:
                self._report.differs("call", f"{self._where()}, call of {call.name}", "it did not come")


def _images(prompt: RecordedPrompt) -> Iterator[Image]:
    """The images attached to a prompt, from its first request."""
    if not prompt.requests or not prompt.requests[0].value:
        return
    place = prompt_place(prompt.requests[0].value, prompt.text)
    if place is None:
        return
    for block in prompt.requests[0].value["messages"][place].get("content", ()):
        if isinstance(block, Mapping) and block.get("type") == "image":
            kind, data = block.get("media_type"), block.get("data")
            if isinstance(kind, str) and isinstance(data, str):
                yield Image(media_type=kind, data=data)


def _described(of: Recorded) -> dict[str, ToolSpec]:
    """The tools that were called, as the requests describe them."""
    called = {call.name for prompt in of.prompts for call in prompt.calls.values()}
    found: dict[str, ToolSpec] = {}
    for asked in of.requests:
        for offered in asked.value.get("tools", ()) if isinstance(asked.value.get("tools"), list) else ():
            name = offered.get("name") if isinstance(offered, Mapping) else None
            if isinstance(name, str) and name in called and name not in found and is_tool_name(name):
                parameters = offered.get("parameters")
                found[name] = ToolSpec(
                    name=name,
                    description=str(offered.get("description", "")),
                    parameters=parameters if isinstance(parameters, dict) else {"type": "object"},
                    access=frozenset({"read"}),
                )
    return found
