"""GitHub's API through gh, which has the user's login: answers as data, failures as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from marvin_core import ProcessResult, Record, ToolContext, ToolError, in_thread, one_line

from .repositories import host_of

TOKENS = ("GH_TOKEN", "GITHUB_TOKEN")
"""Environment variables that hold a token, in gh's order."""
SETTINGS = ("GH_HOST",)

ACCEPT = "application/vnd.github+json"
_ANSWER = 20_000_000
_SAID = 600
_ENVIRONMENT = {
    "GH_PROMPT_DISABLED": "1",
    "GH_NO_UPDATE_NOTIFIER": "1",
    "GH_FORCE_TTY": "",
    "GH_DEBUG": "",
    "GH_PAGER": "cat",
    "NO_COLOR": "1",
}
_NOT_LOGGED_IN = 4
"""The exit code of gh without a login (`gh help exit-codes`)."""
_LOGIN = "Ask the user to run: gh auth login (or to set GH_TOKEN)"
_TOO_OLD = ("unknown command", "unknown flag", "unknown shorthand flag")


class Answer(Record):
    """An answer of the API. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: Any


def environment(context: ToolContext) -> dict[str, str]:
    """The environment that gh gets in addition to that of all programs: its behaviour and its token."""
    given = dict(_ENVIRONMENT)
    for name in TOKENS:
        if value := context.secret(name, None):
            given[name] = value
    return given


def program(context: ToolContext) -> str:
    """The path of gh. Raises `ToolError` if it is not installed."""
    found = context.processes.which("gh", outside=True)
    if found is None:
        raise ToolError(
            "The GitHub CLI (gh) is not installed, or not in PATH. Ask the user to install it from "
            "https://cli.github.com/ and to log in with: gh auth login"
        )
    return found


async def get(
    context: ToolContext, what: str, path: str, fields: Mapping[str, str] | None = None, *, accept: str = ACCEPT
) -> Any:
    """An answer of the API.

    Args:
        what: what is requested, for error messages.
        path: of the API, built from validated parts.
        fields: query parameters; their values are sent as they are.

    Raises:
        ToolError: gh is missing, too old or not logged in, or GitHub is unreachable or refuses; the text says which,
            and what to do next.
    """
    given = [part for name, value in (fields or {}).items() for part in ("--raw-field", f"{name}={value}")]
    argv = [program(context), "api", "--include", "--method", "GET", "--header", f"Accept: {accept}", *given, path]
    # Outside of the sandbox, which hides the login: neither a model nor a repository controls what gh does.
    result = await context.processes.run(
        argv,
        cwd=context.home,
        env=environment(context),
        output_limit=_ANSWER,
        timeout=context.timeouts.http,
        outside=True,
    )
    if result.timed_out:
        raise ToolError(f"GitHub did not answer within {context.timeouts.http:g} s. Try again later.")
    if result.omitted:
        raise ToolError("GitHub's answer is too large. Ask for fewer results, or use a narrower query.")
    answer = await in_thread(lambda: _parsed(result.output))
    if answer is None or answer.status >= 400 or result.exit_code:
        raise _failure(context, what, answer, result)
    return answer.content


def _parsed(output: bytes) -> Answer | None:
    """An answer with its status line and headers; None if there is none."""
    head, _, body = output.replace(b"\r\n", b"\n").partition(b"\n\n")
    first, *lines = head.decode("utf-8", "replace").split("\n")
    protocol, _, status = first.partition(" ")
    if not protocol.startswith("HTTP/") or not status[:3].isdigit():
        return None
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    return Answer(status=int(status[:3]), headers=headers, content=content)


def _failure(context: ToolContext, what: str, answer: Answer | None, result: ProcessResult) -> ToolError:
    said = result.stderr.decode("utf-8", "replace").strip()
    if answer is not None and answer.status >= 400:
        return _refusal(context, what, answer)
    if answer is not None:
        return ToolError(f"GitHub sent an unexpected answer. gh says: {one_line(said, _SAID) or '(nothing)'}")
    if result.exit_code == _NOT_LOGGED_IN or "gh auth login" in said:
        return ToolError(f"gh is not logged in to {host_of(context)}. {_LOGIN}")
    if any(sign in said for sign in _TOO_OLD):
        return ToolError(
            f"gh is too old for this. Ask the user to update it (https://cli.github.com/). gh says: "
            f"{one_line(said.partition(chr(10))[0], _SAID)}"
        )
    return ToolError(
        f"GitHub cannot be reached: {one_line(said, _SAID) or 'gh says nothing'}. Try again later; if this "
        f"continues, ask the user whether this machine can reach api.{host_of(context)}."
    )


def _refusal(context: ToolContext, what: str, answer: Answer) -> ToolError:
    """The meaning of an error response."""
    status, said = answer.status, _message(answer.content)
    if status in (403, 429) and (waiting := _rate_limit(context, answer, said)):
        return ToolError(waiting)
    if status == 401:
        used = "GH_TOKEN" if any(context.secret(name, None) for name in TOKENS) else "gh's login"
        return ToolError(f"GitHub does not accept {used}: {said}. {_LOGIN}")
    if status == 403 and "x-github-sso" in answer.headers:
        return ToolError(f"The organisation requires a separate login (SAML): {said}. Ask the user: gh auth refresh")
    if status == 403:
        return ToolError(f"GitHub refuses this to the account of gh: {said}. Ask the user, or use a public repository.")
    if status == 404:
        return ToolError(
            f"GitHub does not have {what}, or it is private and the account of gh may not read it: {said}. Search "
            "for the right name with github_search, or ask the user."
        )
    if status == 422:
        return ToolError(f"GitHub does not accept this query: {said}. Change the query.")
    if status == 451:
        return ToolError(f"GitHub has blocked this for legal reasons: {said}.")
    if status >= 500:
        return ToolError(f"GitHub has trouble (HTTP {status}): {said}. Try again later.")
    return ToolError(f"GitHub answers with HTTP {status}: {said}.")


def _rate_limit(context: ToolContext, answer: Answer, said: str) -> str:
    """How long to wait, if the refusal is a rate limit; else empty.

    Source: docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
    """
    headers = answer.headers
    is_primary = headers.get("x-ratelimit-remaining") == "0"
    if not is_primary and "retry-after" not in headers and "rate limit" not in said.lower():
        return ""
    seconds = 60  # how long GitHub asks clients to wait by default
    if headers.get("retry-after", "").isdigit():
        seconds = int(headers["retry-after"])
    elif is_primary and headers.get("x-ratelimit-reset", "").isdigit():
        seconds = max(1, int(headers["x-ratelimit-reset"]) - int(context.clock.now()))
    which = "the limit of requests per hour or minute is reached" if is_primary else "too many requests came at once"
    return f"GitHub accepts no more requests for now: {which}. Do something else, and try again in {_for(seconds)}."


def _for(seconds: int) -> str:
    return f"{seconds} s" if seconds < 120 else f"{(seconds + 59) // 60} minutes"


def _message(content: Any) -> str:
    """GitHub's message, with the reasons that it gives."""
    if not isinstance(content, Mapping):
        return "no reason is given"
    errors = content.get("errors")
    parts = [content, *(errors if isinstance(errors, list) else [])]
    said = [part.get("message") if isinstance(part, Mapping) else part for part in parts]
    text = "; ".join(part for part in said if isinstance(part, str) and part)
    return one_line(text, _SAID).rstrip(".") or "no reason is given"
