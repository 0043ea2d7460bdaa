"""Converts events of a session to updates for an editor: chunks of answers, calls, results, the plan."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from acp import schema

from ..api.events import (
    Event,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    Notice,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from ..api.tools import ToolSpec
from ..util.text import cut, one_line
from .differences import Difference, differences
from .terminals import CallContent, Meta, Terminals

Update: TypeAlias = (
    schema.UserMessageChunk
    | schema.AgentMessageChunk
    | schema.AgentThoughtChunk
    | schema.ToolCallStart
    | schema.ToolCallProgress
    | schema.AgentPlanUpdate
    | schema.AvailableCommandsUpdate
    | schema.CurrentModeUpdate
    | schema.ConfigOptionUpdate
    | schema.SessionInfoUpdate
    | schema.UsageUpdate
)
Kind: TypeAlias = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]

_TITLE = 200
"""The maximum length of a title, in characters."""
_OUTPUT = 20_000
"""The maximum length of a shown result, in characters; the model gets all of it."""
_PROGRESS = 4_000
_PLACES = ("path", "paths", "file", "files", "folder", "to")
"""Parameters that name the object of a call."""
_VERBS: tuple[tuple[str, Kind], ...] = (
    (r"delete|remove", "delete"),
    (r"move|rename", "move"),
    (r"search|find|grep|glob|list", "search"),
)
"""Words in tool names that describe a call more precisely than its access does."""


def text_chunk(text: str) -> schema.AgentMessageChunk:
    """A piece of the answer."""
    return schema.AgentMessageChunk(session_update="agent_message_chunk", content=text_block(text))


def thought_chunk(text: str) -> schema.AgentThoughtChunk:
    """A piece of the reasoning."""
    return schema.AgentThoughtChunk(session_update="agent_thought_chunk", content=text_block(text))


def text_block(text: str) -> schema.TextContentBlock:
    """A text as a content block."""
    return schema.TextContentBlock(type="text", text=text)


def kind_of(spec: ToolSpec | None) -> Kind:
    """The kind of a tool's calls, from its declarations."""
    if spec is None:
        return "other"
    if "exec" in spec.access:
        return "execute"
    by_name = next((kind for words, kind in _VERBS if re.search(rf"(?:^|_)(?:{words})", spec.name)), None)
    if "write" in spec.access:
        return by_name if by_name in ("delete", "move") else "edit"
    if "net" in spec.access:
        return "fetch"
    if "read" in spec.access:
        return "search" if by_name == "search" else "read"
    return "think" if "state" in spec.access else "other"


def title_of(name: str, arguments: Mapping[str, Any], spec: ToolSpec | None) -> str:
    """A call in one line: its command, else the tool and its object."""
    command = arguments.get(spec.command) if spec is not None and "exec" in spec.access else None
    if isinstance(command, str) and command.strip():
        return cut(one_line(command), _TITLE)
    values = [arguments[place] for place in _PLACES if isinstance(arguments.get(place), str)]
    values = values or [value for value in arguments.values() if isinstance(value, str)]
    return cut(one_line(f"{name}: {values[0]}" if values else name), _TITLE)


def quoted(text: str, most: int = _OUTPUT) -> schema.ContentToolCallContent:
    """A result as a code block, since editors render text as Markdown."""
    shown = text if len(text) <= most else f"{text[:most]}\n… {len(text) - most:,} characters more"
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return schema.ContentToolCallContent(type="content", content=text_block(f"{fence}\n{shown.rstrip()}\n{fence}"))


def content_of(found: Sequence[Difference]) -> list[CallContent]:
    """Diffs for the editor."""
    return [
        schema.FileEditToolCallContent(type="diff", path=one.path, old_text=one.old, new_text=one.new) for one in found
    ]


def locations_of(found: Sequence[Difference]) -> list[schema.ToolCallLocation]:
    """The locations of changes."""
    return [schema.ToolCallLocation(path=one.path, line=one.line) for one in found]


