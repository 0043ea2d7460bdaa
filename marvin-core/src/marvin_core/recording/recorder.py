"""Records a session: requests and answers, calls and their results, questions and their answers."""

from __future__ import annotations

import json
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ..api.events import AgentEnd, AgentStart, Event, MessageEnd, ToolExecutionEnd, ToolExecutionStart, TurnEnd
from ..api.messages import Image, block_to_dict
from ..api.providers import Delta, Provider, Request, Switched
from ..api.session import Command, SessionControl
from ..providers.wrapper import WrapperProvider
from .cassette import shared_start
from .form import Answered, digest, error_value, request_value
from .places import Places, each_text, places_of
from .writing import CassetteFile

if TYPE_CHECKING:
    from pathlib import Path

    from ..api.models import CostCeiling, ModelListener, ModelSource
    from ..api.permissions import Question, Reply
    from ..engine.parts import SessionParts, SessionSetup
    from ..engine.ports import Asker, Permitter

_LIKE = 2
"""The previous requests with which a request may share a prefix: a summary may come between two of a prompt."""
_IN_REQUEST = ("system", "tools", "waiting", "tool_choice", "thinking", "max_output_tokens", "output_schema")


class Recorder:
    """Writes the cassette of one session, without effect on the session.

    `warn` is called if the cassette cannot be written completely.
    """

    def __init__(self, path: Path, warn: Callable[[str], None], *, depth: int) -> None:
        self._file = CassetteFile(path, warn, joins=depth > 0)
        self._begun = time.monotonic()
        self._id = f"{os.getpid():x}-{os.urandom(3).hex()}" if depth else "main"
        self._parts: SessionParts | None = None
        self._places = Places({})
        self._roots: tuple[Path, ...] = ()
        self._number = 0
        self._before: list[tuple[int, Mapping[str, Any], list[str]]] = []

    def arranged(self, setup: SessionSetup) -> SessionSetup:
        """Wraps the parts of a session whose activity is recorded."""
        asker, text_asker, permit = setup.asker, setup.text_asker, setup.permit
        return setup.replace(
            models=RecordedModels(setup.models, self),
            asker=None if asker is None else partial(self._asked, "choice", asker),
            text_asker=None if text_asker is None else partial(self._asked, "text", text_asker),
            permit=None if permit is None else partial(self._permitted, permit),
            commands=[command.replace(run=partial(self._ran, command)) for command in setup.commands],
        )

    def attach(self, parts: SessionParts) -> None:
        """Begin with the state of the session before its first prompt."""
        config = parts.config
        self._parts, self._roots = parts, (parts.workspace.root,)
        self._places = places_of(config, *self._roots)
        self.add(
            "conversation",
            depth=config.depth,
            attended=parts.setup.asker is not None,
            tools=parts.toolbox.selection,
            tool_search=config.tool_search,
            permission_mode=config.permission_mode,
            read_only=config.read_only,
            thinking=parts.model.thinking,
            output_schema=json.loads(json.dumps(config.output_schema, default=dict)),
        )
        parts.bus.subscribe(self._listen)

    def clean(self, text: str) -> str:
        """A text for the cassette: without secrets, and with placeholders for the folders of this machine."""
        if self._parts is None:
            return self._places.hide(text)
        root = self._parts.workspace.root
        if root not in self._roots:  # a tool changed the working directory
            self._roots = (*self._roots, root)
            self._places = places_of(self._parts.config, *self._roots)
        return self._places.hide(self._parts.kept.text(text))

    def now(self) -> float:
        """Seconds since the recording began."""
        return round(time.monotonic() - self._begun, 3)

    def add(self, kind: str, /, **fields: Any) -> None:
        """Write a record."""
        at = self.now()
        self._file.add({"type": kind, "c": self._id, "at": at, **each_text(fields, self.clean)})

    def asked(self, provider: Provider, request: Request) -> int:
        """Write a request without the parts shared with an earlier one; returns its number."""
        self._number += 1
        value = each_text(request_value(request), self.clean)
        messages = [json.dumps(message) for message in value["messages"]]
        told: dict[str, Any] = {}
        kept = value
        if self._before:
            number, like, others = max(self._before, key=lambda one: shared_start(one[2], messages))
            same = shared_start(others, messages)
            told = {"like": number, "same": same}
            kept = {name: value[name] for name in _IN_REQUEST if value[name] != like[name]}
            kept["messages"] = value["messages"][same:]
        self._before = [*self._before[1 - _LIKE :], (self._number, value, messages)]
        head = {"window": provider.context_window, "max_tools": provider.max_tools, "digest": digest(value)}
        names = {"provider": provider.name, "model": provider.model}
        line = {"type": "request", "c": self._id, "at": self.now(), "n": self._number}
        self._file.add({**line, **each_text(names, self.clean), **head, **told, "request": kept})
        return self._number

    def answered(self, number: int, answer: Answered, ended: Mapping[str, Any]) -> None:
        """Write the answer to a request."""
        if self._parts is not None:
            answer.clean(self._parts.redactor.texts)
        self.add("answer", n=number, parts=answer.parts, **ended)

    def end(self) -> None:
        """End with the session."""
        self.add("end")
        self._file.close()

    def _listen(self, event: Event) -> None:
        if isinstance(event, AgentStart):
            self._prompted(event)
        elif isinstance(event, MessageEnd) and event.origin != "model":
            self.add("message", origin=event.origin, text=event.message.text)
        elif isinstance(event, ToolExecutionStart):
            self.add("call", id=event.call_id, name=event.name, arguments=event.arguments, origin=event.origin)
        elif isinstance(event, ToolExecutionEnd):
            self.add(
                "result",
                id=event.call_id,
                name=event.name,
                text=event.text,
                is_error=event.is_error,
                elapsed=round(event.elapsed, 3),
                **({"asked": event.asked} if event.asked else {}),
            )
        elif isinstance(event, TurnEnd):
            self._extras(event)
        elif isinstance(event, AgentEnd):
            self.add("done", stop_reason=event.stop_reason, text=event.text, error=event.error)

    def _prompted(self, event: AgentStart) -> None:
        assert self._parts is not None
        mode, tools = self._parts.workspace.mode, self._parts.toolbox.selection
        self.add("prompt", text=event.prompt, mode=mode, tools=tools)

    def _extras(self, event: TurnEnd) -> None:
        """The parts of outputs besides their text."""
        for output in event.outputs:
            images = [block_to_dict(block) for block in output.content if isinstance(block, Image)]
            if images or output.lasting or output.reveals:
                self.add("extras", id=output.call_id, images=images, lasting=output.lasting, reveals=output.reveals)

    async def _asked(self, kind: str, asker: Asker, question: str, choices: Sequence[str], /) -> str:
        answer = await asker(question, choices)
        self.add("question", kind=kind, question=question, choices=choices, answer=answer)
        return answer

    async def _permitted(self, permit: Permitter, question: Question, /) -> Sequence[Reply]:
        replies = await permit(question)
        calls = [{"id": call.call_id, "name": call.name, "text": call.text} for call in question.calls]
        answers = [reply.as_dict() for reply in replies]
        self.add("question", kind=question.kind, question=question.text, calls=calls, answer=answers)
        return replies

    async def _ran(self, command: Command, session: SessionControl, words: str) -> str | None:
        self.add("command", name=command.name, words=words)
        return await command.run(session, words)


