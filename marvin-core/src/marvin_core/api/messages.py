"""Messages and their blocks, which make up a conversation, and their JSON form in session files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeAlias

from .record import Record

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
StopReason: TypeAlias = Literal["stop", "tool_calls", "length", "refused", "cancelled", "broken"]


class Usage(Record):
    """Token counts of one model request, as the provider reports them.

    `input_tokens` includes cached ones; `output_tokens` includes reasoning. `cost` is in USD and set only if the
    provider itself reports it. `estimate` is in USD, too: it is set if the service bills in other units, so that any
    cost is an estimate.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float | None = None
    estimate: float | None = None


class ModelUsage(Record):
    """The usage of one or more models. `cost` is in USD and None if unknown.

    `estimated` says that the service bills in other units, so that the cost is an estimate.
    """

    requests: int = 0
    cost: float | None = 0.0
    estimated: bool = False


class UsageSummary(Record):
    """A summary of usage. `cost` is in USD and None if unknown; `providers` has the models of each provider.

    `tokens` has the field names of `Usage` as keys. `lifetime` has the models of all sessions, if asked for; those
    counted by their name alone have no provider. `ceiling` is the cost ceiling in USD and None without one;
    `left` is what this and all other agents have left of it.
    """

    tokens: Mapping[str, int]
    cost: float | None
    providers: Mapping[str, Mapping[str, ModelUsage]]
    tool_calls: Mapping[str, int]
    lifetime: Mapping[str, Mapping[str, ModelUsage]] | None = None
    ceiling: float | None = None
    left: float | None = None


class ProviderData(Record):
    """Opaque data of one provider (a signature, encrypted reasoning), sent back to that provider only."""

    provider: str
    data: Mapping[str, Any]


class Text(Record):
    """Visible text."""

    text: str
    provider_data: ProviderData | None = None


class Image(Record):
    """An image: its media type, as in `image/png`, and its bytes in base64."""

    media_type: str
    data: str


class Thinking(Record):
    """Reasoning that the model showed; never part of its answer."""

    text: str
    provider_data: ProviderData | None = None


class ToolCall(Record):
    """A tool call that the model requests.

    `arguments` is the text exactly as received. `complete` is false if the answer was cut off inside it; such a call
    is never run.
    """

    id: str
    name: str
    arguments: str
    complete: bool = True
    provider_data: ProviderData | None = None


Cell: TypeAlias = str | int | float | bool | None
"""The value of a table cell; None is an empty cell."""


class Table(Record):
    """A table for people: rows and column names. `omitted` counts the rows left out at the end."""

    type: ClassVar[Literal["table"]] = "table"
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    omitted: int = 0


class Picture(Record):
    """An image file for people; images for the model are `Image`.

    `path` is absolute, or relative to the working directory. `alt` describes the image. `size` is in bytes, None if
    unknown; Marvin looks it up.
    """

    type: ClassVar[Literal["picture"]] = "picture"
    path: str
    alt: str = ""
    media_type: str = ""
    size: int | None = None


class Link(Record):
    """A link for people: an address and its text."""

    type: ClassVar[Literal["link"]] = "link"
    url: str
    text: str = ""


Shown: TypeAlias = Table | Picture | Link
"""What a tool shows people, beside its result. Interfaces draw it, or show it as text."""


class Call(Record):
    """A tool call by name, as data: an undo, an example, a phrase."""

    name: str
    arguments: Mapping[str, Any]


