"""What services say when they refuse a request, word for word, and what becomes of it."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Mapping
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from marvin_core.api.errors import (
    AuthFailed,
    ContextOverflow,
    ModelNotFound,
    Overloaded,
    ProviderError,
    RateLimited,
)
from marvin_core.providers.http.error_mapping import from_error, from_status, refuses_images
from marvin_core.providers.http.error_matching import plain, says, window_in
from marvin_core.providers.http.error_reports import clean, report_of
from marvin_core.providers.http.error_words import WORDS, Kind
from tests.support.chatting import KEY, endpoint
from tests.support.examples import examples

ENDPOINT = endpoint("https://models.example/v1")
URL = "https://models.example/v1/chat/completions"
MOST_SECONDS = 30.0
"""Linear work over the largest text below takes less than one on a slow machine; quadratic work takes hours."""
MOST_BYTES = 100_000_000
REFUSALS = [json.loads(line) for line in Path(__file__).with_name("refusals.jsonl").read_text("utf-8").splitlines()]
"""One a line: the service, the status and the error object as it sends them, and what they become."""
OVERFLOWS = [row for row in REFUSALS if row["becomes"] == "ContextOverflow"]


def label(row: Any) -> str:
    return f"{row['service']} {row['status']}: {row['error'].get('message') or row['error']}"[:60]


def failure(status: int, said: Any, headers: Mapping[str, str] | None = None) -> ProviderError:
    body = {"error": {"message": said} if isinstance(said, str) else said}
    return from_status(ENDPOINT, URL, status, headers or {}, json.dumps(body).encode())


@pytest.mark.parametrize("row", REFUSALS, ids=label)
def test_each_service_is_understood(row: dict[str, Any]) -> None:
    found = failure(row["status"], row["error"])
    assert type(found).__name__ == row["becomes"]
    assert getattr(found, "window", None) == row.get("window")


@pytest.mark.parametrize("row", OVERFLOWS, ids=label)
def test_an_overflow_inside_an_answer_is_one_as_well(row: dict[str, Any]) -> None:
    """Where the status was sent before the prompt was read, the error comes inside the stream."""
    found = from_error(ENDPOINT, URL, row["error"])
    assert isinstance(found, ContextOverflow)
    assert found.window == row.get("window")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"object": "error", "message": "The model `x` does not exist.", "code": 404}, ModelNotFound),  # vLLM
        ({"detail": "The model x does not exist"}, ModelNotFound),  # FastAPI
        ({"code": "not-found", "error": "The model x does not exist or your team has no access"}, ModelNotFound),  # xAI
        ({"code": "InvalidParameter", "message": "Range of input length should be [1, 6000]"}, ContextOverflow),  # Qwen
        ({"error": "`inputs` must have less than 2048 tokens", "error_type": "validation"}, ContextOverflow),  # TGI
        ({"Message": "Input is too long for requested model."}, ContextOverflow),  # Bedrock
        ({"statusCode": 400, "error": "Bad Request", "message": "Model Not Exist"}, ModelNotFound),  # Node frameworks
        ([{"error": {"message": "API key not valid.", "status": "INVALID_ARGUMENT"}}], AuthFailed),  # Gemini
        ({"error": {"message": "x", "metadata": {"raw": "Model Not Exist"}}}, ModelNotFound),  # OpenRouter
    ],
    ids=str,
)
def test_in_whichever_form_it_comes(body: Any, kind: type[ProviderError]) -> None:
    assert type(from_status(ENDPOINT, URL, 400, {}, json.dumps(body).encode())) is kind


def test_bedrock_names_the_type_in_a_header() -> None:
    headers = {"x-amzn-errortype": "ThrottlingException:http://internal.amazon.com/coral/"}
    assert type(from_status(ENDPOINT, URL, 400, headers, b'{"message":null}')) is RateLimited


@pytest.mark.parametrize("kind", WORDS)
def test_every_row_finds_its_own_words_and_says_where_they_are_from(kind: Kind) -> None:
    for row in WORDS[kind]:
        words = row.words.replace("*", " and so on ")
        words = words.removesuffix("#") + "4096" * words.endswith("#")
        assert says(kind, plain(f"Error: {words.upper()}, they say.")), row
        assert row.service
        assert len(row.source) > 5, row
        if row.words.endswith("#"):
            assert window_in(plain(words)) == 4096, row


# When to come back


@pytest.mark.parametrize("status", [429, 503, 529])
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "7.66s"}, 7.66),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, 360.0),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "20ms"}, 0.02),
        ({"x-ratelimit-remaining-requests": "5", "x-ratelimit-reset-requests": "6m0s"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "90"}, 90.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1000000001"}, 0.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e300"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "-5"}, None),
        ({"retry-after": "Wed, 21 Oct 9999 07:28:00 GMT"}, None),
        ({"retry-after": "Wed, 21 Oct 99999999999 07:28:00 +9999999"}, None),
    ],
    ids=str,
)
def test_headers_that_say_when_to_come_back(status: int, headers: dict[str, str], seconds: float | None) -> None:
    found = failure(status, "busy", headers)
    assert isinstance(found, (RateLimited, Overloaded))
    assert found.retry_after == seconds


def test_dates_and_moments_to_come() -> None:
    moment = time.time() + 3000
    for headers in (
        {"retry-after": formatdate(moment, usegmt=True)},
        {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(moment))},
        {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(moment * 1000))},
    ):
        found = failure(503, "busy", headers)
        assert isinstance(found, Overloaded)
        assert found.retry_after is not None
        assert 2900 < found.retry_after < 3001


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("Please try again in 7.66s.", 7.66),
        ("Please try again in 1m2.5s.", 62.5),
        ("Please try again in 20ms.", 0.02),
        ("Please try again in 2h3m.", 7380.0),
        ("please try again after 1 seconds", 1.0),
        ("Please retry after 86400 seconds.", 86400.0),
        ("Please retry in 34.07s.", 34.07),
        ("Try again in 5 minutes", 300.0),
        ("Try again in a while", None),
        ("Try again in 12 parsecs", None),
        ("Try again in 99999999h", None),
    ],
)
def test_sentences_that_say_when_to_come_back(said: str, seconds: float | None) -> None:
    found = failure(429, said)
    assert isinstance(found, RateLimited)
    assert found.retry_after == (pytest.approx(seconds) if seconds is not None else None)


def test_openrouter_carries_the_headers_of_the_service_behind_it() -> None:
    said = {
        "message": "Rate limit exceeded",
        "metadata": {"headers": {"X-RateLimit-Remaining": "0", "Retry-After": "4"}},
    }
    found = failure(429, said)
    assert isinstance(found, RateLimited)
    assert found.retry_after == 4


def test_what_running_requests_may_cost_passes() -> None:
    """OpenRouter's 402 with a time to come back."""
    assert type(failure(402, "in flight", {"retry-after": "4"})) is RateLimited


