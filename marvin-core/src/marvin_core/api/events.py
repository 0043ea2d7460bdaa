"""The closed union of events that every interface, hook and structured output consumes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, TypeAlias

from .messages import Message, Shown, StopReason, ToolOutput, Usage
from .record import Record


class AppStart(Record):
    """The program is up, and nothing was typed yet; sent once."""

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
    """An earlier session was loaded; `healed` counts the interrupted calls that were given an output."""

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
    """A prompt was taken up."""

    type: ClassVar[Literal["agent_start"]] = "agent_start"
    prompt: str


class TurnStart(Record):
    """One model request is about to be made; `round` counts from 1."""

    type: ClassVar[Literal["turn_start"]] = "turn_start"
    round: int


MessageOrigin: TypeAlias = Literal["model", "typed", "steered", "hook", "auto", "marvin"]
"""Where a message comes from: an answer of the model; a prompt; a line that was sent in the middle of an answer; a
hook; auto-continue and play mode; Marvin itself, as where an answer does not fit its schema."""


class MessageStart(Record):
    """The first part of an answer is here, or a message for the model."""

    type: ClassVar[Literal["message_start"]] = "message_start"
    role: Literal["user", "assistant"]
    origin: MessageOrigin = "model"


class MessageUpdate(Record):
    """A piece of an answer: text, thinking, or the arguments of the call that `call_id` and `name` say."""

    type: ClassVar[Literal["message_update"]] = "message_update"
    kind: Literal["text", "thinking", "tool_call"]
    delta: str
    call_id: str = ""
    name: str = ""


class MessageEnd(Record):
    """The answer is complete, or ended as its stop reason says. A message for the model stops with `stop`.

    What is `broken` was shown in part; where a `message_start` follows in the same turn, another try takes its place.
    """

    type: ClassVar[Literal["message_end"]] = "message_end"
    message: Message
    stop_reason: StopReason
    origin: MessageOrigin = "model"


CallOrigin: TypeAlias = Literal["model", "person", "typed", "router", "undo", "trial"]
"""Who made a call: the model, a person by hand, a person who typed the very command that runs, so that nothing is asked
before it, the routing of requests where there is no model, a person who takes another call back by it, or one who has
the services of a tool tried."""


class ToolExecutionStart(Record):
    """A call begins; `arguments` are the parsed ones where they could be parsed."""

    type: ClassVar[Literal["tool_execution_start"]] = "tool_execution_start"
    call_id: str
    name: str
    arguments: Mapping[str, Any]
    origin: CallOrigin = "model"


class ToolExecutionUpdate(Record):
    """A running tool tells how far it is: `done` of `total`, in whatever it counts; None where that is unknown."""

    type: ClassVar[Literal["tool_execution_update"]] = "tool_execution_update"
    call_id: str
    name: str
    text: str
    done: float | None = None
    total: float | None = None

    @property
    def fraction(self) -> float | None:
        """How much of it is done, from 0 to 1; None where that is unknown."""
        return None if self.done is None or not self.total else self.done / self.total


class ToolExecutionEnd(Record):
    """A call has its output; `elapsed` is in seconds.

    `show` is for people: tables, pictures and links. `details` is for interfaces that know what is in it (a diff).

    `origins` says where it comes from: web, repository, private, secret. `asked` is what a person said before the call
    ran, as an output has it.

    An `aside` among the details is the end of the output that says nothing to people, such as an exit code of 0.
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
    """Something a person should know: a retry, a fallback, a choice. `pack` is the one whose hook tells it, if any."""

    type: ClassVar[Literal["notice"]] = "notice"
    level: Literal["info", "warning", "error"]
    text: str
    pack: str = ""


class UsageReport(Record):
    """What one model request used; `cost` is in USD, and None where no price is known."""

    type: ClassVar[Literal["usage"]] = "usage"
    provider: str
    model: str
    usage: Usage
    cost: float | None


class ModelCycle(Record):
    """The model was changed in the middle of a prompt."""

    type: ClassVar[Literal["model_cycle"]] = "model_cycle"
    previous: str
    model: str
    reason: str


class TurnEnd(Record):
    """One model request and its calls are over; `outputs` are those of its calls, in their order."""

    type: ClassVar[Literal["turn_end"]] = "turn_end"
    round: int
    outputs: tuple[ToolOutput, ...] = ()


class AgentEnd(Record):
    """The prompt is done, or a sub-command that led the run in place of one; `text` is then what that has to say."""

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
