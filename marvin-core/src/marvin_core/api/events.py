"""The closed union of events for interfaces, hooks and structured output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, TypeAlias

from .messages import Message, Shown, StopReason, ToolOutput, Usage
from .record import Record


class AppStart(Record):
    """The program has started and nothing was typed yet; sent once."""

    type: ClassVar[Literal["app_start"]] = "app_start"
    version: str


class SessionStart(Record):
    """A new session began."""

    type: ClassVar[Literal["session_start"]] = "session_start"
    session_id: str
    provider: str
    model: str
    working_dir: str


class SessionResume(Record):
    """An earlier session was loaded; `healed` counts the interrupted calls that were given a result."""

    type: ClassVar[Literal["session_resume"]] = "session_resume"
    session_id: str
    provider: str
    model: str
    messages: int
    healed: int


class SessionClear(Record):
    """The conversation was cleared."""

    type: ClassVar[Literal["session_clear"]] = "session_clear"
    session_id: str


class AgentStart(Record):
    """A prompt begins."""

    type: ClassVar[Literal["agent_start"]] = "agent_start"
    prompt: str


class TurnStart(Record):
    """A model request is about to be sent; `round` counts from 1."""

    type: ClassVar[Literal["turn_start"]] = "turn_start"
    round: int


MessageOrigin: TypeAlias = Literal["model", "typed", "steered", "hook", "auto", "marvin"]
"""The origin of a message: an answer of the model; a prompt; a line sent while an answer runs; a hook; auto-continue or
play mode; Marvin itself, for example if an answer does not fit its schema."""


class MessageStart(Record):
    """The first part of an answer, or a message for the model."""

    type: ClassVar[Literal["message_start"]] = "message_start"
    role: Literal["user", "assistant"]
    origin: MessageOrigin = "model"


class MessageUpdate(Record):
    """A piece of an answer: text, thinking, or arguments of the call in `call_id` and `name`."""

    type: ClassVar[Literal["message_update"]] = "message_update"
    kind: Literal["text", "thinking", "tool_call"]
    delta: str
    call_id: str = ""
    name: str = ""


class MessageEnd(Record):
    """The answer is complete, or ended for its stop reason. A message for the model has the stop reason `stop`.

    A `broken` answer was shown in part; if a `message_start` follows in the same turn, another try replaces it.
    """

    type: ClassVar[Literal["message_end"]] = "message_end"
    message: Message
    stop_reason: StopReason
    origin: MessageOrigin = "model"


CallOrigin: TypeAlias = Literal["model", "person", "typed", "router", "undo", "trial"]
"""Who made a call: the model; a person by hand; a person who typed the exact command, which therefore needs no
approval; the routing of requests without a model; a person who undoes another call; or a test of a tool's
services."""


class ToolExecutionStart(Record):
    """A call begins; `arguments` are the parsed ones where they could be parsed."""

    type: ClassVar[Literal["tool_execution_start"]] = "tool_execution_start"
    call_id: str
    name: str
    arguments: Mapping[str, Any]
    origin: CallOrigin = "model"


class ToolExecutionUpdate(Record):
    """Progress of a running tool: `done` of `total`, in any unit; None if unknown."""

    type: ClassVar[Literal["tool_execution_update"]] = "tool_execution_update"
    call_id: str
    name: str
    text: str
    done: float | None = None
    total: float | None = None

    @property
    def fraction(self) -> float | None:
        """The completed fraction, from 0 to 1; None if unknown."""
        return None if self.done is None or not self.total else self.done / self.total


class ToolExecutionEnd(Record):
    """A call has its result; `elapsed` is in seconds.

    `show` is for people: tables, pictures and links. `details` is data for interfaces that support it (a diff).

    `origins` says where the result comes from: web, repository, private, secret. `asked` is what a person answered
    before the call ran, as in the result.

    `aside` among the details is the end of the text that means nothing to people, such as an exit code of 0.
    """

    type: ClassVar[Literal["tool_execution_end"]] = "tool_execution_end"
    call_id: str
    name: str
    text: str
    is_error: bool
    elapsed: float
    details: Mapping[str, Any] | None = None
    origin: CallOrigin = "model"
    show: tuple[Shown, ...] = ()
    origins: tuple[str, ...] = ()
    asked: str = ""


class Notice(Record):
    """A notice for people: a retry, a fallback, a choice. `pack` is the one whose hook sends it, if any."""

    type: ClassVar[Literal["notice"]] = "notice"
    level: Literal["info", "warning", "error"]
    text: str
    pack: str = ""


class UsageReport(Record):
    """The usage of one model request; `cost` is in USD, and None if no price is known."""

    type: ClassVar[Literal["usage"]] = "usage"
    provider: str
    model: str
    usage: Usage
    cost: float | None


class ModelCycle(Record):
    """The model was changed during a prompt."""

    type: ClassVar[Literal["model_cycle"]] = "model_cycle"
    previous: str
    model: str
    reason: str


class TurnEnd(Record):
    """A model request and its calls are complete; `outputs` are the results of its calls, in their order."""

    type: ClassVar[Literal["turn_end"]] = "turn_end"
    round: int
    outputs: tuple[ToolOutput, ...] = ()


class AgentEnd(Record):
    """The prompt is complete, or a sub-command that ran instead of one; `text` is then its result."""

    type: ClassVar[Literal["agent_end"]] = "agent_end"
    stop_reason: Literal["done", "cancelled", "error", "rounds", "budget"]
    text: str
    error: str = ""


Event: TypeAlias = (
    AppStart
    | SessionStart
    | SessionResume
    | SessionClear
    | AgentStart
    | TurnStart
    | MessageStart
    | MessageUpdate
    | MessageEnd
    | ToolExecutionStart
    | ToolExecutionUpdate
    | ToolExecutionEnd
    | Notice
    | UsageReport
    | ModelCycle
    | TurnEnd
    | AgentEnd
)

Unsubscribe: TypeAlias = Callable[[], None]
