"""A service's report of a failure: its message, its keywords, and when to retry. It never contains a secret."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from ...api.providers import Endpoint
from ...api.record import Record
from ...http.retry_times import after_headers, after_text, seconds
from ...util.text import one_line
from ...util.untrusted_json import parse_json
from .error_matching import SEARCHED, SMALLEST_WINDOW, plain

_MESSAGE_LIMIT = 500
_EXCERPT = 200
_PAYLOAD = 64 * 1024
_CODE_LIMIT = 100
_DETAILS_READ = 20
_SHORTEST_SECRET = 8
_SECRET_HEADERS = ("key", "token", "auth", "secret", "cookie")
_REDACTED = "***"
_STATUSES = frozenset(map(str, range(400, 600)))
_CODES = ("code", "type", "status", "reason", "error_type")
_MESSAGES = ("message", "msg", "error_msg", "detail")
_WELL = (None, "", 0, "0", 200, "200")
"""Codes for success; some services put one into every response."""
_NOT_SHOWN = ("script", "style", "head")


class ErrorReport(Record):
    """A failure in the service's own terms.

    `words` is the whole text in the form that `error_matching` compares, to determine the type of the error.
    `retry_after` is in seconds. `window` is the size of the context window in tokens, if the service has a field for
    it.
    """

    status: int | None
    message: str
    words: str
    retry_after: float | None = None
    window: int | None = None


def report_of(endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes) -> ErrorReport:
    """The report in an unsuccessful response: JSON, a web page or plain text, perhaps incomplete."""
    document = _json(body)
    message = _message(document) or _without_markup(body.decode("utf-8", "replace"))
    # Bedrock names the type of an error in a header only.
    codes = " ".join([*_codes(document), headers.get("x-amzn-errortype", "")[:_CODE_LIMIT]])
    after = after_headers(headers, _carried_headers(document))
    return _report(endpoint, status, message, codes, document, after)


def report_of_error(endpoint: Endpoint, error: Any) -> ErrorReport:
    """The report in an error object inside a successful response; its code may be a status."""
    document = {"error": error}
    code = str(error.get("code")) if isinstance(error, dict) else ""
    status = int(code) if code in _STATUSES else None
    after = after_headers({}, _carried_headers(document))
    return _report(endpoint, status, _message(document), " ".join(_codes(document)), document, after)


def error_in(document: Any) -> Any:
    """The error in a successful response, in the form that `report_of_error` accepts; None if there is none.

    Usually it is in `error`. MiniMax has `base_resp`, with code 0 for success
    (https://platform.minimax.io/docs/api-reference/errorcode), and Cloudflare a list of `errors`. Qwen, Zhipu,
    SiliconFlow and Baidu have a code and a message at the top level.
    """
    if not isinstance(document, dict):
        return None
    error = document.get("error")
    if error:
        return document if isinstance(error, str) else error
    if document.get("object") == "error" or document.get("type") == "error":
        return document
    base = document.get("base_resp")
    if isinstance(base, dict):
        code = base.get("status_code")
        return None if code in _WELL else {"message": base.get("status_msg") or "", "code": f"base_resp {code}"}
    errors = document.get("errors")
    if isinstance(errors, list) and errors and isinstance(errors[0], (dict, str)):
        return errors[0]
    code = document.get("code", document.get("error_code"))
    message = next((document[name] for name in _MESSAGES if isinstance(document.get(name), str)), "")
    return {"message": message, "code": code} if message and code not in _WELL else None


def clean(endpoint: Endpoint, text: str, limit: int = _MESSAGE_LIMIT) -> str:
    """The text on one line, without the endpoint's secrets and terminal sequences, cut to `limit` characters."""
    headers = (endpoint.headers or {}).items()
    secrets = [value for name, value in headers if any(word in name.lower() for word in _SECRET_HEADERS)]
    for secret in (endpoint.key.reveal().strip(), *secrets):
        # A shorter one is a stand-in for a local server ("none"), and ordinary text would hold it.
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, _REDACTED)
    return one_line(text[:SEARCHED], limit)  # cut after the secrets went, so that no part of one is left at the end


def excerpt(endpoint: Endpoint, payload: bytes) -> str:
    """The beginning of the service's response."""
    return clean(endpoint, payload[:_PAYLOAD].decode("utf-8", "replace"), _EXCERPT)


