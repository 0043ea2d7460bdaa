"""What a service says about a failure: its message, its words, when to come back. Never a secret."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from ...api.providers import Endpoint
from ...api.record import Record
from ...util.text import one_line

_MESSAGE_LIMIT = 500
_EXCERPT = 200
_SHORTEST_SECRET = 8
_SECRET_HEADERS = ("key", "token", "auth", "secret", "cookie")
_REDACTED = "***"
_STATUSES = frozenset(map(str, range(400, 600)))


class ErrorReport(Record):
    """A failure in the service's own terms.

    `words` is all of it in lower case, for choosing the type of the error; `retry_after` is in seconds.
    """

    status: int | None
    message: str
    words: str
    retry_after: float | None = None


def report_of(endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes) -> ErrorReport:
    """The report in an answer that is not 2xx: JSON, a web page or plain text, perhaps cut short."""
    document = _json(body)
    message, words = _said(document)
    if not message:
        message = _without_markup(body.decode("utf-8", "replace"))
    after = _after_header(headers)
    return _report(endpoint, status, message, words, _after_details(document) if after is None else after)


def report_of_error(endpoint: Endpoint, error: Any) -> ErrorReport:
    """The report in an error object inside a successful answer; its code may be a status."""
    message, words = _said({"error": error})
    code = str(error.get("code")) if isinstance(error, dict) else ""
    status = int(code) if code in _STATUSES else None
    after = _after_details({"error": error})
    return _report(endpoint, status, message, words, _after_text(message) if after is None else after)


def clean(endpoint: Endpoint, text: str, limit: int = _MESSAGE_LIMIT) -> str:
    """The text on one line, without the endpoint's secrets, cut to `limit` characters."""
    headers = (endpoint.headers or {}).items()
    secrets = [value for name, value in headers if any(word in name.lower() for word in _SECRET_HEADERS)]
    for secret in (endpoint.key.reveal().strip(), *secrets):
        # A shorter one is a stand-in for a local server ("none"), and ordinary text would hold it.
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, _REDACTED)
    return one_line(text, limit)


def excerpt(endpoint: Endpoint, payload: bytes) -> str:
    """The beginning of what a service sent."""
    return clean(endpoint, payload.decode("utf-8", "replace"), _EXCERPT)


def shown_url(url: str) -> str:
    """The URL without user, password and query, which may hold a key."""
    try:
        parts = urlsplit(url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    except ValueError:
        return "its base URL"


def _report(endpoint: Endpoint, status: int | None, message: str, words: str, after: float | None) -> ErrorReport:
    shown = clean(endpoint, message) or "no explanation was given."
    if shown[-1] not in ".!?…":
        shown += "."
    return ErrorReport(status=status, message=shown, words=f"{words} {message}".lower(), retry_after=after)


def _json(body: bytes) -> Any:
    try:
        document = json.loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    # Gemini wraps its errors in a list.
    return document[0] if isinstance(document, list) and document else document


def _said(document: Any) -> tuple[str, str]:
    """The message of an error document in any of the usual forms, and its codes and types."""
    if not isinstance(document, dict):
        return (document if isinstance(document, str) else ""), ""
    error = document.get("error", document)
    if isinstance(error, str):
        return error, str(document.get("code") or document.get("type") or "")
    if not isinstance(error, dict):
        return "", ""
    message = error.get("message") or error.get("detail") or error.get("error") or ""
    if not isinstance(message, str):
        message = json.dumps(message, ensure_ascii=False)
    # OpenRouter puts what the service behind it said beside its own "Provider returned error".
    behind = error.get("metadata")
    if isinstance(behind, dict) and isinstance(behind.get("raw"), str):
        message = f"{message}: {behind['raw']}"
    return message, " ".join(str(error.get(field) or "") for field in ("code", "type", "status"))


def _without_markup(text: str) -> str:
    import re

    if "<" not in text:
        return text
    text = re.sub(r"(?is)<(script|style|head).*?</\1>", " ", text)
    return re.sub(r"<[^>]*>", " ", text)


def _after_header(headers: Mapping[str, str]) -> float | None:
    """Seconds of a `retry-after` header, which holds a number or a date."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        return _seconds_until(value)
    return max(0.0, seconds) if seconds < float("inf") else None


def _seconds_until(date: str) -> float | None:
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return None
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def _after_details(document: Any) -> float | None:
    """Seconds of the `retryDelay` ("34s") that Google's services put into the error's details."""
    error = document.get("error") if isinstance(document, dict) else None
    details = error.get("details") if isinstance(error, dict) else None
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str):
            try:
                return float(delay.removesuffix("s"))
            except ValueError:
                return None
    return None


def _after_text(message: str) -> float | None:
    """Seconds in "Please try again in 1m2.5s", which is all that OpenAI's services say inside a stream."""
    import re

    found = re.search(r"try again in (?:(\d+)m)?(\d+(?:\.\d+)?)(ms|s)\b", message)
    if found is None:
        return None
    seconds = float(found[2]) / (1000 if found[3] == "ms" else 1)
    return 60 * float(found[1] or 0) + seconds
