"""What each wire format demands of a request: everything that the services behind it are known to refuse.

Sources: the OpenAPI description of OpenAI, platform.claude.com/docs/en/api/messages, ai.google.dev/api/caching#Schema
and .../gemini-api/docs/thought-signatures, console.groq.com/docs/errors, api/types.go of Ollama, and the refusals
that other programs have met.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, TypeAlias

import jsonschema

Body: TypeAlias = Mapping[str, Any]
Check: TypeAlias = Callable[[Body], None]

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
IMAGE_URL = re.compile(r"data:image/(png|jpeg|gif|webp);base64,([A-Za-z0-9+/=]+)")
LONGEST_DESCRIPTION = 1024
LONGEST_ELSEWHERE = 4_000
"""Where a service names no limit: a request of megabytes is refused anyway."""


# Chat completions

BASE = frozenset({"stream", "model", "messages", "tools", "tool_choice", "max_tokens", "response_format"})
COMMON = BASE | {"stream_options", "reasoning_effort"}
NOTHING: frozenset[str] = frozenset()


def openai_chat(body: Body) -> None:
    """OpenAI's chat completions, as strict servers take them."""
    _chat(body, COMMON | {"parallel_tool_calls"})


def vllm(body: Body) -> None:
    """Servers of one's own whose templates want the reasoning of a turn back, under either name."""
    _chat(body, COMMON, own=frozenset({"reasoning", "reasoning_content"}))


def llama_server(body: Body) -> None:
    """llama.cpp: roles must be in order, and what ends with an answer would be continued as it stands."""
    _chat(body, COMMON | {"parallel_tool_calls", "chat_template_kwargs"}, own=frozenset({"reasoning_content"}))


def groq(body: Body) -> None:
    """Groq, which names properties that it does not know and refuses them."""
    _chat(body, COMMON | {"parallel_tool_calls", "reasoning_format"}, own=frozenset({"reasoning"}))


def openrouter(body: Body) -> None:
    """The same, with the reasoning that OpenRouter wants back, and with ids of its own making, however long."""
    fields = (COMMON - {"reasoning_effort"}) | {"parallel_tool_calls", "reasoning", "cache_control"}
    _chat(body, fields, own=frozenset({"reasoning_details"}), longest_id=1000)


def deepseek(body: Body) -> None:
    """DeepSeek: where it thinks, each answer of the conversation carries its reasoning."""
    _chat(body, COMMON | {"thinking"}, own=frozenset({"reasoning_content"}))
    assert body["thinking"]["type"] in ("enabled", "disabled")
    assert ("reasoning_effort" in body) == (body["thinking"]["type"] == "enabled")
    if body["thinking"]["type"] == "enabled":
        for message in body["messages"]:
            assert message["role"] != "assistant" or "reasoning_content" in message, "must be passed back to the API"


def moonshot(body: Body) -> None:
    """Kimi: where it thinks, each answer with calls carries its reasoning."""
    _chat(body, (COMMON - {"reasoning_effort"}) | {"thinking"}, own=frozenset({"reasoning_content"}))
    if body["thinking"]["type"] == "enabled":
        for message in body["messages"]:
            assert "tool_calls" not in message or "reasoning_content" in message, "reasoning_content is missing"


def zhipu(body: Body) -> None:
    """GLM of its own service: it keeps the thinking of earlier turns where it is told to."""
    _chat(body, (COMMON - {"reasoning_effort"}) | {"thinking"}, own=frozenset({"reasoning_content"}))
    assert body["thinking"] in ({"type": "disabled"}, {"type": "enabled", "clear_thinking": False})


def xai(body: Body) -> None:
    """xAI, which takes the reasoning back that it showed."""
    _chat(body, COMMON | {"parallel_tool_calls"}, own=frozenset({"reasoning_content"}))


