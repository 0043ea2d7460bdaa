"""Converts failures reported by a service or the network into Marvin's typed errors. Imported after a failure.

Only this module and those it uses read the texts of services.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from .error_matching import rate_outgrown, says, window_in
from .error_reports import ErrorReport, clean, excerpt, report_of, report_of_error, shown_url
from .error_words import Kind

_LISTED = 8
_OTHER = "choose another model (/model, --model)"

_WITHOUT_STATUS: tuple[tuple[Kind, int], ...] = (
    ("key", 401),
    ("auth", 401),
    ("quota", 402),
    ("throttle", 429),
    ("rate", 429),
    ("overflow", 400),
    ("moderation", 400),
    ("model", 404),
    ("overload", 503),
    ("invalid", 400),
)
"""The HTTP status for an error inside an answer, by its words; the first match counts."""
_PASSING = (408, 409, 425, 498)
"""Statuses below 500 of errors that end by themselves: a timeout, a conflict with another request, a request that came
too early, and a full tier of Groq."""
_OLD_TLS = ("UNSUPPORTED_PROTOCOL", "TLSV1_ALERT_PROTOCOL_VERSION", "VERSION_TOO_LOW", "NO_PROTOCOLS_AVAILABLE")
_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "RECORD_LAYER_FAILURE")
"""OpenSSL's names for its errors."""

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
    "The model of {provider} does not accept images",
    "Choose a model that accepts images with /model or --model, or go back to before the image with /tree.",
)


