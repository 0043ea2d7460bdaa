"""Requests in the format of OpenAI's Responses API, built from parts that are encoded to JSON only once.

Nothing is stored at the service (`store: false`), so every request carries the whole conversation, and reasoning
goes back in its encrypted form: https://platform.openai.com/docs/guides/reasoning
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...api.messages import Image, Message, Text, Thinking, ToolCall, ToolOutput
from ...api.providers import Endpoint, Request, ThinkingLevel
from ...api.tools import SEARCH, ToolSpec
from ..generations import defers_tools, gpt_version, thinks
from ..http.call_ids import FittingIds, allowed_name
from ..http.encoding import Encoded, EncodedTools, dump, object_arguments
from ..http.images import instead_of
from .tool_search import found_by, function_tool, said_by, search_call, search_output, search_tool

LONGEST_CALL_ID = 64
LONGEST_NAME = 64
LEAST_OUTPUT = 16
"""The minimum `max_output_tokens`; the service refuses less."""
_NO_GPT = (0, 0)
_LONG_CACHE = re.compile(r"gpt-4\.1|gpt-5(\.[0-5])?(?![.\d])")
"""The models before 5.6, which accept a longer cache lifetime; later ones cache for at least half an hour."""
_CALL_ID = rf"[A-Za-z0-9_-]{{1,{LONGEST_CALL_ID}}}"


class ResponsesWire:
    """Writes the requests of one provider and model.

    `without` names features that the service does not accept: `max_output_tokens`, and those passed to `leave_out`.
    """

    def __init__(self, endpoint: Endpoint, without: Iterable[str] = ()) -> None:
        self._provider = endpoint.provider
        self._model = endpoint.model
        self._keeps = endpoint.cache == "1h" and bool(_LONG_CACHE.match(endpoint.model))
        self._efforts: dict[str, str] = {}
        self._without = set(without)
        self._forgotten: set[str] = set()
        self._messages = Encoded(self._message)
        self._ids = FittingIds()
        self._waiting: Mapping[str, ToolSpec] = {}
        self._most_tools = endpoint.max_tools
        self._tools = EncodedTools(self._tool, endpoint.max_tools)
        self._first: bytes | None = None
        self._cache_key = b""

    def body(self, request: Request) -> bytes:
        """The JSON of a streamed request."""
        if request.deferred and not self.defers:  # it was made before the service refused that
            request = request.with_revealed(self._most_tools)
        self._know(request.waiting if self.defers else ())
        fields = [b'{"model":' + dump(self._model), b'"stream":true,"store":false', *self._tool_fields(request)]
        marked = self._marked_system(request)
        if request.system and not marked:
            fields.append(b'"instructions":' + dump(request.system))
        if request.max_output_tokens is not None and "max_output_tokens" not in self._without:
            fields.append(b'"max_output_tokens":%d' % max(request.max_output_tokens, LEAST_OUTPUT))
        if thinks(self._model):  # others refuse the fields for it
            fields += self._reasoning_fields(request.thinking)
        if request.output_schema is not None and "format" not in self._without:
            fields.append(b'"text":' + _format(request.output_schema))
        if self._keeps and "retention" not in self._without:
            fields.append(b'"prompt_cache_retention":"24h"')
        items = self._messages.forms(self._ids.of(request.messages, _CALL_ID)) or [b""]
        fields.append(b'"prompt_cache_key":' + self._key(items[0]))
        # The rest is put around the first and the last item, so that all of it is copied once.
        items[0] = b",".join(fields) + b',"input":[' + marked + items[0]
        items[-1] += b"]}"
        return b",".join(items)

    @property
    def defers(self) -> bool:
        """Whether the search for tools is declared as one, and its outputs contain the tools found."""
        return "tool_search" not in self._without and defers_tools(self._model)

    def _know(self, waiting: Sequence[ToolSpec]) -> None:
        """Determine the deferred tools: the outputs that reveal them contain their definitions."""
        if [*self._waiting.values()] != [*waiting]:
            self._waiting = {spec.name: spec for spec in waiting}
            self._messages.forget()
            self._tools = EncodedTools(self._tool, self._most_tools)

    def _tool(self, spec: ToolSpec) -> bytes:
        return dump(search_tool(spec) if self._waiting and spec.name == SEARCH else function_tool(spec))

    def think_otherwise(self, thinking: ThinkingLevel, said: str) -> bool:
        """Use another effort from now on, if the refusal of this one names one; false otherwise."""
        from ..http.efforts import other_effort

        effort = effort_of(self._model, thinking)
        other = other_effort(effort, said)
        if not other or effort in self._efforts:
            return False
        self._efforts[effort] = other
        return True

    def leave_out(self, what: str) -> bool:
        """Leave out a feature from now on; false if it was left out already."""
        if what in self._without:
            return False
        self._without.add(what)
        return True

    def forget_reasoning(self, messages: Sequence[Message]) -> bool:
        """Never send the reasoning in these messages again; false if none is left.

        It can only be read with the key of the account for which it was made.
        """
        items = [item for message in messages for block in message.content for item in self._reasoning(message, block)]
        if not items:
            return False
        self._forgotten.update(item["id"] for item in items)
        self._messages.forget()
        return True

    def _marked_system(self, request: Request) -> bytes:
        """The system prompt as the first item, with a cache mark at the end of its stable part.

        From 5.6 on, a model reads text before a mark from the cache, and pays for writing all other text again. Empty
        if there is nothing to mark, or if the service accepts no marks.
        """
        stable, rest = request.system[: request.stable], request.system[request.stable :]
        if not (stable.strip() and rest.strip()) or "breakpoint" in self._without or not _takes_marks(self._model):
            return b""
        first = {"type": "input_text", "text": stable, "prompt_cache_breakpoint": {"mode": "explicit"}}
        content = [first, {"type": "input_text", "text": rest}]
        return dump({"type": "message", "role": "developer", "content": content}) + b","

    def _tool_fields(self, request: Request) -> list[bytes]:
        tools = self._tools.joined(request.tools)
        if not tools:
            return []
        fields = [b'"tools":[' + tools + b"]", b'"parallel_tool_calls":true']
        return [*fields, b'"tool_choice":"none"'] if request.tool_choice == "none" else fields

    def _reasoning_fields(self, thinking: ThinkingLevel) -> list[bytes]:
        effort = effort_of(self._model, thinking)
        effort = self._efforts.get(effort, effort)
        reasoning: dict[str, str] = {}
        if effort and "effort" not in self._without:
            reasoning["effort"] = effort
        if effort != "none" and "summary" not in self._without:
            reasoning["summary"] = "auto"
        # Also where reasoning is off: what comes all the same must be sent back encrypted or not at all.
        fields = [] if "encrypted" in self._without else [b'"include":["reasoning.encrypted_content"]']
        return [*fields, b'"reasoning":' + dump(reasoning)] if reasoning else fields

    def _key(self, first: bytes) -> bytes:
        """The cache key: the same for all requests of a conversation, also after it was resumed."""
        if first is not self._first:
            from hashlib import sha256

            self._first = first
            self._cache_key = dump(f"marvin-{sha256(first).hexdigest()[:32]}")
        return self._cache_key

    def _message(self, message: Message) -> bytes:
        if message.role == "assistant":
            items: Iterable[dict[str, Any]] = self._assistant(message)
        elif message.role == "tool":
            items = [*map(self._output, message.outputs), *self._said(message.outputs)]
        else:
            # ChatGPT's service refuses the role "system" here; "developer" is what OpenAI calls it today.
            role = "developer" if message.role == "system" else message.role
            items = [{"type": "message", "role": role, "content": _content(message.content)}]
        return b",".join(map(dump, items))

    def _assistant(self, message: Message) -> Iterator[dict[str, Any]]:
        """The items of an answer in order, without the service's ids, since the service stores nothing."""
        held: list[dict[str, Any]] = []
        phase = ""
        for block in message.content:
            if isinstance(block, Thinking):
                held += self._reasoning(message, block)
                phase = self._phase(message, block)
            elif isinstance(block, ToolCall) or (isinstance(block, Text) and block.text):
                # Reasoning that nothing follows is refused, so it waits for what follows.
                yield from held
                held = []
                if isinstance(block, ToolCall):
                    yield self._call(block)
                else:
                    yield _said(block.text, phase)

    def _reasoning(self, message: Message, block: object) -> list[dict[str, Any]]:
        own = self._own(message, block)
        return [item for item in own.get("items", ()) if item["id"] not in self._forgotten]

    def _phase(self, message: Message, block: object) -> str:
        phase: str = self._own(message, block).get("phase", "")
        return phase

    def _own(self, message: Message, block: object) -> Any:
        """The data that this provider and model attached to a block."""
        data = block.provider_data if isinstance(block, Thinking) else None
        return data.data if data and data.provider == self._provider and message.model == self._model else {}

    def _call(self, call: ToolCall) -> dict[str, Any]:
        offered = (*self._tools.offered, *self._waiting.values())
        if self._waiting and call.name == SEARCH:
            return search_call(call, offered)
        return {
            "type": "function_call",
            "call_id": call.id,
            "name": allowed_name(call.name, LONGEST_NAME),
            "arguments": object_arguments(call, offered),
        }

    def _said(self, outputs: Iterable[ToolOutput]) -> list[dict[str, Any]]:
        """The texts of searches without new tools; they follow all outputs, which are adjacent."""
        searches = [output for output in outputs if self._waiting and output.name == SEARCH]
        return [said_by(one, self._tools.offered) for one in searches if not found_by(one, self._waiting)]

    def _output(self, output: ToolOutput) -> dict[str, Any]:
        if self._waiting and output.name == SEARCH:
            return search_output(output, self._waiting)
        shown: str | list[dict[str, Any]] = output.text or "(no output)"
        if any(isinstance(block, Image) for block in output.content):
            shown = _content(output.content)
        return {"type": "function_call_output", "call_id": output.call_id, "output": shown}