class CallNames:
    """The IDs of calls for an editor: unique, even if a service uses an ID twice."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._ended: set[str] = set()
        self.known: set[str] = set()
        """The IDs that the editor knows."""

    def of(self, call_id: str) -> str:
        """The ID of a call that runs, or is about to."""
        name = self._names.setdefault(call_id, call_id)
        number = 2
        while name in self._ended:
            name, number = f"{call_id}#{number}", number + 1
        self._names[call_id] = name
        return name

    def ended(self, call_id: str) -> str:
        """The ID of a call that has now ended."""
        name = self.of(call_id)
        self._ended.add(name)
        return name


class EventUpdates:
    """Converts events to updates.

    Args:
        root: the working directory.
        spec: returns the tool with a name.
        terminals: whether the editor shows the output of commands in terminals.
    """

    def __init__(
        self, root: Callable[[], Path], spec: Callable[[str], ToolSpec | None], *, terminals: bool = False
    ) -> None:
        self._root = root
        self._spec = spec
        self.calls = CallNames()
        self._terminals = Terminals(on=terminals)
        self._progress: dict[str, str] = {}
        self._said = self._broken = False

    def of(self, event: Event) -> list[Update]:
        """The updates for an event."""
        if isinstance(event, MessageUpdate):
            return self._message(event)
        if isinstance(event, MessageStart):
            return self._begun(event)
        if isinstance(event, MessageEnd):
            self._broken = event.stop_reason == "broken" and event.origin == "model"
            return []
        if isinstance(event, ToolExecutionStart):
            return self._start(event)
        if isinstance(event, ToolExecutionUpdate):
            return self._under_way(event)
        if isinstance(event, ToolExecutionEnd):
            return self._end(event)
        return [note(event)] if isinstance(event, Notice) else []

    def _message(self, event: MessageUpdate) -> list[Update]:
        if event.kind == "text":
            self._said = True
            return [text_chunk(event.delta)]
        return [thought_chunk(event.delta)] if event.kind == "thinking" else []

    def _begun(self, event: MessageStart) -> list[Update]:
        if event.role != "assistant":
            return []
        said, broken = self._said, self._broken
        self._said = self._broken = False
        if said and broken:
            return [text_chunk("\n\n[The answer broke off. It begins again:]\n\n")]
        return [text_chunk("\n\n")] if said else []

    def _start(self, event: ToolExecutionStart) -> list[Update]:
        self._said = False
        name, spec = self.calls.of(event.call_id), self._spec(event.name)
        given = dict(event.arguments)
        if name in self.calls.known:  # approval was requested before it began
            return [self._progressed(name, self._terminals.content(name))]
        self.calls.known.add(name)
        is_command = spec is not None and bool(spec.command) and isinstance(given.get(spec.command), str)
        meta = self._terminals.open(name, self._root()) if is_command else None
        return [
            schema.ToolCallStart(
                session_update="tool_call",
                tool_call_id=name,
                title=title_of(event.name, given, spec),
                kind=kind_of(spec),
                status="in_progress",
                content=self._terminals.content(name),
                locations=self._named(given),
                raw_input=given,
                field_meta=meta,
            )
        ]

    def announced(self, call: schema.ToolCallUpdate) -> Update:
        """The first update about a call for which approval is requested before it begins."""
        name = call.tool_call_id
        meta = self._terminals.open(name, self._root()) if call.kind == "execute" else None
        return schema.ToolCallStart(
            session_update="tool_call",
            tool_call_id=name,
            title=call.title or "",
            kind=call.kind,
            content=self._terminals.content(name),
            field_meta=meta,
        )

    def _named(self, arguments: Mapping[str, Any]) -> list[schema.ToolCallLocation]:
        """The files in the arguments of a call."""
        found = []
        for place in ("path", "file"):
            value = arguments.get(place)
            if isinstance(value, str) and value and "\0" not in value:
                found.append(schema.ToolCallLocation(path=str(self._root() / value)))
        return found

    def _under_way(self, event: ToolExecutionUpdate) -> list[Update]:
        name = self.calls.of(event.call_id)
        if (terminal := self._terminals.content(name)) is not None:
            return [self._progressed(name, terminal, self._terminals.add(name, event.text))]
        whole = "\n".join(filter(None, [self._progress.get(name, ""), event.text]))[-_PROGRESS:]
        self._progress[name] = whole
        return [self._progressed(name, [quoted(whole)])]

    def _progressed(self, name: str, content: list[CallContent] | None = None, meta: Meta | None = None) -> Update:
        return schema.ToolCallProgress(
            session_update="tool_call_update",
            tool_call_id=name,
            status="in_progress",
            content=content,
            field_meta=meta,
        )

    def _end(self, event: ToolExecutionEnd) -> list[Update]:
        name = self.calls.ended(event.call_id)
        self._progress.pop(name, None)
        details = event.details or {}
        diff = details.get("diff")
        found = differences(diff, self._root()) if isinstance(diff, str) and not event.is_error else []
        content = content_of(found)
        if not content and event.text.strip():
            content = [quoted(event.text)]
        before: list[Update] = []
        meta: Meta | None = None
        if (terminal := self._terminals.content(name)) is not None:
            more, meta, has_run = self._terminals.end(name, event.text, details)
            content = terminal if has_run else content
            before = [self._progressed(name, terminal, more)] if more is not None else []
        update = schema.ToolCallProgress(
            session_update="tool_call_update",
            tool_call_id=name,
            status="failed" if event.is_error else "completed",
            content=content,
            locations=locations_of(found) or None,
            raw_output={"text": cut(event.text, _OUTPUT)},
            field_meta=meta,
        )
        plan = None if event.is_error else _plan(details)
        return [*before, update] if plan is None else [*before, update, plan]


def _plan(details: Mapping[str, Any]) -> schema.AgentPlanUpdate | None:
    """The plan of a call: its steps, completed ones first; None if it has none."""
    steps, done = details.get("steps"), details.get("done")
    if not isinstance(steps, (list, tuple)) or not isinstance(done, int) or not all(isinstance(s, str) for s in steps):
        return None
    entries = [
        schema.PlanEntry(
            content=step,
            priority="medium",
            status="completed" if number < done else "in_progress" if number == done else "pending",
        )
        for number, step in enumerate(steps)
    ]
    return schema.AgentPlanUpdate(session_update="plan", entries=entries)


def note(event: Notice) -> Update:
    """A notice as an update: a warning as part of the answer, information as a thought."""
    if event.level == "info":
        return thought_chunk(f"\n{event.text}\n")
    return text_chunk(f"\n\n> {one_line(event.text)}\n\n")
