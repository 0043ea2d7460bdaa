"""Asks the user of an editor through the protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Literal, NoReturn, Protocol, TypeAlias

from acp import schema
from acp.exceptions import RequestError

from ..api.errors import MarvinError
from ..api.permissions import NO, AskedCall, PermissionAnswer, Question, Reply
from ..api.session import SessionControl
from ..util.text import cut, one_line
from .differences import differences
from .terminals import CallContent, shows_terminals
from .updates import (
    EventUpdates,
    Update,
    content_of,
    locations_of,
    quoted,
    text_block,
    title_of,
)

OptionKind: TypeAlias = Literal["allow_once", "allow_always", "reject_once", "reject_always"]
_REFUSE_ALIKE = "refuse-alike"
_NAME = 120
"""The maximum length of an option's name, in characters."""
_REFUSED = "They refused all calls like this one for the rest of the session. Do it another way."


class EditorClient(Protocol):
    """The requests to an editor."""

    async def request_permission(
        self, session_id: str, tool_call: schema.ToolCallUpdate, options: list[schema.PermissionOption], **kwargs: Any
    ) -> schema.RequestPermissionResponse: ...
    async def create_elicitation(self, message: str, mode: Any, **kwargs: Any) -> Any: ...
    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **kwargs: Any
    ) -> schema.ReadTextFileResponse: ...


class EditorPerson:
    """The interface of one session in an editor: `UI` and `PermissionUI`."""

    def __init__(self, client: EditorClient, root: Path, *, terminals: bool) -> None:
        self._client = client
        self._root = root
        self.terminals = terminals
        """Whether the editor shows the output of commands in terminals."""
        self._numbers = count(1)
        self._refused: set[tuple[str, str]] = set()
        self.session_id = ""
        """Set before the first question."""
        self.updates: EventUpdates | None = None
        """The known calls of the session, with their IDs."""
        self.tell: Callable[[Update], None] = lambda update: None
        """Sends the editor an update of the session."""

    def run(self, session: SessionControl, prompt: str | None) -> NoReturn:
        """Raise `MarvinError`: an editor shows its sessions itself."""
        raise MarvinError("This interface is an editor's, which shows its sessions by itself.")

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """Ask with fixed choices. Without an answer, return the last one."""
        options = [
            _option(
                str(number), choice, "reject_once" if len(choices) > 1 and number == len(choices) - 1 else "allow_once"
            )
            for number, choice in enumerate(choices)
        ]
        picked = await self._picked(self._question(question), options)
        return choices[int(picked)] if picked is not None else choices[-1]

    async def permit(self, question: Question) -> Sequence[Reply]:
        """Ask about each call separately, or about trust in a folder."""
        if question.kind == "trust":
            options = [_option("once", "Trust it", "allow_once"), _option("no", "Do not", "reject_once")]
            text = "\n".join(question.details)
            picked = await self._picked(self._question(question.text, text), options)
            return [Reply(says="once") if picked == "once" else NO]
        return [await self._permit(call) for call in question.calls]

    async def _permit(self, call: AskedCall) -> Reply:
        alike = (call.name, call.remember or call.text)
        if alike in self._refused:
            return Reply(says="no", text=_REFUSED)
        picked = await self._picked(self._asked(call), _options(call))
        if picked == _REFUSE_ALIKE:
            self._refused.add(alike)
            return Reply(says="no", text=_REFUSED)
        says: PermissionAnswer | None = next((answer for answer in call.answers if answer == picked), None)
        return Reply(says=says) if says is not None else NO

    def _asked(self, call: AskedCall) -> schema.ToolCallUpdate:
        """A call with its details: the changes of its files, or the whole command."""
        changes = differences(call.diff, self._root)
        content: list[CallContent] = list(content_of(changes))
        if not changes:
            content.append(quoted(call.text, most=len(call.text)))
            if call.diff:
                content.append(quoted(call.diff, most=len(call.diff)))
        said = [f"DANGER: this {call.alarm}."] if call.alarm else []
        said += [*call.findings, f"Asked because {call.reason}."]
        content.append(schema.ContentToolCallContent(type="content", content=text_block("\n".join(said))))
        title = call.command or f"{call.name}: {', '.join(call.paths)}" if call.paths or call.command else ""
        assert self.updates is not None
        calls = self.updates.calls
        asked = schema.ToolCallUpdate(
            tool_call_id=calls.of(call.call_id),
            title=cut(one_line(title or title_of(call.name, {"": call.text}, None)), 2 * _NAME),
            kind="edit" if changes else "execute" if call.command else "other",
            status="pending",
            content=content,
            locations=locations_of(changes) or None,
        )
        if asked.tool_call_id not in calls.known:  # one question may cover several calls before they begin
            calls.known.add(asked.tool_call_id)
            self.tell(self.updates.announced(asked))
        return asked

    def _question(self, title: str, text: str = "") -> schema.ToolCallUpdate:
        shown = [quoted(text, most=len(text))] if text else []
        return schema.ToolCallUpdate(
            tool_call_id=f"question-{next(self._numbers)}",
            title=title,
            kind="other",
            status="pending",
            content=[*shown] or None,
        )

    async def _picked(self, call: schema.ToolCallUpdate, options: list[schema.PermissionOption]) -> str | None:
        """The ID of the chosen option; None without an answer, or if the editor does not support questions."""
        try:
            reply = await self._client.request_permission(self.session_id, call, options)
        except (RequestError, ConnectionError, ValueError):
            return None
        outcome = reply.outcome
        if not isinstance(outcome, schema.AllowedOutcome):
            return None
        return outcome.option_id if any(one.option_id == outcome.option_id for one in options) else None


class EditorPersonWithForms(EditorPerson):
    """The interface for an editor that supports free text. It also implements `AsksText`."""

    async def ask_text(self, question: str, choices: Sequence[str]) -> str:
        """Ask for free text; empty without an answer."""
        hint = f"{question}\n{'; '.join(choices)}" if choices else question
        answer = schema.ElicitationStringPropertySchema(type="string", title="Answer")
        form = schema.ElicitationSchema(type="object", properties={"answer": answer}, required=["answer"])
        mode = schema.ElicitationFormSessionMode(session_id=self.session_id, requested_schema=form)
        try:
            reply = await self._client.create_elicitation(hint, mode)
        except (RequestError, ConnectionError, ValueError):
            return ""
        given = reply.content if isinstance(reply, schema.AcceptElicitationResponse) else None
        value = (given or {}).get("answer")
        return value.strip() if isinstance(value, str) else ""


def person_for(client: EditorClient, root: Path, capabilities: schema.ClientCapabilities | None) -> EditorPerson:
    """The interface for an editor with these capabilities."""
    forms = capabilities.elicitation if capabilities is not None else None
    kind = EditorPersonWithForms if forms is not None and forms.form is not None else EditorPerson
    return kind(client, root, terminals=shows_terminals(capabilities))


def _options(call: AskedCall) -> list[schema.PermissionOption]:
    options = []
    for answer in call.answers:
        if answer == "once":
            options.append(_option("once", "Allow", "allow_once"))
        elif answer == "session":
            options.append(_option("session", "Allow all like it in this session", "allow_always"))
        elif answer == "always":
            options.append(_option("always", f"Always allow {call.remember}", "allow_always"))
    return [
        *options,
        _option("no", "Reject", "reject_once"),
        _option(_REFUSE_ALIKE, "Reject all like it in this session", "reject_always"),
    ]


def _option(identity: str, name: str, kind: OptionKind) -> schema.PermissionOption:
    return schema.PermissionOption(option_id=identity, name=cut(one_line(name), _NAME), kind=kind)
