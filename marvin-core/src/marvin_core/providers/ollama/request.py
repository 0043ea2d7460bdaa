"""Requests in Ollama's own format, joined from JSON that was encoded once.

The format is api/types.go of Ollama. It differs from chat completions in that the arguments of calls are
objects, outputs name their tool, and images are lists of base64 beside the text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ...api.messages import Image, Message, Thinking, ToolCall, ToolOutput
from ...api.providers import Request
from ...api.tools import ToolSpec
from ..http.encoding import Encoded, EncodedTools, dump, object_arguments
from ..http.images import instead_of, text_of
from ..http.tool_forms import described
from ..http.turns import in_order

_HAS_LEVELS = "gpt-oss"
"""The family with thinking levels; for other families, many versions of Ollama accept only yes or no."""


class OllamaWire:
    """Writes the requests of one provider and model."""

    def __init__(self, provider: str, model: str, max_tools: int | None) -> None:
        self._provider = provider
        self._model = model
        self._messages = Encoded(self._message)
        self._tools = EncodedTools(_tool, max_tools)

    def body(self, request: Request, *, window: int, with_think: bool) -> bytes:
        """The JSON of a streamed request. `window` is in tokens; some models do not support `think`."""
        options = {"num_ctx": window}
        if request.max_output_tokens is not None:
            options["num_predict"] = request.max_output_tokens
        # Rather an error than an answer to a conversation without its beginning; see ollama_window.
        head: dict[str, Any] = {"model": self._model, "stream": True, "truncate": False, "shift": False}
        if with_think:
            head["think"] = self._think(request)
        tools = self._tool_fields(request)
        if request.output_schema is not None and not tools:  # beside tools it would keep the model from calling any
            head["format"] = request.output_schema
        fields = [dump({**head, "options": options})[:-1], *tools]
        system = [dump({"role": "system", "content": request.system})] if request.system else []
        messages = [*system, *in_order(self._messages.forms(request.messages))] or [b""]
        # The rest is put around the first and the last message, so that all of it is copied once.
        messages[0] = b",".join(fields) + b',"messages":[' + messages[0]
        messages[-1] += b"]}"
        return b",".join(messages)

    def _think(self, request: Request) -> bool | str:
        if _HAS_LEVELS in self._model:
            return "low" if request.thinking == "off" else request.thinking
        return request.thinking != "off"  # left out, it means yes where the model can think

    def _tool_fields(self, request: Request) -> list[bytes]:
        tools = self._tools.joined(request.tools)
        # There is no choice of tools in this format: none on offer is the way to have none called.
        return [b'"tools":[' + tools + b"]"] if tools and request.tool_choice == "auto" else []

    def _message(self, message: Message) -> bytes:
        if message.role == "assistant":
            forms = self._assistant(message)
        elif message.role == "tool":
            forms = _outputs(message.outputs)
        else:
            forms = [_with_images(message.role, text_of(message.content), _images(message.content))]
        return b",".join(map(dump, forms))

    def _assistant(self, message: Message) -> list[dict[str, Any]]:
        form: dict[str, Any] = {"role": "assistant", "content": message.text}
        if message.provider == self._provider:
            thinking = "".join(block.text for block in message.content if isinstance(block, Thinking))
            if thinking:
                form["thinking"] = thinking
        if message.calls:
            form["tool_calls"] = [self._call(call) for call in message.calls]
        return [form] if message.text or message.calls else []

    def _call(self, call: ToolCall) -> dict[str, Any]:
        arguments = json.loads(object_arguments(call, self._tools.offered))
        return {"id": call.id, "function": {"name": call.name, "arguments": arguments}}


def _outputs(outputs: Sequence[ToolOutput]) -> list[dict[str, Any]]:
    forms: list[dict[str, Any]] = []
    shown: list[str] = []
    sources: list[str] = []
    for output in outputs:
        images = _images(output.content)
        text = text_of(output.content) or ("(an image, in the next message)" if images else "(no output)")
        forms.append({"role": "tool", "tool_name": output.name, "tool_call_id": output.call_id, "content": text})
        if images:
            shown += images
            sources.append(f"{output.name} ({output.call_id})")
    if shown:
        # Templates show the images of users; all outputs must stand together before anything else.
        forms.append(_with_images("user", f"The images in the output of {', '.join(sources)}:", shown))
    return forms


def _with_images(role: str, text: str, images: Sequence[str]) -> dict[str, Any]:
    form: dict[str, Any] = {"role": role, "content": text}
    return {**form, "images": images} if images else form


def _images(blocks: Sequence[object]) -> list[str]:
    return [block.data for block in blocks if isinstance(block, Image) and not instead_of(block)]


def _tool(spec: ToolSpec) -> bytes:
    function = {"name": spec.name, "description": described(spec), "parameters": spec.parameters}
    return dump({"type": "function", "function": function})