class RecordedModels:
    """The models of a run, with recording of their answers."""

    def __init__(self, source: ModelSource, recorder: Recorder) -> None:
        self._source = source
        self._recorder = recorder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def resilient(
        self, provider: Provider, follower: ModelListener, *, restarts: bool, ceiling: CostCeiling | None
    ) -> Provider:
        """The provider of one prompt: retries and fallbacks are recorded too."""
        heard = _Follower(follower)
        made = self._source.resilient(provider, heard, restarts=restarts, ceiling=ceiling)
        return RecordedProvider(made, heard, self._recorder)

    async def aclose(self) -> None:
        """End with the session."""
        self._recorder.end()
        await self._source.aclose()


class _Follower:
    """Records which model continues, and how."""

    def __init__(self, follower: ModelListener) -> None:
        self._follower = follower
        self.last: Mapping[str, Any] = {}

    def moved(self, provider: Provider) -> None:
        self._hear("moved", provider)
        self._follower.moved(provider)

    def lent(self, provider: Provider) -> None:
        self._hear("lent", provider)
        self._follower.lent(provider)

    def _hear(self, how: str, provider: Provider) -> None:
        self.last = {
            "how": how,
            "provider": provider.name,
            "name": provider.model,
            "window": provider.context_window,
            "max_tools": provider.max_tools,
        }


class RecordedProvider(WrapperProvider):
    """Wraps a provider and is one; records its requests and answers."""

    def __init__(self, provider: Provider, heard: _Follower, recorder: Recorder) -> None:
        super().__init__(provider)
        self._heard = heard
        self._recorder = recorder

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """The answer; see `Provider.stream`."""
        recorder, answer = self._recorder, Answered()
        number = recorder.asked(self._provider, request)
        ended: Mapping[str, Any] = {"cancelled": True}
        try:
            async with aclosing(cast("AsyncGenerator[Delta, None]", self._provider.stream(request))) as deltas:
                async for delta in deltas:
                    if isinstance(delta, Switched):
                        answer.add({"kind": "switched", **delta.as_dict(), **self._heard.last, "at": recorder.now()})
                    else:
                        answer.take(delta, recorder.now())
                    yield delta
            ended = {}
        except Exception as error:
            ended = {"error": error_value(error)}
            raise
        finally:
            recorder.answered(number, answer, ended)