# Whatever comes

NAMES = st.sampled_from(
    [
        "error",
        "message",
        "code",
        "type",
        "status",
        "detail",
        "details",
        "metadata",
        "raw",
        "headers",
        "retryDelay",
        "n_ctx",
        "reason",
        "innererror",
        "Message",
        "retry-after",
        "x-ratelimit-reset",
        "x-ratelimit-remaining",
    ]
)
PIECES = st.sampled_from(
    [
        "messages",
        "content",
        " must be a string",
        "model",
        " does not exist",
        "<script ",
        "<",
        "</script>",
        ">",
        "context",
        "prompt is too long",
        "tokens > ",
        "99999999999999",
        "(tpm): limit ",
        "requested ",
        "request too large ",
        "\x1b]0;",
        "\x9b31m",
        "try again in 1m",
        "\u202e",
        "\ud800",
        "{",
        "[",
        '"',
        "support",
        " image",
        KEY,
    ]
)
TEXTS = st.one_of(st.text(max_size=400), st.lists(PIECES, max_size=200).map("".join))
VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=6),
    max_leaves=12,
)
HEADERS = st.dictionaries(
    st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset", "x-ratelimit-remaining", "location"]), TEXTS
)
BODIES = st.one_of(
    st.binary(max_size=400),
    VALUES.map(lambda value: json.dumps(value).encode()),
    TEXTS.map(lambda t: t.encode("utf-8", "replace")),
)


@examples(300)
@given(status=st.integers(300, 599), headers=HEADERS, body=BODIES)
@example(status=400, headers={}, body=b"[" * 60_000)
@example(status=400, headers={}, body=b'{"error":' * 20_000)
def test_any_answer_is_one_of_the_errors(status: int, headers: dict[str, str], body: bytes) -> None:
    found = from_status(ENDPOINT, URL, status, headers, body)
    assert_fit_to_be_shown(str(found))
    after = getattr(found, "retry_after", None)
    assert after is None or 0 <= after < 400 * 24 * 3600
    refuses_images(ENDPOINT, status, headers, body)


@examples(300)
@given(error=VALUES)
def test_any_error_inside_an_answer_is_one_as_well(error: Any) -> None:
    assert_fit_to_be_shown(str(from_error(ENDPOINT, URL, error)))


def assert_fit_to_be_shown(text: str) -> None:
    """One line of bounded length, nothing that a terminal acts on, no secret."""
    assert text.isprintable()
    assert len(text) < 1_200
    assert KEY not in text


@pytest.mark.parametrize(
    "text",
    [
        "messagescontent",
        "<script ",
        "<",
        "<head><style",
        "model ",
        "content ",
        "prompt is too long ",
        "token count ",
        "image_url ",
        "(tpm): limit request too large ",
        "try again in ",
        "1m",
        "9",
        "\x1b[",
        "\u202e",
        "\n",
        '"',
        "[",
        "{",
    ],
)
def test_work_over_hostile_texts_is_linear(text: str) -> None:
    """A megabyte of each, as a body, as a message, as a code, as headers, and inside an answer."""
    long = text * (1_000_000 // len(text))
    begun, size = time.monotonic(), largest()
    for said in (long, {"message": long, "code": long, "type": [long]}, {"message": {"deep": long}}):
        failure(400, said)
        from_error(ENDPOINT, URL, said)
    found = from_status(ENDPOINT, URL, 429, {"retry-after": long, "x-ratelimit-reset": long}, long.encode())
    refuses_images(ENDPOINT, 400, {}, long.encode())
    clean(ENDPOINT, long)
    assert time.monotonic() - begun < MOST_SECONDS
    assert largest() - size < MOST_BYTES
    assert len(str(found)) < 1_200


def largest() -> int:
    """The largest size in bytes that this process has had."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else size * 1024


def test_a_key_behind_any_number_of_spaces_is_not_shown() -> None:
    """I24: a secret at the place where a text is cut is gone before it is cut."""
    for spaces in (8_150, 8_170, 8_191, 8_192, 8_200):
        shown = clean(ENDPOINT, " " * spaces + KEY)
        assert KEY[:8] not in shown


def test_a_web_page_without_its_markup() -> None:
    page = b"<head><title>t</title></head><body><SCRIPT>var a = '<b>';</SCRIPT><h1>502 Bad</h1> Gateway</body>"
    assert report_of(ENDPOINT, 502, {}, page).message == "502 Bad Gateway."
    assert report_of(ENDPOINT, 400, {}, b"5 < 10 tokens").message == "5 < 10 tokens."