def mistral(body: Body) -> None:
    """Mistral: no field beyond its own, ids of nine letters and digits, and nobody interrupts an output."""
    _chat(body, BASE | {"reasoning_effort", "parallel_tool_calls"}, thinks_in_content=True)
    assert body.get("reasoning_effort", "none") in ("none", "low", "medium", "high")
    roles = [message["role"] for message in body["messages"]]
    for before, after in pairwise(roles):
        assert (before, after) != ("tool", "user"), "Unexpected role 'user' after role 'tool'"
        assert before != after or before == "tool", f"two messages of {before} in a row"
    for message in body["messages"]:
        for given in [call["id"] for call in message.get("tool_calls", ())] + [message.get("tool_call_id", "x" * 9)]:
            assert re.fullmatch(r"[A-Za-z0-9]{9}", given), "must be a-z, A-Z, 0-9, with a length of 9"


def gemini(body: Body) -> None:
    """The same at Google: the first call of each answer carries a signature, and schemas are a subset."""
    signed = frozenset({"extra_content"})
    _chat(body, COMMON | {"extra_body"}, own=signed, own_in_calls=signed)
    assert not {"extra_body", "reasoning_effort"} <= set(body), "one of the two"
    for message in body["messages"]:
        if "tool_calls" in message:
            assert message["tool_calls"][0]["extra_content"]["google"]["thought_signature"]
            assert not any("extra_content" in call for call in message["tool_calls"][1:])
    for tool in body.get("tools", ()):
        _gemini_schema(tool["function"]["parameters"])


def _chat(
    body: Body,
    fields: frozenset[str],
    *,
    own: frozenset[str] = NOTHING,
    own_in_calls: frozenset[str] = NOTHING,
    longest_id: int = 40,
    thinks_in_content: bool = False,
) -> None:
    assert set(body) <= fields, f"unknown: {set(body) - fields}"
    assert body["stream"] is True
    assert body.get("tools", True), "an empty list of tools is refused"
    assert "tools" in body or not {"tool_choice", "parallel_tool_calls"} & set(body)
    for tool in body.get("tools", ()):
        assert set(tool) == {"type", "function"}
        _tool(tool["function"], "parameters")
    allowed = {
        "system": {"role", "content"},
        "user": {"role", "content"},
        "assistant": {"role", "content", "tool_calls"} | own,
        "tool": {"role", "content", "tool_call_id"},
    }
    roles = [message["role"] for message in body["messages"]]
    assert roles[-1] in ("user", "tool"), "what ends with an answer is refused, or continued as it stands"
    assert ("assistant", "assistant") not in pairwise(roles)
    waiting: list[str] = []
    for number, message in enumerate(body["messages"]):
        role = message["role"]
        assert set(message) <= allowed[role], f"{role} has {set(message) - allowed[role]}"
        assert role != "system" or number == 0
        if role == "tool":
            assert waiting.pop(0) == message["tool_call_id"], "outputs follow their calls, in order"
            assert isinstance(message["content"], str)
            assert message["content"]
            continue
        assert not waiting, f"no output for {waiting}"
        if role == "assistant":
            waiting = _chat_calls(message, own_in_calls, longest_id)
            _chat_answer(message["content"], waiting, thinks_in_content)
        else:
            _chat_content(message["content"])
    assert not waiting, f"no output for {waiting}"


def _chat_answer(content: Any, calls: Sequence[str], thinks_in_content: bool) -> None:
    assert content or calls, "an answer says something or calls something"
    if thinks_in_content and isinstance(content, list):
        thought, *said = content
        assert thought["type"] == "thinking"
        assert all(part["type"] == "text" and part["text"] for part in thought["thinking"])
        assert all(set(part) == {"type", "text"} and part["text"] for part in said)
    else:
        assert content is None or isinstance(content, str)


def _chat_calls(message: Mapping[str, Any], own: frozenset[str], longest_id: int) -> list[str]:
    calls = message.get("tool_calls", [])
    assert "tool_calls" not in message or calls, "an empty list of calls is refused"
    for call in calls:
        assert {"id", "type", "function"} <= set(call) <= {"id", "type", "function"} | own
        assert 1 <= len(call["id"]) <= longest_id
        assert set(call["function"]) == {"name", "arguments"}
        assert NAME.fullmatch(call["function"]["name"])
        assert isinstance(_json(call["function"]["arguments"]), dict)
    ids = [call["id"] for call in calls]
    assert len(set(ids)) == len(ids)
    return ids


