"""Requests in the chat completions format, assembled from JSON that is encoded once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import and_, methodcaller
from typing import Any

from ...api.messages import Image, Message, ProviderData, Text, Thinking, ToolCall, ToolOutput
from ...api.providers import Endpoint, Request
from ...api.tools import ToolSpec
from ..http.call_ids import FittingIds, allowed_name
from ..http.encoding import Encoded, EncodedTools, dump, object_arguments
from ..http.images import instead_of
from ..http.tool_forms import LONGEST_AT_OPENAI, described
from .services import (
    cache_control,
    format_field,
    learnt,
    placeholder_signature,
    refused_in_answers,
    service_of,
    thinking_fields,
    traits_of,
)

PLACE = "returned_in"
"""In the provider data of thinking: the field in which it arrived, and in which it is sent back."""
_LONGEST_NAME = 64
_is_answer = methodcaller("startswith", b'{"role":"assistant"')
_FILLED = "reasoning_content"


class ChatWire:
    """Writes the requests of one endpoint. `limit_field` is the service's field for the maximum length of an answer."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.limit_field = "max_tokens"
        self._endpoint = endpoint
        self._service = service_of(endpoint)
        self._traits = traits_of(self._service)
        self._cache = cache_control(self._service, endpoint)
        self._placeholder = placeholder_signature(self._service, endpoint.model)
        self._system = "", b""
        """The newest system prompt and its encoded form, since most requests repeat it."""
        self._messages = Encoded(self._message)
        self._ids = FittingIds(self._is_own)
        self._tools = EncodedTools(self._tool, endpoint.max_tools)
        self._returned: set[str] = set()
        self._kept_back: set[str] = set()

    def optional(self, request: Request) -> dict[str, Any]:
        """The fields that some services do not support: the token count, the thinking effort, parallel calls."""
        fields = thinking_fields(self._service, self._endpoint.model, request.thinking)
        if self._traits.counts:
            fields["stream_options"] = {"include_usage": True}
        if self._traits.parallel and request.tools:
            fields["parallel_tool_calls"] = True
        if self._cache is not None:
            fields["cache_control"] = self._cache
        if request.output_schema is not None:
            from ..http.schemas import is_strict

            schema = request.output_schema
            fields.update(format_field(self._service, schema, strict=is_strict(schema)))
        return fields

    def learn(self, said: str) -> bool:
        """Learn from a rejection which form of conversation the model requires; False if it shows nothing new."""
        traits = learnt(self._traits, said)
        if traits is self._traits:
            kept_back = refused_in_answers(self._returned - self._kept_back, said)
            if not kept_back:
                return False
            self._kept_back |= kept_back
        elif traits == self._traits:
            return False
        self._traits = traits
        self._messages.forget()
        self._ids.forget()
        return True

    def body(self, request: Request, optional: Mapping[str, Any]) -> bytes:
        """The JSON of a streamed request with these optional fields."""
        fields = [b'{"stream":true', *self._tool_fields(request)]
        if self._endpoint.model:  # a server with one model needs no name
            fields.append(b'"model":' + dump(self._endpoint.model))
        if request.max_output_tokens is not None:
            fields.append(b'"%s":%d' % (self.limit_field.encode(), request.max_output_tokens))
        if optional:
            fields.append(dump(optional)[1:-1])
        if request.system != self._system[0]:
            self._system = request.system, dump({"role": "system", "content": request.system})
        system = [self._system[1]] if request.system else []
        forms = self._messages.forms(self._ids.of(request.messages, self._traits.ids))
        messages = [*system, *self._in_order(forms)] or [b""]
        # The other fields are placed around the first and the last message, so that everything is copied once.
        messages[0] = b",".join(fields) + b',"messages":[' + messages[0]
        messages[-1] += b"]}"
        return b",".join(messages)

    def _in_order(self, forms: list[bytes]) -> list[bytes]:
        """The encoded messages in the form that the service accepts; nearly all conversations already have it."""
        answers = [*map(_is_answer, forms)]
        if forms and not (self._traits.alternating or answers[-1] or any(map(and_, answers, answers[1:]))):
            return forms
        from ..http.turns import in_order

        return in_order(forms, alternating=self._traits.alternating)

    def _tool_fields(self, request: Request) -> list[bytes]:
        joined = self._tools.joined(request.tools)
        if not joined:  # strict servers reject an empty list, and a choice without tools
            return []
        tools = b'"tools":[' + joined + b"]"
        return [tools, b'"tool_choice":"none"'] if request.tool_choice == "none" else [tools]

    def _tool(self, spec: ToolSpec) -> bytes:
        parameters, description = spec.parameters, described(spec, LONGEST_AT_OPENAI)
        if self._service == "gemini":
            from .gemini_schema import gemini_schema

            parameters = gemini_schema(parameters)
        function = {"name": spec.name, "description": description, "parameters": parameters}
        return dump({"type": "function", "function": function})

    def _message(self, message: Message) -> bytes:
        if message.role == "assistant":
            forms = self._assistant(message)
        elif message.role == "tool":
            forms = self._outputs(message.outputs)
        else:
            forms = [{"role": message.role, "content": _content(message.content)}]
        return b",".join(map(dump, forms))

    def _assistant(self, message: Message) -> list[dict[str, Any]]:
        form: dict[str, Any] = {"role": "assistant", "content": message.text or None}
        calls = [self._call(call) for call in message.calls]
        if calls:
            form["tool_calls"] = calls
            if self._placeholder is not None and not any("extra_content" in call for call in calls):
                calls[0].update(self._placeholder)  # of parallel calls, only the first one has the signature
        if not (message.text or calls):
            return []  # there is no text, and some servers reject an empty message
        form.update(self._reasoning(message))
        return [form]

    def _reasoning(self, message: Message) -> Mapping[str, Any]:
        """The model's thinking before this answer, in the form of its service."""
        thoughts = [block for block in message.content if isinstance(block, Thinking)]
        own = not self._endpoint.model or message.model in ("", self._endpoint.model)
        form: dict[str, Any] = {}
        for block in thoughts if own else ():
            form.update(self._own(block.provider_data))
        place = form.pop(PLACE, "")
        thought = "".join(block.text for block in thoughts) if place else ""
        if place == "content":
            text = [{"type": "text", "text": message.text}] if message.text else []
            form["content"] = [{"type": "thinking", "thinking": [{"type": "text", "text": thought}]}, *text]
        elif place and "reasoning_details" not in form:  # which have the same content
            form[place] = thought
        if self._traits.fills:
            form.setdefault(_FILLED, thought)
        self._returned.update(form)
        return {name: value for name, value in form.items() if name not in self._kept_back}

    def _call(self, call: ToolCall) -> dict[str, Any]:
        arguments = object_arguments(call, self._tools.offered)
        function = {"name": allowed_name(call.name, _LONGEST_NAME), "arguments": arguments}
        return {"id": call.id, "type": "function", "function": function, **self._own(call.provider_data)}

    def _is_own(self, message: Message) -> bool:
        made_here = (message.provider, message.model) == (self._endpoint.provider, self._endpoint.model)
        return self._traits.keeps_ids and made_here

    def _own(self, data: ProviderData | None) -> Mapping[str, Any]:
        """The data that this service requires back; none of another service."""
        return data.data if data is not None and data.provider == self._endpoint.provider else {}

    def _outputs(self, outputs: Sequence[ToolOutput]) -> list[dict[str, Any]]:
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
            # Outputs are text in this format; all of them must be adjacent before anything else.
            if self._traits.alternating:
                from ..http.turns import UNDERSTOOD

                forms.append({"role": "assistant", "content": UNDERSTOOD})
            forms.append({"role": "user", "content": images})
        return forms


def _content(blocks: Iterable[object]) -> str | list[dict[str, Any]]:
    shown = [block for block in blocks if isinstance(block, (Text, Image))]
    if not any(isinstance(block, Image) for block in shown):
        return "".join(block.text for block in shown if isinstance(block, Text))
    return [_image(block) if isinstance(block, Image) else {"type": "text", "text": block.text} for block in shown]


def _image(image: Image) -> dict[str, Any]:
    if text := instead_of(image):
        return {"type": "text", "text": text}
    return {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{image.data}"}}
