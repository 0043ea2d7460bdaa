"""Every error that Marvin raises on purpose.

MarvinError
├── UsageError                 a flag or an argument is wrong (exit code 2)
├── ConfigError                config.yaml, the environment or a key file is wrong
├── PluginError                a pack could not be loaded or registered
├── SessionError               a session file cannot be read, written or found
├── BudgetExceeded             the cost ceiling was reached (exit code 3)
├── OutputMismatch             the last answer does not fit the schema of --output-schema
├── ToolError                  a tool failed; the text goes to the model
│   ├── AddressRefused         an address is of this machine or of a private network
│   ├── RequestFailed          a request to an address of the web failed; may carry its status and retry_after
│   ├── FileChanged            a file is not what it was when it was read, or was never read
│   ├── NeverUndone            a call can never be undone, and /undo is to list it no longer
│   └── PathRefused            a path leads outside of the sandbox or to a protected place
└── ProviderError              a model service failed
    ├── RateLimited            429; may carry retry_after
    ├── QuotaExhausted         the account has no credit left
    ├── AuthFailed             401 or 403
    ├── ModelNotFound          the service does not serve this model
    ├── Unreachable            no connection, or no answer in time
    ├── Overloaded             5xx, 529; may carry retry_after
    ├── ContextOverflow        the request does not fit into the model's window; may carry its size
    ├── OutputLimit            the answer was cut at the output limit
    ├── StreamBroken           the answer broke off, or is not what the wire format allows
    ├── Refused                the service's own safety system refused
    ├── NotActed               there is no model, and no call of a tool is certain enough to be made
    └── BadRequest             any other 4xx
"""

from __future__ import annotations

from collections.abc import Sequence

_GATEWAY_TIMEOUTS = (504, 524)
"""Statuses of a gateway that gave up waiting; the service behind it may still process the request."""

EXIT_INTERRUPTED = 130
"""The exit code of a run that was interrupted, as shells have it for Ctrl+C."""


class MarvinError(Exception):
    """The base class. Its text says what happened and what to do next.

    `exit_code` is the exit code of the process when nothing handles the error.
    """

    exit_code = 1


class UsageError(MarvinError):
    """A flag, a sub-command or one of its values is wrong."""

    exit_code = 2


class ConfigError(MarvinError):
    """config.yaml, the environment or a key file is wrong."""


class PluginError(MarvinError):
    """A pack could not be loaded or registered."""


class SessionError(MarvinError):
    """A session file cannot be read, written or found."""


class OutputMismatch(MarvinError):
    """The last answer does not fit the schema that was asked for."""


class BudgetExceeded(MarvinError):
    """The cost ceiling of this run was reached, or that of the part that `within` names, such as play mode."""

    exit_code = 3

    def __init__(self, message: str, *, within: bool = False) -> None:
        super().__init__(message)
        self.within = within


class ToolError(MarvinError):
    """A tool failed. Raise it with what happened and what the model should do next."""


class AddressRefused(ToolError):
    """An address is of this machine or of a private network, which models may not read."""


class RequestFailed(ToolError):
    """A request of a tool or a hook failed; the text is written for the model.

    `status` is the HTTP status, None if there was no answer. `retry_after` is the number of seconds that the service
    asks to wait, if it says so.
    """

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class FileChanged(ToolError):
    """A file was not written, because it was changed since it was read, or not all of it was read."""


class NeverUndone(ToolError):
    """A call can never be undone. The tool that undoes it raises this, and `/undo` no longer lists the call."""


class PathRefused(ToolError):
    """A path leads outside of the sandbox, or to a protected place."""


class ProviderError(MarvinError):
    """A model service failed.

    `status` is the HTTP status, if there was one. `billed` says that the service may have processed and billed the
    request although it failed.
    """

    def __init__(self, message: str, *, provider: str = "", status: int | None = None) -> None:
        super().__init__(message)
        self.provider = provider
        self.status = status

    @property
    def billed(self) -> bool:
        return self.status in _GATEWAY_TIMEOUTS


class _Passing(ProviderError):
    """A temporary failure; `retry_after` is the number of seconds the service asks to wait, if it says so."""

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, provider=provider, status=status)
        self.retry_after = retry_after


class RateLimited(_Passing):
    """Too many requests; `retry_after` is the number of seconds the service asks to wait, if it says so."""


class QuotaExhausted(ProviderError):
    """The account has no credit or no quota left; waiting does not help."""


class AuthFailed(ProviderError):
    """The key is missing, wrong or not allowed to do this (401, 403)."""


class ModelNotFound(ProviderError):
    """The service does not serve this model; `served` names the models it does serve, if it says so."""

    def __init__(
        self, message: str, *, provider: str = "", status: int | None = None, served: Sequence[str] = ()
    ) -> None:
        super().__init__(message, provider=provider, status=status)
        self.served = tuple(served)


class Unreachable(ProviderError):
    """No connection to the service, or no byte from it in time; `sent` says that the request was sent."""

    def __init__(self, message: str, *, provider: str = "", status: int | None = None, sent: bool = False) -> None:
        super().__init__(message, provider=provider, status=status)
        self.sent = sent

    @property
    def billed(self) -> bool:
        return self.sent


class Overloaded(_Passing):
    """The service is failing or overloaded (5xx, 529); `retry_after` as of `RateLimited`.

    Without a status, the error was reported inside an answer.
    """

    @property
    def billed(self) -> bool:
        return self.status is None or super().billed


class ContextOverflow(ProviderError):
    """The request does not fit into the model's context window; `window` is its size in tokens, if the service says."""

    def __init__(
        self, message: str, *, provider: str = "", status: int | None = None, window: int | None = None
    ) -> None:
        super().__init__(message, provider=provider, status=status)
        self.window = window


class OutputLimit(ProviderError):
    """The answer reached the model's output limit before it had any usable content."""


class StreamBroken(ProviderError):
    """The answer ended early, or violates the wire format.

    `final` says that a retry would give the same answer.
    """

    def __init__(self, message: str, *, provider: str = "", status: int | None = None, final: bool = False) -> None:
        super().__init__(message, provider=provider, status=status)
        self.final = final

    @property
    def billed(self) -> bool:
        return True


class Refused(ProviderError):
    """The service's safety system refused to answer."""


class NotActed(ProviderError):
    """No model is configured, and the request does not match exactly one safe call of a tool.

    Its text names possible meanings, for people. `line` is the line `/name key=value ...` that does what was asked
    for, or the beginning of one if a value is missing; empty if there is none. `shell` is the same for a shell. A retry
    or another service does not help.
    """

    def __init__(self, message: str, *, line: str = "", shell: str = "", provider: str = "") -> None:
        super().__init__(message, provider=provider)
        self.line = line
        self.shell = shell


class BadRequest(ProviderError):
    """The service did not accept the request (any other 4xx)."""