def _chat_content(content: Any) -> None:
    assert content
    if isinstance(content, str):
        return
    for part in content:
        if part["type"] == "text":
            assert set(part) == {"type", "text"}
            assert part["text"]
        else:
            assert part["type"] == "image_url"
            _image_url(part["image_url"]["url"])


# Anthropic's Messages


def anthropic(body: Body) -> None:
    """Anthropic's Messages: roles alternate, thinking stands first, nothing is blank."""
    known = {"model", "max_tokens", "stream", "system", "messages", "tools", "tool_choice", "thinking", "output_config"}
    assert set(body) <= known, f"unknown: {set(body) - known}"
    assert set(body.get("output_config", ())) <= {"effort", "format"}
    assert body["max_tokens"] > 0
    assert json.dumps(body).count('"cache_control"') <= 4
    defined = body.get("tools", ())
    for tool in defined:
        assert not ("cache_control" in tool and tool.get("defer_loading")), "what waits is in no cache"
        own = {name: value for name, value in tool.items() if name not in ("cache_control", "defer_loading")}
        _tool(own, "input_schema", LONGEST_ELSEWHERE)
    assert not defined or not all(tool.get("defer_loading") for tool in defined), "one tool at least does not wait"
    named = {found["tool_name"] for found in _references(body["messages"])}
    assert named <= {tool["name"] for tool in defined}, "a reference is to a tool that is defined"
    turns = body["messages"]
    assert [turn["role"] for turn in turns] == [("user", "assistant")[n % 2] for n in range(len(turns))]
    assert turns[-1]["role"] == "user"
    taken: list[str] = []
    for turn in turns:
        assert turn["content"]
        for block in turn["content"]:
            _anthropic_block(block, turn["role"])
        taken += [block["id"] for block in turn["content"] if block["type"] == "tool_use"]
    assert len(set(taken)) == len(taken), "an id is used once in a conversation"
    for before, after in pairwise(turns):
        called = [block["id"] for block in before["content"] if block["type"] == "tool_use"]
        results = [block["tool_use_id"] for block in after["content"] if block["type"] == "tool_result"]
        assert sorted(called) == sorted(results), "each call has its one result in the next message"
        assert all(block["type"] == "tool_result" for block in after["content"][: len(results)])
    assert not taken or body.get("tools"), "calls without tools are refused"
    _anthropic_thinking(body)


