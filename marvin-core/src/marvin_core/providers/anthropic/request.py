"""Requests in Anthropic's Messages format, assembled from JSON that is encoded once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from ...api.messages import Block, Image, Message, Text, Thinking, ToolCall, ToolOutput
from ...api.providers import Endpoint, Request, ThinkingLevel
from ...api.tools import SEARCH, ToolSpec
from ..generations import defers_tools
from ..http.call_ids import FittingIds, allowed_name
from ..http.encoding import Encoded, EncodedTools, dump, object_arguments
from ..http.images import instead_of, text_of
from ..http.tool_forms import described
from ..http.turns import GO_ON
from .thinking import generation_of, less, plan, returned

_USER = b'{"role":"user","content":['
_OUTPUT = _USER + b'{"type":"tool_result"'
_ASSISTANT = b'{"role":"assistant","content":['
_END = b"]}"
_MARK = b',"cache_control":{"type":"ephemeral"}'
_LONG_MARK = b',"cache_control":{"type":"ephemeral","ttl":"1h"}'
_MARKED_MESSAGES = 2
_CALL_ID = r"[a-zA-Z0-9_-]+"
_LONGEST_NAME = 128


class AnthropicWire:
    """Writes the requests for one model.

    At most four positions have a cache mark: the end of the tools, the end of the constant part of the system prompt,
    and the last two messages that are not answers. The second-last one is the end of the previous request, so the
    conversation is read from the cache up to there, however much a round adds.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._provider = endpoint.provider
        self._model = endpoint.model
        self._max_output = endpoint.max_output
        self._most_tools = endpoint.max_tools
        self._mark = _LONG_MARK if endpoint.cache == "1h" else _MARK
        self._with_format = True
        self.generation = generation_of(endpoint.model)
        self._messages = Encoded(self._message)
        self._ids = FittingIds()
        self._tools = EncodedTools(_tool)
        self._waiting = EncodedTools(_waiting_tool)
        self._known: frozenset[str] = frozenset()
        self.defers = defers_tools(endpoint.model)
        """Whether deferred tools are defined, and the outputs that reveal them contain references to them."""
        self._returns = False
        self._may_return = True

    def stop_returning(self) -> bool:
        """Stop sending earlier thinking; False if none was sent."""
        self._may_return = False
        self._messages.forget()
        return self._returns

    def think_otherwise(self, thinking: ThinkingLevel, said: bytes) -> bool:
        """Use another way to reduce thinking, since this one was rejected; False if there is none."""
        generation = less(self.generation, said) if thinking == "off" else self.generation
        changed, self.generation = generation != self.generation, generation
        return changed

    def cache_shortly(self) -> bool:
        """Use the default lifetime of the cache from now on; False if that is already so."""
        before, self._mark = self._mark, _MARK
        return before != _MARK

    def stop_deferring(self) -> bool:
        """Stop defining deferred tools; False if none were defined."""
        before, self.defers = self.defers, False
        return before

    def leave_format_out(self) -> bool:
        """Stop requesting a form of the answer; False if none was requested."""
        before, self._with_format = self._with_format, False
        return before

    def body(self, request: Request) -> bytes:
        """The JSON of a streamed request."""
        if request.deferred and not self.defers:  # it was encoded before the service rejected that
            request = request.with_revealed(self._most_tools)
        self._know(request.waiting if self.defers else ())
        planned = plan(request, self.generation, self._max_output, self._is_own)
        returns = planned.returns and self._may_return
        if returns != self._returns:
            self._returns = returns
            self._messages.forget()
        fields = [b'{"model":' + dump(self._model), b'"max_tokens":%d,"stream":true' % planned.max_tokens]
        asked = dict(planned.fields)
        if request.output_schema is not None and self._with_format:
            form = {"type": "json_schema", "schema": request.output_schema}
            asked["output_config"] = {**asked.get("output_config", {}), "format": form}
        fields += [dump(name) + b":" + dump(value) for name, value in asked.items()]
        fields += self._tool_fields(request)
        system = self._system(request)
        if system:
            fields.append(b'"system":[' + system + b"]")
        turns = _turns(self._messages.forms(self._ids.of(request.messages, _CALL_ID)))
        if turns and turns[-1].startswith(_ASSISTANT):
            turns.append(_USER + dump({"type": "text", "text": GO_ON}) + _END)
        turns = self._marked(turns) or [b""]
        # The other fields are placed around the first and the last message, so that everything is copied once.
        turns[0] = b",".join(fields) + b',"messages":[' + turns[0]
        turns[-1] += _END
        return b",".join(turns)

    def _tool_fields(self, request: Request) -> list[bytes]:
        tools = self._tools.joined(request.tools)
        if tools:
            # Deferred tools are not a part of the cached prefix, so the mark precedes them.
            waiting = self._waiting.joined(request.waiting) if self.defers else b""
            fields = [b'"tools":[' + tools[:-1] + self._mark + b"}" + (b"," + waiting if waiting else b"") + b"]"]
            return [*fields, b'"tool_choice":{"type":"none"}'] if request.tool_choice == "none" else fields
        called = {allowed_name(call.name, _LONGEST_NAME) for message in request.messages for call in message.calls}
        if not called:
            return []
        # A conversation with calls is rejected if no tools are defined.
        stubs = [dump({"name": name, "input_schema": {"type": "object"}}) for name in sorted(called)]
        return [b'"tools":[' + b",".join(stubs) + b"]", b'"tool_choice":{"type":"none"}']

    def _message(self, message: Message) -> bytes:
        if message.role == "assistant":
            start, blocks = _ASSISTANT, self._answer(message)
        else:
            outputs = [_output(output, self._known) for output in message.outputs]
            start, blocks = _USER, [*outputs, *_shown(message.content)]
        return start + b",".join(map(dump, blocks)) + _END if blocks else b""

    def _know(self, waiting: Sequence[ToolSpec]) -> None:
        """The names that references may use: a reference to an undefined tool is rejected."""
        known = frozenset(spec.name for spec in waiting)
        if known != self._known:
            self._known = known
            self._messages.forget()

    def _answer(self, message: Message) -> list[Mapping[str, Any]]:
        blocks: list[Mapping[str, Any]] = []
        for block in message.content:
            if isinstance(block, Text) and block.text.strip():
                blocks.append({"type": "text", "text": block.text})
            elif isinstance(block, ToolCall):
                blocks.append(self._call(block))
            elif isinstance(block, Thinking) and self._returns:
                blocks += returned(block, self._provider, self._model)
        if not any(block["type"] in ("text", "tool_use") for block in blocks):
            return []
        # Calls come last: their outputs follow in the next message.
        return sorted(blocks, key=lambda block: block["type"] == "tool_use")

    def _call(self, call: ToolCall) -> dict[str, Any]:
        arguments = json.loads(object_arguments(call, (*self._tools.offered, *self._waiting.offered)))
        return {"type": "tool_use", "id": call.id, "name": allowed_name(call.name, _LONGEST_NAME), "input": arguments}

    def _system(self, request: Request) -> bytes:
        """The system prompt, split and marked at the end of its constant part."""
        stable, rest = request.system[: request.stable], request.system[request.stable :]
        if not (stable.strip() and rest.strip()):  # blank blocks are rejected
            stable, rest = (request.system, "") if stable.strip() else ("", request.system)
        parts = [dump({"type": "text", "text": stable})[:-1] + self._mark + b"}"] if stable else []
        return b",".join([*parts, dump({"type": "text", "text": rest})] if rest.strip() else parts)

    def _marked(self, turns: list[bytes]) -> list[bytes]:
        """The messages, with marks at the ends of the last two that are not answers."""
        asked = [index for index, turn in enumerate(turns) if turn.startswith(_USER)]
        for index in asked[-_MARKED_MESSAGES:]:
            turns[index] = turns[index][: -len(b"}]}")] + self._mark + b"}]}"
        return turns

    def _is_own(self, block: Block) -> bool:
        return self._may_return and bool(returned(block, self._provider, self._model))


