"""Requests in the chat completions format, joined from JSON that was encoded once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from ..messages import Image, Message, Text, ToolCall, ToolOutput
from ..tools import ToolSpec
from .base import Request

T = TypeVar("T")


class _Encoded(Generic[T]):
    """Keeps the encoded form of immutable values for as long as they are part of the next request.

    Keyed by identity, as comparing a long conversation would cost what encoding it does; the value
    is kept beside its bytes, so that no other can take its id.
    """

    def __init__(self, encode: Callable[[T], bytes]) -> None:
        self._encode = encode
        self._known: dict[int, tuple[T, bytes]] = {}

    def forms(self, values: Iterable[T]) -> list[bytes]:
        """The encoded forms in order, without the empty ones."""
        known, self._known = self._known, {}
        forms = []
        for value in values:
            entry = known.get(id(value)) or (value, self._encode(value))
            self._known[id(value)] = entry
            if entry[1]:
                forms.append(entry[1])
        return forms


class ChatWire:
    """Writes the requests of one provider and model."""

    def __init__(self, provider: str, model: str, max_tools: int | None) -> None:
        self._provider = provider
        self._model = _dump(model) if model else b""
        self._max_tools = max_tools
        self._messages = _Encoded(self._message)
        self._specs = _Encoded(_tool)
        self._offered: tuple[ToolSpec, ...] = ()
        self._tools = b""

    def body(self, request: Request, *, ask_usage: bool) -> bytes:
        """The JSON of a streamed request. `ask_usage` asks for token counts; not all servers know that."""
        fields = [b'{"stream":true', *self._tool_fields(request)]
        if self._model:  # a server with one model needs no name
            fields.append(b'"model":' + self._model)
        if ask_usage:
            fields.append(b'"stream_options":{"include_usage":true}')
        if request.max_output_tokens is not None:
            fields.append(b'"max_tokens":%d' % request.max_output_tokens)
        if request.thinking != "off":
            fields.append(b'"reasoning_effort":' + _dump(request.thinking))
        system = [_dump({"role": "system", "content": request.system})] if request.system else []
        messages = [*system, *self._messages.forms(request.messages)] or [b""]
        # The rest is put around the first and the last message, so that all of it is copied once.
        messages[0] = b",".join(fields) + b',"messages":[' + messages[0]
        messages[-1] += b"]}"
        return b",".join(messages)

    def _tool_fields(self, request: Request) -> list[bytes]:
        if request.tools is not self._offered:
            self._offered = request.tools
            self._tools = b",".join(self._specs.forms(request.tools[: self._max_tools]))
        if not self._tools:  # an empty list is refused by strict servers, and so is a choice without tools
            return []
        tools = b'"tools":[' + self._tools + b"]"
        return [tools, b'"tool_choice":"none"'] if request.tool_choice == "none" else [tools]

    def _message(self, message: Message) -> bytes:
        if message.role == "assistant":
            forms = self._assistant(message)
        elif message.role == "tool":
            forms = _outputs(message.outputs)
        else:
            forms = [{"role": message.role, "content": _content(message.content)}]
        return b",".join(map(_dump, forms))

    def _assistant(self, message: Message) -> list[dict[str, Any]]:
        calls = [self._call(call) for call in message.calls]
        if calls:
            return [{"role": "assistant", "content": message.text or None, "tool_calls": calls}]
        # Without text there is nothing to say, and an empty message is refused by some servers.
        return [{"role": "assistant", "content": message.text}] if message.text else []

    def _call(self, call: ToolCall) -> dict[str, Any]:
        function = {"name": call.name, "arguments": self._arguments(call)}
        form: dict[str, Any] = {"id": call.id, "type": "function", "function": function}
        own = call.provider_data
        return {**form, **own.data} if own is not None and own.provider == self._provider else form

    def _arguments(self, call: ToolCall) -> str:
        """The arguments as a JSON object, as strict servers parse them and refuse the whole request.

        Arguments that had to be repaired are sent as what was really run, so that the model sees its
        call and result agree. Those that could not be read never ran, and `{}` stands for them: the
        output of the call quotes what was received.
        """
        try:
            if isinstance(json.loads(call.arguments), dict):
                return call.arguments
        except (ValueError, RecursionError):
            pass
        from ..arguments import ArgumentError, parse_arguments  # needed for broken calls only

        for spec in self._offered:
            if spec.name == call.name:
                try:
                    return json.dumps(parse_arguments(call.arguments, spec, complete=call.complete))
                except ArgumentError:
                    break
        return "{}"


def _outputs(outputs: Sequence[ToolOutput]) -> list[dict[str, Any]]:
    forms: list[dict[str, Any]] = []
    images: list[dict[str, Any]] = []
    for output in outputs:
        shown = [block for block in output.content if isinstance(block, Image)]
        text = output.text or ("(an image, in the next message)" if shown else "(no output)")
        forms.append({"role": "tool", "tool_call_id": output.call_id, "content": text})
        if shown:
            images.append({"type": "text", "text": f"The output of {output.name} ({output.call_id}):"})
            images.extend(map(_image, shown))
    if images:
        # Outputs are text in this format; all of them must stand together before anything else.
        forms.append({"role": "user", "content": images})
    return forms


def _content(blocks: Iterable[object]) -> str | list[dict[str, Any]]:
    shown = [block for block in blocks if isinstance(block, (Text, Image))]
    if not any(isinstance(block, Image) for block in shown):
        return "".join(block.text for block in shown if isinstance(block, Text))
    return [_image(block) if isinstance(block, Image) else {"type": "text", "text": block.text} for block in shown]


def _image(image: Image) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{image.data}"}}


def _tool(spec: ToolSpec) -> bytes:
    function = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return _dump({"type": "function", "function": function})


def _dump(value: object) -> bytes:
    # "replace": a lone surrogate, from a file name for instance, cannot be sent.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