def _references(turns: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    results = (block for turn in turns for block in turn["content"] if block["type"] == "tool_result")
    inner = (part for result in results if isinstance(result["content"], list) for part in result["content"])
    return (part for part in inner if part["type"] == "tool_reference")


def _anthropic_block(block: Mapping[str, Any], role: str) -> None:
    match block["type"]:
        case "text":
            assert block["text"].strip()
        case "image":
            assert role == "user"
            assert block["source"]["media_type"] in ("image/png", "image/jpeg", "image/gif", "image/webp")
            base64.b64decode(block["source"]["data"], validate=True)
        case "tool_use":
            assert role == "assistant"
            assert set(block) == {"type", "id", "name", "input"}
            assert isinstance(block["input"], dict)
            assert re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"])
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", block["name"])
        case "tool_result":
            assert role == "user"
            content = block["content"]
            for inner in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                assert inner["type"] == "text" or not block.get("is_error"), "an error is text"
                _anthropic_block(inner, role)
        case "tool_reference":
            assert role == "user"
            assert set(block) == {"type", "tool_name"}
        case "thinking":
            assert role == "assistant"
            assert block["signature"]
            assert "cache_control" not in block
        case "redacted_thinking":
            assert role == "assistant"
            assert block["data"]
            assert "cache_control" not in block
        case other:
            raise AssertionError(f"an unknown block: {other}")


def _anthropic_thinking(body: Body) -> None:
    """With a budget, the answers since the last prompt begin with thinking; and the budget is below the limit."""
    thinking = body.get("thinking", {"type": "adaptive"})
    allowed = {
        "enabled": {"type", "budget_tokens"},
        "adaptive": {"type", "display", "block_binding"},
        "disabled": {"type"},
        "between_tools": {"type"},
    }
    assert set(thinking) <= allowed[thinking["type"]]
    if thinking["type"] != "enabled":
        return
    assert 1024 <= thinking["budget_tokens"] < body["max_tokens"]
    for turn in reversed(body["messages"]):
        if turn["role"] == "assistant":
            assert "thinking" in turn["content"][0]["type"]
        elif not any(block["type"] == "tool_result" for block in turn["content"]):
            return


# OpenAI's Responses


def responses(body: Body) -> None:
    """The Responses API without storage."""
    known = {"model", "stream", "store", "instructions", "input", "tools", "tool_choice", "parallel_tool_calls", "text"}
    known |= {"max_output_tokens", "reasoning", "include", "prompt_cache_key", "prompt_cache_retention"}
    assert set(body) <= known, f"unknown: {set(body) - known}"
    assert set(body.get("reasoning", ())) <= {"effort", "summary"}
    assert body["store"] is False
    for tool in body.get("tools", ()):
        _responses_tool(tool)
    items = body["input"]
    assert items
    waiting: list[str] = []
    taken: list[str] = []
    for item, following in zip(items, [*items[1:], None], strict=True):
        match item["type"]:
            case "function_call":
                assert set(item) == {"type", "call_id", "name", "arguments"}
                assert ID.fullmatch(item["call_id"])
                assert NAME.fullmatch(item["name"])
                assert isinstance(_json(item["arguments"]), dict)
                waiting.append(item["call_id"])
                taken.append(item["call_id"])
            case "function_call_output":
                assert waiting.pop(0) == item["call_id"]
                _responses_content(item["output"], "input_text")
            case "tool_search_call":
                assert set(item) == {"type", "call_id", "execution", "status", "arguments"}
                assert any(tool["type"] == "tool_search" for tool in body["tools"])
                assert isinstance(item["arguments"], dict)
                waiting.append(item["call_id"])
                taken.append(item["call_id"])
            case "tool_search_output":
                assert waiting.pop(0) == item["call_id"]
                for tool in item["tools"]:
                    assert tool["defer_loading"] is True
                    _responses_tool({name: value for name, value in tool.items() if name != "defer_loading"})
            case "reasoning":
                assert item["encrypted_content"]
                assert item["id"].startswith("rs_")
                assert following is not None
                assert following["type"] in ("reasoning", "message", "function_call", "tool_search_call")
                assert following.get("role", "assistant") == "assistant", "reasoning leads to what the model did"
            case "message":
                assert not waiting, f"no output for {waiting}"
                assert set(item) <= {"type", "role", "content", "phase"}
                assert item["role"] in ("user", "developer", "assistant")
                _responses_content(item["content"], f"{'out' if item['role'] == 'assistant' else 'in'}put_text")
            case other:
                raise AssertionError(f"an unknown item: {other}")
    assert not waiting, f"no output for {waiting}"
    assert len(set(taken)) == len(taken), "an id is used once in a conversation"


def _responses_tool(tool: Mapping[str, Any]) -> None:
    if tool["type"] == "tool_search":
        assert set(tool) == {"type", "execution", "description", "parameters"}
        assert tool["execution"] == "client"
        assert 0 < len(tool["description"]) <= LONGEST_ELSEWHERE
        return
    assert tool["type"] == "function"
    assert tool["strict"] is False
    _tool({name: value for name, value in tool.items() if name not in ("type", "strict")}, "parameters")


def codex(body: Body) -> None:
    """ChatGPT's service, which takes less."""
    responses(body)
    assert "max_output_tokens" not in body
    assert not any(item.get("role") == "system" for item in body["input"])


def _responses_content(content: Any, text: str) -> None:
    assert content
    if isinstance(content, str):
        return
    for part in content:
        if part["type"] == "input_image":
            assert text == "input_text"
            _image_url(part["image_url"])
        else:
            assert part["type"] == text
            assert set(part) - {"prompt_cache_breakpoint"} == {"type", "text"}
            assert part.get("prompt_cache_breakpoint", {"mode": "explicit"}) == {"mode": "explicit"}
            assert part["text"]


# Ollama


def ollama(body: Body) -> None:
    """Ollama's own format, read into Go structures: a value of another type makes it refuse the request."""
    known = {"model", "stream", "truncate", "shift", "think", "options", "tools", "messages", "format"}
    assert set(body) <= known, f"unknown: {set(body) - known}"
    assert body["think"] in (True, False, "low", "medium", "high")
    allowed = {"role", "content", "thinking", "images", "tool_calls", "tool_name", "tool_call_id"}
    for tool in body.get("tools", ()):
        assert set(tool) == {"type", "function"}
        _tool(tool["function"], "parameters", LONGEST_ELSEWHERE)
    waiting: list[tuple[str, str]] = []
    for message in body["messages"]:
        assert set(message) <= allowed
        assert isinstance(message["content"], str)
        for image in message.get("images", ()):
            assert message["role"] == "user"
            base64.b64decode(image, validate=True)
        if message["role"] == "tool":
            assert waiting.pop(0) == (message["tool_call_id"], message["tool_name"])
            assert message["content"]
            continue
        assert not waiting, f"no output for {waiting}"
        for call in message.get("tool_calls", ()):
            assert set(call) == {"id", "function"}
            assert set(call["function"]) == {"name", "arguments"}
            assert isinstance(call["function"]["arguments"], dict)
            waiting.append((call["id"], call["function"]["name"]))
        assert message["content"] or message.get("tool_calls") or message.get("images")
    assert not waiting, f"no output for {waiting}"
    assert body["messages"][-1]["role"] != "assistant"


# What they share


def _tool(declared: Mapping[str, Any], schema: str, longest: int = LONGEST_DESCRIPTION) -> None:
    assert set(declared) == {"name", "description", schema}
    assert NAME.fullmatch(declared["name"])
    assert 0 < len(declared["description"]) <= longest
    assert "\x00" not in declared["description"]
    parameters = declared[schema]
    _check_schema(json.dumps(parameters))
    assert parameters["type"] == "object"
    assert isinstance(parameters["properties"], dict), "an object schema without properties is refused"
    assert not {"anyOf", "oneOf", "allOf", "enum", "not"} & set(parameters), "not at the top"
    assert set(parameters.get("required", ())) <= set(parameters["properties"])
    for node in _nodes(parameters):
        assert "$ref" not in node
        assert node.get("type") != "array" or "items" in node, "a list without items is refused"
        assert isinstance(node.get("description", ""), str)
        for name in node.get("properties", ()):
            assert re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name)