def refuses_images(endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether an unsuccessful response says that the model accepts no images."""
    return status not in (401, 403, 429) and says("images", report_of(endpoint, status, headers, body).words)


def from_status(endpoint: Endpoint, url: str, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """The error for an unsuccessful response. `body` may be incomplete."""
    report = report_of(endpoint, status, headers, body)
    if 300 <= status < 400:
        where = clean(endpoint, shown_url(headers.get("location", "")))
        text = f"{endpoint.provider} redirects {shown_url(url)} to {where}."
        return BadRequest(
            f"{text} Set its base URL to the new address.",
            provider=endpoint.provider,
            status=status,
        )
    return _typed(endpoint, url, report, _kind(status, report))


def from_error(endpoint: Endpoint, url: str, error: Any) -> ProviderError:
    """The error for an error object inside a successful response."""
    report = report_of_error(endpoint, error)
    if report.status is not None:
        return _typed(endpoint, url, report, _kind(report.status, report))
    for kind, status in _WITHOUT_STATUS:
        if says(kind, report.words):
            return _typed(endpoint, url, report, _kind(status, report))
    return StreamBroken(
        f"{endpoint.provider} reported an error in its answer: {report.message} Try again, or {_OTHER}.",
        provider=endpoint.provider,
    )


def from_transport(
    endpoint: Endpoint, url: str, error: Exception, *, begun: bool, silence: float | None
) -> ProviderError:
    """The error for a failed connection. `begun` says whether part of an answer had arrived; `silence` is the timeout
    between two bytes in seconds.
    """
    import httpx

    name, shown = endpoint.provider, shown_url(url)
    reason = clean(endpoint, str(error)) or _closed(error)
    if isinstance(error, httpx.ReadTimeout):
        text = f"{name} ({shown}) sent nothing for {silence or 0:g} s. Try again, or {_OTHER}."
    elif isinstance(error, (httpx.ReadError, httpx.RemoteProtocolError, httpx.DecodingError)):
        what = "broke off in the middle of its answer" if begun else "gave no usable answer"
        final = isinstance(error, httpx.DecodingError)
        text = f"{name} ({shown}) {what}: {reason.removesuffix('.')}. Try again."
        return StreamBroken(text, provider=name, final=final)
    elif isinstance(error, (httpx.InvalidURL, httpx.UnsupportedProtocol)):
        text = f"{name} cannot be reached: {shown!r} is not a usable URL ({reason}). Correct its base URL."
    elif isinstance(error, httpx.LocalProtocolError):
        return BadRequest(f"The request to {name} cannot be sent: {reason}.", provider=name)
    else:
        text = f"{name} cannot be reached at {shown}: {reason}. {_advice(shown, error)}"
    never = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
    unsendable = (httpx.InvalidURL, httpx.UnsupportedProtocol)
    return Unreachable(text, provider=name, sent=not isinstance(error, (*never, *unsendable)))


def broken(endpoint: Endpoint, url: str, what: str, payload: bytes = b"") -> StreamBroken:
    """The error for an answer that violates the wire format, with its beginning."""
    text = f"{endpoint.provider} ({shown_url(url)}) {what}."
    if payload:
        text += f" It begins: {excerpt(endpoint, payload)}"
    return StreamBroken(text, provider=endpoint.provider)


def unsendable(endpoint: Endpoint, header: str) -> ProviderError:
    """The error for a header value that HTTP cannot transfer."""
    if header in ("authorization", "x-api-key"):
        text = f"The API key of {endpoint.provider} contains characters that cannot be sent."
        return AuthFailed(f"{text} {_check_key(endpoint)}", provider=endpoint.provider)
    return BadRequest(
        f"The header {header!r} for {endpoint.provider} contains characters that cannot be sent. Correct it in "
        "config.yaml.",
        provider=endpoint.provider,
    )


def not_served(endpoint: Endpoint, error: ProviderError, served: Sequence[str]) -> ProviderError:
    """The error with the models that the service serves, the nearest names first; unchanged if they are unknown."""
    if not served:
        return error
    others = [name for name in served if name != endpoint.model]
    near = near_names(endpoint.model, others, _LISTED, enough=FAINTLY_LIKE)
    shown = list(dict.fromkeys([*near, *others]))[:_LISTED]
    more = f" and {len(others) - len(shown)} more" if len(others) > len(shown) else ""
    if endpoint.model in served:
        what = f"{endpoint.provider} lists the model {endpoint.model!r}, but this account may not use it."
        choice = f": {', '.join(shown)}{more}." if shown else " of another provider: it lists no other."
        return ModelNotFound(
            f"{what} Choose another one with /model or --model{choice}",
            provider=endpoint.provider,
            status=error.status,
            served=served,
        )
    return ModelNotFound(
        f"{endpoint.provider} does not serve the model {endpoint.model!r}. "
        f"It serves {', '.join(shown)}{more}. Choose one with /model or --model.",
        provider=endpoint.provider,
        status=error.status,
        served=served,
    )


def _typed(endpoint: Endpoint, url: str, report: ErrorReport, kind: type[ProviderError]) -> ProviderError:
    blind = kind is BadRequest and says("images", report.words)
    what, advice = _WITHOUT_IMAGES if blind else _TEXTS[kind]
    facts = {
        "provider": endpoint.provider,
        "model": endpoint.model or "the model",
        "url": shown_url(url),
        "check_key": _check_key(endpoint),
    }
    status = "" if report.status is None else f" ({report.status})"
    text = f"{what.format(**facts)}{status}: {report.message} {advice.format(**facts)}"
    if kind is RateLimited or kind is Overloaded:
        return kind(text, provider=endpoint.provider, status=report.status, retry_after=report.retry_after)
    if kind is ContextOverflow:
        window = report.window or rate_outgrown(report.words) or window_in(report.words)
        return ContextOverflow(text, provider=endpoint.provider, status=report.status, window=window)
    return kind(text, provider=endpoint.provider, status=report.status)


def _kind(status: int, report: ErrorReport) -> type[ProviderError]:
    """The type of an error with this status. Signs that hold for any status come first: gateways invent statuses."""
    words = report.words
    if rate_outgrown(words) is not None:
        return ContextOverflow
    if says("throttle", words):
        return RateLimited
    # OpenRouter holds back what running requests may cost, and says when to come back.
    if status == 402 or says("quota", words):
        return QuotaExhausted if status != 402 or report.retry_after is None else RateLimited
    if status == 429:
        # Gemini calls its limits per minute a quota, too, but says when to come back.
        return QuotaExhausted if says("quota at 429", words) and report.retry_after is None else RateLimited
    if status == 413 or says("overflow", words):
        return ContextOverflow
    if says("images", words):
        return BadRequest
    if status in _PASSING or status >= 500:
        return Overloaded
    return _kind_of_refusal(status, words)


def _kind_of_refusal(status: int, words: str) -> type[ProviderError]:
    """The type of an error that is about the request, the model or the key."""
    if says("call", words):
        return StreamBroken
    if says("moderation", words):
        return Refused
    if says("key", words):
        return AuthFailed
    if status in (400, 401, 403, 404, 410, 422) and says("model", words):
        return ModelNotFound
    return AuthFailed if status in (401, 403) and not says("place", words) else BadRequest


def _closed(error: Exception) -> str:
    """The description of a transport error without a message."""
    import httpx

    return "the connection was closed" if isinstance(error, httpx.NetworkError) else type(error).__name__


def _check_key(endpoint: Endpoint) -> str:
    if not endpoint.key_hint:
        return "Check the key: this provider is set up without one."
    return f"Check the key in {endpoint.key_hint}." if endpoint.key else f"Check the key: set {endpoint.key_hint}."


def _advice(shown: str, error: BaseException) -> str:
    failure = tls_advice(shown, error)
    if failure:
        return failure
    host = urlsplit(shown).hostname or ""
    if host in ("localhost", "::1") or host.startswith("127."):
        return (
            "Is the server running? Start it, or correct the base URL. If you use a proxy, list this host in NO_PROXY."
        )
    return f"Check the network, the proxy and the base URL, or {_OTHER}."


def tls_advice(url: str, error: BaseException) -> str:
    """What to do if a server was reached but TLS failed; empty for other errors."""
    import ssl

    import httpx

    causes = list(_causes(error))
    found = next((cause for cause in causes if isinstance(cause, ssl.SSLError)), None)
    if isinstance(found, ssl.SSLCertVerificationError):
        return "If your proxy signs certificates itself, set `ca_file` or SSL_CERT_FILE to its PEM file."
    if found is not None and found.reason in _OLD_TLS:
        return "The server supports only old, insecure versions of TLS. It needs TLS 1.2 or newer."
    if found is not None and found.reason in _NO_TLS:
        return "The server does not use TLS. Correct the base URL: http:// instead of https://."
    reached = isinstance(error, httpx.ConnectError) and not any(map(_is_away, causes))
    if found is None and not (reached and url.startswith("https:")):
        return ""
    return (
        "The server was reached, but a TLS connection failed. It may support only versions before TLS 1.2, or no "
        "TLS: check the base URL and the proxy."
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and its causes."""
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            for inner in error.exceptions:
                yield from _causes(inner)
        error = error.__cause__ or error.__context__


def _is_away(error: BaseException) -> bool:
    """Whether no connection to the server was established."""
    import errno
    import socket

    if isinstance(error, (ConnectionRefusedError, socket.gaierror)):
        return True
    reset = (None, errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE, errno.ENOTCONN)
    return isinstance(error, OSError) and error.errno not in reset