def effort_of(model: str, thinking: ThinkingLevel) -> str:
    """The reasoning effort of a model; empty for its default.

    The efforts of each model:
    https://platform.openai.com/docs/api-reference/responses/create#responses-create-reasoning
    """
    name = model.rpartition("/")[2]
    if "-pro" in name:
        return "high" if thinking == "high" else ""  # what all of them take
    if thinking != "off":
        return thinking
    version = gpt_version(name) or _NO_GPT
    if version < (5, 0) or version > (6, 0) or "codex" in name or "astra" in name:
        return "low"  # what all of them take
    return "minimal" if version == (5, 0) else "none"


def _takes_marks(model: str) -> bool:
    return (gpt_version(model.rpartition("/")[2]) or _NO_GPT) >= (5, 6)


def _format(schema: Mapping[str, Any]) -> bytes:
    from ..http.schemas import is_strict

    form = {"type": "json_schema", "name": "answer", "schema": schema, "strict": is_strict(schema)}
    return dump({"format": form})


def _said(text: str, phase: str) -> dict[str, Any]:
    said: dict[str, Any] = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text}],
    }
    return {**said, "phase": phase} if phase else said


def _content(blocks: Iterable[object]) -> list[dict[str, Any]]:
    parts = []
    for block in blocks:
        text = block.text if isinstance(block, Text) else instead_of(block) if isinstance(block, Image) else ""
        if text:
            parts.append({"type": "input_text", "text": text})
        elif isinstance(block, Image):
            parts.append({"type": "input_image", "image_url": f"data:{block.media_type};base64,{block.data}"})
    return parts