def shown_url(url: str) -> str:
    """The URL without user, password and query, which may contain a key."""
    try:
        parts = urlsplit(url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    except ValueError:
        return "its base URL"


def _report(
    endpoint: Endpoint, status: int | None, message: str, codes: str, document: Any, after: float | None
) -> ErrorReport:
    shown = clean(endpoint, message) or "no explanation was given."
    if shown[-1] not in ".!?…":
        shown += "."
    if after is None:
        after = _after_details(document)
    return ErrorReport(
        status=status,
        message=shown,
        words=plain(f"{codes} {message[:SEARCHED]}"),
        retry_after=after_text(message[:SEARCHED]) if after is None else after,
        window=_window(document),
    )


def _json(body: bytes) -> Any:
    try:
        document = parse_json(body.decode("utf-8", "replace"))
    except ValueError:
        return None
    # Gemini wraps its errors in a list.
    return document[0] if isinstance(document, list) and document else document


def _error(document: Any) -> dict[str, Any]:
    """The object with the error in an error document of any of the usual forms; empty if there is none."""
    error = document.get("error", document) if isinstance(document, dict) else None
    if isinstance(error, str) and isinstance(document, dict):
        return document
    return error if isinstance(error, dict) else {}


def _message(document: Any) -> str:
    """The message of an error document in any of the usual forms."""
    if isinstance(document, str):
        return document
    error = _error(document)
    named = (error.get(name) for name in ("message", "Message", "detail"))
    message = next(filter(None, named), "")
    if not isinstance(message, str):
        message = json.dumps(message, ensure_ascii=False)
    beside = error.get("error")
    if isinstance(beside, str) and beside:
        message = f"{beside}: {message}" if message else beside
    elif not message and beside:
        message = json.dumps(beside, ensure_ascii=False)
    # OpenRouter puts what the service behind it said beside its own "Provider returned error".
    behind = error.get("metadata")
    if isinstance(behind, dict) and isinstance(behind.get("raw"), str):
        message = f"{message}: {behind['raw']}"
    return message


def _codes(document: Any) -> Iterator[str]:
    """The codes and types in an error document."""
    error = _error(document)
    inner = (error.get(name) for name in ("metadata", "innererror"))
    for place in (error, *inner, *_details(document)):
        if isinstance(place, dict):
            for name in _CODES:
                if isinstance(place.get(name), (str, int)):
                    yield str(place[name])[:_CODE_LIMIT]


def _details(document: Any) -> list[Any]:
    """The details that Google's services add to an error."""
    details = _error(document).get("details")
    return details[:_DETAILS_READ] if isinstance(details, list) else []


def _after_details(document: Any) -> float | None:
    """The seconds of the `retryDelay` ("34s") in the details of an error of Google's services."""
    for detail in _details(document):
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str):
            return seconds(delay.removesuffix("s"))
    return None


def _carried_headers(document: Any) -> Mapping[str, str]:
    """The headers inside an error of OpenRouter."""
    behind = _error(document).get("metadata")
    found = behind.get("headers") if isinstance(behind, dict) else None
    if not isinstance(found, dict):
        return {}
    return {name.lower(): value for name, value in found.items() if isinstance(value, str)}


def _window(document: Any) -> int | None:
    """The context window next to a message of llama.cpp."""
    size = _error(document).get("n_ctx")
    return size if isinstance(size, int) and size >= SMALLEST_WINDOW else None


def _without_markup(text: str) -> str:
    """The text of a web page. The time is linear, however broken the tags are."""
    if "<" not in text:
        return text
    shown: list[str] = []
    lower, at = text.lower(), 0
    if len(lower) != len(text):  # some letters become two
        lower = text
    while (start := text.find("<", at)) >= 0:
        shown.append(text[at:start])
        name = next((name for name in _NOT_SHOWN if lower.startswith(name, start + 1)), "")
        end = lower.find(f"</{name}", start) if name else start
        close = text.find(">", end) if end >= 0 else -1
        if close < 0:  # never closed: a page that was cut, or no page at all
            return " ".join([*shown, "" if name else text[start:]])
        at = close + 1
    return " ".join([*shown, text[at:]])