def _turns(forms: Iterable[bytes]) -> list[bytes]:
    """The messages, with adjacent ones of the same role merged, outputs of tools first."""
    turns: list[bytes] = []
    for is_answer, group in groupby(forms, key=lambda form: form.startswith(_ASSISTANT)):
        parts = list(group)
        if len(parts) > 1:
            start = _ASSISTANT if is_answer else _USER
            parts.sort(key=lambda form: not form.startswith(_OUTPUT))
            parts = [start + b",".join(form[len(start) : -len(_END)] for form in parts) + _END]
        turns += parts
    return turns


def _output(output: ToolOutput, known: frozenset[str]) -> dict[str, Any]:
    shown = _shown(output.content)
    form: dict[str, Any] = {"type": "tool_result", "tool_use_id": output.call_id}
    if revealed := [name for name in output.reveals if name in known and output.name == SEARCH]:
        return {**form, "content": [{"type": "tool_reference", "tool_name": name} for name in revealed]}
    if output.is_error or all(block["type"] == "text" for block in shown):  # of an error, only text is accepted
        text = text_of(output.content)
        form["content"] = text if text.strip() else "(no output)"
        return {**form, "is_error": True} if output.is_error else form
    return {**form, "content": shown}


def _shown(content: Sequence[Block]) -> list[dict[str, Any]]:
    """The text and the images, without blank text, which is rejected."""
    blocks: list[dict[str, Any]] = []
    for block in content:
        if isinstance(block, Text) and block.text.strip():
            blocks.append({"type": "text", "text": block.text})
        elif isinstance(block, Image):
            blocks.append(_image(block))
    return blocks


def _image(image: Image) -> dict[str, Any]:
    if text := instead_of(image):
        return {"type": "text", "text": text}
    source = {"type": "base64", "media_type": image.media_type, "data": image.data}
    return {"type": "image", "source": source}


def _tool(spec: ToolSpec) -> bytes:
    return dump(_definition(spec))


def _waiting_tool(spec: ToolSpec) -> bytes:
    return dump({**_definition(spec), "defer_loading": True})


def _definition(spec: ToolSpec) -> dict[str, Any]:
    return {"name": spec.name, "description": described(spec), "input_schema": spec.parameters}