class ToolOutput(Record):
    """The result of a call. `show` is for people; `undo` is the call that undoes this one.

    `lasting` is put into the summary when the call itself is removed from the conversation; it has no effect before.
    `reveals` are the names of deferred tools that requests include from now on. `origins` says where the result comes
    from: web, repository, private, secret. `asked` is what a person answered before the call ran: once, session,
    always, edit or no; empty if nobody was asked. `is_final` marks an error that no other try can avoid.
    """

    call_id: str
    name: str
    content: tuple[Text | Image, ...]
    is_error: bool = False
    show: tuple[Shown, ...] = ()
    undo: Call | None = None
    lasting: str = ""
    reveals: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    asked: str = ""
    is_final: bool = False

    @property
    def text(self) -> str:
        """The text blocks of the result, joined."""
        return "".join(block.text for block in self.content if isinstance(block, Text))

    @property
    def for_people(self) -> tuple[Shown, ...]:
        """Everything shown to people beside the text, including the images for the model."""
        images = (block for block in self.content if isinstance(block, Image))
        return (
            *self.show,
            *(Picture(path="", media_type=image.media_type, size=len(image.data) * 3 // 4) for image in images),
        )


Block: TypeAlias = Text | Image | Thinking | ToolCall | ToolOutput


class Message(Record):
    """One message. `provider`, `model`, `usage` and `stop_reason` are set on answers of a model.

    `is_summary` says that it replaces messages that were removed from the conversation.
    """

    role: Role
    content: tuple[Block, ...]
    provider: str = ""
    model: str = ""
    usage: Usage | None = None
    stop_reason: StopReason | None = None
    is_summary: bool = False

    @property
    def text(self) -> str:
        """The visible text of the message, joined."""
        return "".join(block.text for block in self.content if isinstance(block, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls that the message asks for, in order."""
        return tuple(block for block in self.content if isinstance(block, ToolCall))

    @property
    def outputs(self) -> tuple[ToolOutput, ...]:
        """The tool results in the message, in order."""
        return tuple(block for block in self.content if isinstance(block, ToolOutput))


def user(text: str, *images: Image) -> Message:
    """A message of the user."""
    return Message(role="user", content=(Text(text=text), *images))


def system(text: str) -> Message:
    """A system message."""
    return Message(role="system", content=(Text(text=text),))


def tool(outputs: Sequence[ToolOutput]) -> Message:
    """The message with the results of one round of calls."""
    return Message(role="tool", content=tuple(outputs))


_BLOCK_KINDS: dict[str, type[Record]] = {
    "text": Text,
    "image": Image,
    "thinking": Thinking,
    "tool_call": ToolCall,
    "tool_output": ToolOutput,
}
_SHOWN_KINDS: dict[str, type[Record]] = {kind.type: kind for kind in (Table, Picture, Link)}
_TEXTS = frozenset(("text", "media_type", "data", "id", "call_id", "name", "arguments"))
_KIND_OF = {kind: name for name, kind in _BLOCK_KINDS.items()}


def to_dict(message: Message) -> dict[str, Any]:
    """The message as plain JSON data; fields at their default are left out."""
    data = _fields(message)
    data["content"] = [block_to_dict(block) for block in message.content]
    if message.usage is not None:
        data["usage"] = _fields(message.usage)
    return data


def from_dict(data: Mapping[str, Any]) -> Message:
    """The message from data of `to_dict`.

    Raises:
        ValueError: the data is not such a message; the text says what is wrong.
    """
    try:
        values = dict(data)
        values["content"] = tuple(_block_from_dict(block) for block in values["content"])
        if values.get("usage") is not None:
            values["usage"] = Usage(**values["usage"])
        if values["role"] not in ("system", "user", "assistant", "tool"):
            raise ValueError(f"unknown role {values['role']!r:.100}")
        return Message(**values)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a message: {error}") from error


def _fields(record: Record) -> dict[str, Any]:
    values = vars(record)
    return {name: values[name] for name, default in record._defaults.items() if values[name] is not default}


def block_to_dict(block: Block) -> dict[str, Any]:
    """A block as plain JSON data; fields at their default are left out."""
    data: dict[str, Any] = {"type": _KIND_OF[type(block)], **_fields(block)}
    if isinstance(block, ToolOutput):
        data["content"] = [block_to_dict(part) for part in block.content]
        if block.show:
            data["show"] = [{"type": item.type, **_fields(item)} for item in block.show]
        if block.undo is not None:
            data["undo"] = block.undo.as_dict()
    elif not isinstance(block, Image) and block.provider_data is not None:
        data["provider_data"] = block.provider_data.as_dict()
    return data


def _block_from_dict(data: Mapping[str, Any]) -> Any:
    values = dict(data)
    kind = _BLOCK_KINDS.get(values.pop("type"))
    if kind is None:
        raise ValueError(f"unknown block type {data['type']!r}")
    if kind is ToolOutput:
        values["content"] = tuple(_block_from_dict(part) for part in values["content"])
        if not all(isinstance(part, (Text, Image)) for part in values["content"]):
            raise ValueError("a tool output may contain only text and images")
        _read_extras(values)
    if values.get("provider_data") is not None:
        given = values["provider_data"]
        if not isinstance(given["provider"], str) or not isinstance(given["data"], Mapping):
            raise ValueError(f"provider_data of a {data['type']} block is not valid")
        values["provider_data"] = ProviderData(**given)
    for name, value in values.items():
        if name in _TEXTS and not isinstance(value, str):
            raise ValueError(f"{name} of a {data['type']} block is {value!r:.100}, not text")
    return kind(**values)


def _read_extras(values: dict[str, Any]) -> None:
    """The optional fields of a result; invalid ones are left out, as no model needs them."""
    shown = values.pop("show", None)
    values["show"] = tuple(filter(None, map(_shown_from_dict, shown))) if isinstance(shown, list) else ()
    undo = values.pop("undo", None)
    if isinstance(undo, Mapping) and isinstance(undo.get("name"), str) and isinstance(undo.get("arguments"), Mapping):
        values["undo"] = Call(name=undo["name"], arguments=undo["arguments"])
    if not isinstance(values.get("lasting", ""), str):
        del values["lasting"]
    if not isinstance(values.get("asked", ""), str):
        del values["asked"]
    values.pop("is_final", None)  # only of interest to the caller
    for name in ("reveals", "origins"):
        found = values.pop(name, None)
        if isinstance(found, list):
            values[name] = tuple(one for one in found if isinstance(one, str))


def _shown_from_dict(data: Any) -> Any:
    kind = _SHOWN_KINDS.get(str(data.get("type"))) if isinstance(data, Mapping) else None
    if kind is None:
        return None
    try:
        item = kind(**{name: value for name, value in data.items() if name != "type"})
    except TypeError:
        return None
    return item if _is_sound(item) else None


def _is_sound(item: Record) -> bool:
    """Whether the values read from a file have the expected types."""
    fields = item.as_dict()
    if isinstance(item, Table):
        columns, rows = fields["columns"], fields["rows"]
        if not isinstance(columns, list) or not isinstance(rows, list) or not isinstance(fields["omitted"], int):
            return False
        return all(isinstance(name, str) for name in (*columns, fields["title"])) and all(map(_is_row, rows))
    size = fields.pop("size", None)
    return (size is None or isinstance(size, int)) and all(isinstance(value, str) for value in fields.values())


def _is_row(row: Any) -> bool:
    return isinstance(row, list) and all(cell is None or isinstance(cell, (str, int, float)) for cell in row)


IMAGE_TOKENS = 1_500
