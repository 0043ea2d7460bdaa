"""Services that say 200 and mean an error: in a document or in a stream, each in a form of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.errors import (
    AuthFailed,
    BadRequest,
    ContextOverflow,
    Overloaded,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    Refused,
    StreamBroken,
)
from marvin_core.providers.anthropic.stream import AnthropicStream
from marvin_core.providers.chat_completions.stream import ChatStream
from marvin_core.providers.http.answer_stream import AnswerStream
from marvin_core.providers.http.error_reports import error_in
from marvin_core.providers.responses.stream import ResponsesStream
from tests.support.chatting import chunk, endpoint

ENDPOINT = endpoint("https://models.example/v1")
WIRES = (ChatStream, AnthropicStream, ResponsesStream)


def minimax(code: int, said: str = "it is so", **more: Any) -> dict[str, Any]:
    return {"id": "0", "choices": None, **more, "base_resp": {"status_code": code, "status_msg": said}}


FORMS: list[tuple[dict[str, Any], type[ProviderError]]] = [
    (minimax(1000), Overloaded),
    (minimax(1001), Overloaded),
    (minimax(1002, "rate limit"), RateLimited),
    (minimax(1004, "login fail"), AuthFailed),
    (minimax(1008, "insufficient balance"), QuotaExhausted),
    (minimax(1024), Overloaded),
    (minimax(1026, "input new_sensitive"), Refused),
    (minimax(1027, "output new_sensitive"), Refused),
    (minimax(1033), Overloaded),
    (minimax(1039, "token limit"), RateLimited),
    (minimax(1041, "conn limit"), RateLimited),
    (minimax(2013, "invalid params"), BadRequest),
    (minimax(2013, "invalid params, context window exceeds limit"), ContextOverflow),
    (minimax(2049, "invalid api key"), AuthFailed),
    (minimax(2056, "usage limit exceeded"), QuotaExhausted),
    (minimax(7777, "something new"), StreamBroken),
    (minimax(1008, "insufficient balance", choices=[], usage={"total_tokens": 5}), QuotaExhausted),
    ({"code": "Arrearage", "message": "Access denied.", "request_id": "r"}, QuotaExhausted),
    ({"code": 1113, "msg": "Insufficient balance", "success": False}, QuotaExhausted),
    ({"error_code": 18, "error_msg": "Too many requests"}, RateLimited),
    ({"code": 401, "message": "Unauthorized", "data": None}, AuthFailed),
    ({"success": False, "errors": [{"code": 10000, "message": "Authentication error"}]}, AuthFailed),
    ({"error": "Model is overloaded", "error_type": "overloaded"}, Overloaded),
    ({"object": "error", "message": "This model's maximum context length is 4096", "code": 400}, ContextOverflow),
    ({"error": {"message": "Rate limit reached for it", "code": 429}}, RateLimited),
]


def failure(wire: type[AnswerStream], data: bytes) -> ProviderError | None:
    answer = wire(ENDPOINT, "https://models.example/v1/x")
    answer.feed(data)
    if answer.failure is None:
        answer.finish()
    return answer.failure


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("said", "kind"), FORMS, ids=lambda value: json.dumps(value)[:60] if isinstance(value, dict) else ""
)
def test_it_is_the_error_that_it_means(
    wire: type[AnswerStream], said: dict[str, Any], kind: type[ProviderError]
) -> None:
    document = json.dumps(said).encode()
    for data in (document, b"data: " + document + b"\n\n"):
        found = failure(wire, data)
        assert type(found) is kind, found


WELL: list[Any] = [
    {"code": 0, "message": "Success"},
    {"code": 200, "msg": "ok"},
    {"type": "ping"},
    {"choices": []},
    [],
    1,
]


def test_a_code_that_says_that_all_is_well_is_none() -> None:
    last = {**chunk({"content": "Hi"}, "stop"), "base_resp": {"status_code": 0, "status_msg": ""}}
    assert failure(ChatStream, b"data: " + json.dumps(last).encode() + b"\n\ndata: [DONE]\n\n") is None
    whole = {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}], "base_resp": {"status_code": 0}}
    assert failure(ChatStream, json.dumps(whole).encode()) is None
    for document in WELL:
        assert error_in(document) is None


def test_an_answer_that_was_censored_at_its_end_is_refused() -> None:
    said = chunk({"content": "Hi"}, "stop", base_resp={"status_code": 1027, "status_msg": "output new_sensitive"})
    assert isinstance(failure(ChatStream, b"data: " + json.dumps(said).encode() + b"\n\n"), Refused)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "errors", "base_resp", "status_code", "code", "message", "type"]), inner
        )
    ),
    max_leaves=8,
)


@given(ANY, st.sampled_from(WIRES))
def test_any_document_is_an_answer_or_an_error(document: Any, wire: type[AnswerStream]) -> None:
    data = json.dumps(document).encode()
    for sent in (data, b"data: " + data + b"\n\n"):
        assert isinstance(failure(wire, sent), ProviderError)
