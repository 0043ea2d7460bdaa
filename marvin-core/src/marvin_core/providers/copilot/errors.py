"""Converts the reports of Copilot's runtime into Marvin's typed errors. Imported after a failure."""

from __future__ import annotations

import re

from ...api.errors import AuthFailed, ModelNotFound, ProviderError, StreamBroken, Unreachable
from ...api.providers import Endpoint
from ...util.untrusted_json import parse_json
from ..http.error_mapping import from_error
from ..http.error_reports import clean, shown_url
from .installation import LOG_IN

_STATUS_OF = {
    "authentication": 401,
    "authorization": 403,
    "quota": 402,
    "rate_limit": 429,
    "context_limit": 413,
    "context_length": 413,
}
"""The HTTP status for a kind of error, if the runtime reports no status."""
_NO_LOGIN = re.compile(r"no github oauth token|not authenticated|authentication failed|hmac key|bad credentials", re.I)
_NO_WAY = re.compile(
    r"network fetch failed|could not connect|econnrefused|enotfound|etimedout|dns error|client error \(connect\)",
    re.I,
)
_NO_MODEL = re.compile(r"model\b.{0,80}(not supported|not available|not enabled|not found|unknown)|model_not", re.I)
_WRAPPED = re.compile(r"^(JSON-RPC Error -?\d+: )?(Request [\w.]+ failed with message: )?(Execution failed: \w+, )?")
_LONGEST = 64 * 1024
_OTHER = "choose another model (/model, --model)"


def typed(endpoint: Endpoint, message: str, kind: str = "", status: int | None = None) -> ProviderError:
    """The error for a report of the runtime: its text, its kind, and the status of the service behind it."""
    message, code = _unwrapped(message[:_LONGEST])
    shown = clean(endpoint, message) or "no explanation was given."
    if not re.search(r"[.!?…]$", shown):
        shown += "."
    status = status or _STATUS_OF.get(kind)
    if status is None and _NO_WAY.search(message):
        where = f" at {shown_url(endpoint.base_url)}" if endpoint.base_url else ""
        text = f"{endpoint.provider} cannot be reached{where}: {shown} Check the network and the proxy, or {_OTHER}."
        return Unreachable(text, provider=endpoint.provider)
    if not endpoint.base_url and (status in (401, 403) or _NO_LOGIN.search(message)):
        return AuthFailed(
            f"GitHub Copilot has no login here, or did not accept it: {shown} {LOG_IN}",
            provider=endpoint.provider,
            status=status,
        )
    if status in (None, 400, 404) and _NO_MODEL.search(f"{message} {code}"):
        text = f"{endpoint.provider} does not serve the model {endpoint.model!r} to this account: {shown}"
        return ModelNotFound(
            f"{text} Choose another one with /model or --model.", provider=endpoint.provider, status=status
        )
    return from_error(endpoint, endpoint.base_url, {"message": message, "type": code or kind, "code": status})


def died(endpoint: Endpoint) -> StreamBroken:
    """The error for a runtime that ended during an answer."""
    return StreamBroken(
        f"The program `copilot`, which {endpoint.provider} uses, ended in the middle of an answer. Try again.",
        provider=endpoint.provider,
    )


def silent(endpoint: Endpoint, seconds: float) -> Unreachable:
    """The error for a runtime that stopped sending events."""
    text = f"{endpoint.provider} sent nothing for {seconds:g} s. Try again, or {_OTHER}."
    return Unreachable(text, provider=endpoint.provider, sent=True)


def not_started(endpoint: Endpoint, program: str, reason: str) -> Unreachable:
    """The error for a runtime that cannot be started."""
    shown = clean(endpoint, reason) or "it gave no reason"
    return Unreachable(
        f"Copilot's program {program} could not be started: {shown}. Try `{program} --version`, or {_OTHER}.",
        provider=endpoint.provider,
    )


def _unwrapped(message: str) -> tuple[str, str]:
    """The message without the texts that the runtime and its protocol add, and the error code next to it."""
    message = _WRAPPED.sub("", message.strip())
    try:
        document = parse_json(message)
    except ValueError:
        return message, ""
    if isinstance(document, str):
        return document, ""
    if not isinstance(document, dict):
        return message, ""
    inner = document.get("error", document)
    if not isinstance(inner, dict):
        return str(inner), ""
    return str(inner.get("message") or message), str(inner.get("code") or inner.get("type") or "")