@cache
def _check_schema(schema: str) -> None:
    """The same few schemas stand in thousands of requests, and checking one takes milliseconds."""
    jsonschema.Draft202012Validator.check_schema(json.loads(schema))


def _gemini_schema(schema: Mapping[str, Any]) -> None:
    """The fields of Google's own Schema message; any other name, or a list of types, is refused."""
    known = {"type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties"}
    known |= {"required", "minLength", "maxLength", "pattern", "anyOf", "default", "items", "minimum", "maximum"}
    for node in _nodes(schema):
        assert set(node) <= known, set(node) - known
        assert isinstance(node.get("type", ""), str)
        assert "type" in node or node.get("anyOf")
        assert all(isinstance(choice, str) and choice for choice in node.get("enum", ()))
        assert "enum" not in node or node["type"] == "string"
        assert node.get("format", "enum") in ("enum", "date-time", "float", "double", "int32", "int64")
        assert node.get("type") != "array" or node["items"]


def _nodes(schema: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    yield schema
    inner: Sequence[Any] = [
        *schema.get("properties", {}).values(),
        *schema.get("anyOf", ()),
        *schema.get("prefixItems", ()),
        schema.get("items"),
        schema.get("additionalProperties"),
    ]
    for node in inner:
        if isinstance(node, Mapping):
            yield from _nodes(node)


def _image_url(url: str) -> None:
    found = IMAGE_URL.fullmatch(url)
    assert found, f"no image: {url[:40]}"
    base64.b64decode(found[2], validate=True)


def _json(text: str) -> Any:
    def refuse(name: str) -> Any:
        raise AssertionError(f"{name} is not valid JSON")

    return json.loads(text, parse_constant=refuse)
