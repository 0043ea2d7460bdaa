"""From what a service, or the way to it, reports to Marvin's typed errors.

Imported when something has failed. The texts of services are read here and nowhere above.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from ...api.errors import (
    AuthFailed,
    BadRequest,
    ContextOverflow,
    ModelNotFound,
    Overloaded,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    Refused,
    StreamBroken,
    Unreachable,
)
from ...api.providers import Endpoint
from ...util.text import FAINTLY_LIKE, near_names
from .error_reports import ErrorReport, clean, excerpt, report_of, report_of_error, shown_url

_LISTED = 8
_OTHER = "choose another model (/model, --model)"

_OVERFLOW = re.compile(
    r"context.?(length|window|size|limit)|too many tokens|token count.{0,40}exceeds"
    r"|(prompt|input|request|messages?)[ _](is |are |was )?too[ _](long|large)|reduce the length"
)
# A code that means it, and texts that some services also use for limits that pass by themselves.
_QUOTA_CODE = re.compile(
    r"insufficient.?(quota|credit|balance|funds)|billing_hard_limit|usage_(limit_reached|not_included)"
    # Anthropic's; the last two come with a status that says nothing.
    r"|billing_error|credit balance is too low|your specified api usage limits"
)
_QUOTA = re.compile(r"exceeded your current quota|billing|credit balance|out of credits|more credits|payment required")
_NO_MODEL = re.compile(
    r"model.?not.?found|no such model|unknown model|invalid model|not a valid model"
    r"|not_found_error\s+model:"
    r"|model\b.{0,100}(does not exist|not found|is not available|decommissioned|no longer|not supported when using)"
)
_REFUSED = re.compile(
    r"content.?(policy|filter|management)|responsible.?ai|usage polic|safety (system|filter|setting)"
    r"|flagged|moderation|prohibited.?content"
)
_RATE = re.compile(r"rate.?limit|too many requests|resource.?exhausted")
_OVERLOAD = re.compile(r"overload|unavailable|server.?error|internal.?error|capacity|timed? ?out|upstream|\bapi_error")
_INVALID = re.compile(r"invalid_(request|image|prompt|base64|value)|unsupported_")
_AUTH = re.compile(r"(invalid|incorrect|missing).{0,10}api.?key|unauthor|authenticat|permission.?(denied|error)")
# OpenRouter, llama.cpp, Ollama, Groq, and servers that name what they do not know.
_NO_IMAGES = re.compile(
    r"(support|accept|handle)\w* (image|vision|multimodal)|image input is not supported|required for image input"
    r"|messages\S*content\S* must be a string|unknown variant .{0,3}image_url|image_url.{0,30}not supported"
    r"|image_url is only supported"
)
# Groq, where the model wrote a call that Groq could not read.
_BAD_CALL = re.compile(r"tool_use_failed")

_TEXTS: Mapping[type[ProviderError], tuple[str, str]] = {
    AuthFailed: ("{provider} did not accept the API key", "{check_key}"),
    QuotaExhausted: (
        "The account at {provider} has no quota or credit left",
        f"Check its billing, or {_OTHER}.",
    ),
    RateLimited: ("{provider} limits the rate of requests", f"Wait a little, or {_OTHER}."),
    ContextOverflow: (
        "The conversation does not fit into the context window of {model}",
        "Shorten it with /compact, or choose a model with a larger window.",
    ),
    Overloaded: ("{provider} is failing or overloaded", f"Try again in a little while, or {_OTHER}."),
    StreamBroken: ("The answer of {provider} was unusable", "Try again."),
    Refused: ("The safety system of {provider} refused the request", "Rephrase it, or choose another model."),
    ModelNotFound: ("{provider} does not serve the model {model}", "Choose another one with /model or --model."),
    BadRequest: (
        "{provider} did not accept the request to {url}",
        "Check the base URL and the model (/model, --model).",
    ),
}
_WITHOUT_IMAGES = (
    "The model of {provider} does not take images",
    "Choose a model that sees images with /model or --model, or go back to before the image with /tree.",
)


def refuses_images(endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether an answer other than 2xx says that the model does not take images."""
    return status not in (401, 403, 429) and bool(_NO_IMAGES.search(report_of(endpoint, status, headers, body).words))


def from_status(endpoint: Endpoint, url: str, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """The error that an answer other than 2xx stands for. `body` may be cut short."""
    report = report_of(endpoint, status, headers, body)
    if 300 <= status < 400:
        where = shown_url(headers.get("location", ""))
        text = f"{endpoint.provider} redirects {shown_url(url)} to {where}."
        return BadRequest(
            f"{text} Set its base URL to the new address.",
            provider=endpoint.provider,
            status=status,
        )
    return _typed(endpoint, url, report)


def from_error(endpoint: Endpoint, url: str, error: Any) -> ProviderError:
    """The error that an error object inside a successful answer stands for."""
    report = report_of_error(endpoint, error)
    if report.status is not None:
        return _typed(endpoint, url, report)
    kinds: tuple[tuple[re.Pattern[str], int], ...] = (
        (_AUTH, 401),
        (_QUOTA_CODE, 402),
        (_RATE, 429),
        (_OVERFLOW, 400),
        (_REFUSED, 400),
        (_NO_MODEL, 404),
        (_OVERLOAD, 503),
        (_INVALID, 400),
    )
    for pattern, status in kinds:
        if pattern.search(report.words):
            found = _typed(endpoint, url, report.replace(status=status))
            found.status = None
            return found
    return StreamBroken(
        f"{endpoint.provider} reported an error in its answer: {report.message} Try again, or {_OTHER}.",
        provider=endpoint.provider,
    )


def from_transport(
    endpoint: Endpoint, url: str, error: Exception, *, begun: bool, silence: float | None
) -> ProviderError:
    """The error that a failed connection stands for.

    `begun` says that part of an answer had come, `silence` is the limit of seconds without a byte.
    """
    import httpx

    name, shown = endpoint.provider, shown_url(url)
    reason = clean(endpoint, str(error)) or type(error).__name__
    if isinstance(error, httpx.ReadTimeout):
        text = f"{name} ({shown}) sent nothing for {silence or 0:g} s. Try again, or {_OTHER}."
    elif isinstance(error, (httpx.ReadError, httpx.RemoteProtocolError, httpx.DecodingError)):
        what = "broke off in the middle of its answer" if begun else "gave no answer"
        return StreamBroken(f"{name} ({shown}) {what}: {reason.removesuffix('.')}. Try again.", provider=name)
    elif isinstance(error, (httpx.InvalidURL, httpx.UnsupportedProtocol)):
        text = f"{name} cannot be reached: {shown!r} is not a usable URL ({reason}). Correct its base URL."
    elif isinstance(error, httpx.LocalProtocolError):
        return BadRequest(f"The request to {name} cannot be sent: {reason}.", provider=name)
    else:
        text = f"{name} cannot be reached at {shown}: {reason}. {_advice(shown, error)}"
    return Unreachable(text, provider=name)


def broken(endpoint: Endpoint, url: str, what: str, payload: bytes = b"") -> StreamBroken:
    """The error for an answer that is not what the wire format allows, with the beginning of what came."""
    text = f"{endpoint.provider} ({shown_url(url)}) {what}."
    if payload:
        text += f" It begins: {excerpt(endpoint, payload)}"
    return StreamBroken(text, provider=endpoint.provider)


def unsendable(endpoint: Endpoint, header: str) -> ProviderError:
    """The error for a header value that HTTP cannot carry."""
    if header in ("authorization", "x-api-key"):
        text = f"The API key of {endpoint.provider} holds characters that cannot be sent."
        return AuthFailed(f"{text} {_check_key(endpoint)}", provider=endpoint.provider)
    return BadRequest(
        f"The header {header!r} for {endpoint.provider} holds characters that cannot be sent. "
        "Correct it in config.yaml.",
        provider=endpoint.provider,
    )


def not_served(endpoint: Endpoint, error: ProviderError, served: Sequence[str]) -> ProviderError:
    """The error with what the service does serve, the nearest names first; as it is where that is unknown."""
    if not served:
        return error
    near = near_names(endpoint.model, served, _LISTED, enough=FAINTLY_LIKE)
    shown = list(dict.fromkeys([*near, *served]))[:_LISTED]
    more = f" and {len(served) - len(shown)} more" if len(served) > len(shown) else ""
    return ModelNotFound(
        f"{endpoint.provider} does not serve the model {endpoint.model!r}. "
        f"It serves {', '.join(shown)}{more}. Choose one with /model or --model.",
        provider=endpoint.provider,
        status=error.status,
        served=served,
    )


def _typed(endpoint: Endpoint, url: str, report: ErrorReport) -> ProviderError:
    kind = _kind(report)
    what, advice = _WITHOUT_IMAGES if kind is BadRequest and _NO_IMAGES.search(report.words) else _TEXTS[kind]
    facts = {
        "provider": endpoint.provider,
        "model": endpoint.model or "the model",
        "url": shown_url(url),
        "check_key": _check_key(endpoint),
    }
    text = f"{what.format(**facts)} ({report.status}): {report.message} {advice.format(**facts)}"
    if kind is RateLimited:
        return RateLimited(text, provider=endpoint.provider, status=report.status, retry_after=report.retry_after)
    return kind(text, provider=endpoint.provider, status=report.status)


def _kind(report: ErrorReport) -> type[ProviderError]:
    status, words = report.status or 0, report.words
    if status == 402 or _QUOTA_CODE.search(words):
        return QuotaExhausted
    if status == 429:
        # Gemini calls its limits per minute a quota, too, but says when to come back.
        return QuotaExhausted if _QUOTA.search(words) and report.retry_after is None else RateLimited
    if status == 413 or _OVERFLOW.search(words):
        return ContextOverflow
    if _NO_IMAGES.search(words):
        return BadRequest
    if status == 408 or status >= 500:
        return Overloaded
    if _BAD_CALL.search(words):
        return StreamBroken
    if _REFUSED.search(words):
        return Refused
    if status in (401, 403):
        return AuthFailed
    if status in (400, 404, 410, 422) and _NO_MODEL.search(words):
        return ModelNotFound
    return BadRequest


def _check_key(endpoint: Endpoint) -> str:
    if not endpoint.key_hint:
        return "Check API key: this provider is set up without one."
    return f"Check API key: {f'is {endpoint.key_hint} the right one?' if endpoint.key else f'set {endpoint.key_hint}.'}"


def _advice(shown: str, error: BaseException) -> str:
    if _untrusted(error):
        return "Where a proxy of your own signs certificates, set `ca_file` or SSL_CERT_FILE to its PEM file."
    host = urlsplit(shown).hostname or ""
    if host in ("localhost", "::1") or host.startswith("127."):
        return "Is the server running? Start it, or correct the base URL. Behind a proxy, list this host in NO_PROXY."
    return f"Check the network, the proxy and the base URL, or {_OTHER}."


def _untrusted(error: BaseException | None) -> bool:
    """Whether a connection failed because the certificate of the other side is not trusted."""
    import ssl

    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False
