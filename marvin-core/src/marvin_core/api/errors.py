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
"""What is in front of a service gave it up, which may work on all the same."""

EXIT_INTERRUPTED = 130
"""The exit code of a run that was interrupted, as shells have it for Ctrl+C."""


class MarvinError(Exception):
    """The root of the tree. Its text says what happened and what to do next.

    `exit_code` is what the process leaves with when nobody handles the error.
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
    """The price ceiling of this run was reached; of a part of it, as play mode is, where `within` says so."""

    exit_code = 3

    def __init__(self, message: str, *, within: bool = False) -> None:
        super().__init__(message)
        self.within = within


class ToolError(MarvinError):
    """A tool failed. Raise it with what happened and what the model should do next."""


class AddressRefused(ToolError):
    """An address is of this machine or of a private network, which a model may not have read."""


class RequestFailed(ToolError):
    """A request of a tool or a hook failed, in words for the model.

    `status` is the HTTP status, None where there was no answer. `retry_after` is the number of seconds that the service
    asks to wait, if it says so.
    """

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class FileChanged(ToolError):
    """A file is not what it was when it was read, or was never read, so that it was not written."""


class PathRefused(ToolError):
    """A path leads outside of the sandbox, or to a place that tools may not touch."""


class ProviderError(MarvinError):
    """A model service failed.

    `status` is the HTTP status where there was one. `billed` says that the service may have worked on the request,
    and bill it, although it failed.
    """

    def __init__(self, message: str, *, provider: str = "", status: int | None = None) -> None:
        super().__init__(message)
        self.provider = provider
        self.status = status

    @property
    def billed(self) -> bool:
        return self.status in _GATEWAY_TIMEOUTS


class _Passing(ProviderError):
    """A failure that passes; `retry_after` is the number of seconds the service asks to wait, if it says so."""

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
    """The service does not serve this model; `served` names those it does serve, where it says so."""

    def __init__(
        self, message: str, *, provider: str = "", status: int | None = None, served: Sequence[str] = ()
    ) -> None:
        super().__init__(message, provider=provider, status=status)
        self.served = tuple(served)


class Unreachable(ProviderError):
    """No connection to the service, or no byte from it in time; `sent` says that it was given the request."""

    def __init__(self, message: str, *, provider: str = "", status: int | None = None, sent: bool = False) -> None:
        super().__init__(message, provider=provider, status=status)
        self.sent = sent

    @property
    def billed(self) -> bool:
        return self.sent


class Overloaded(_Passing):
    """The service is failing or overloaded (5xx, 529); `retry_after` as of `RateLimited`.

    Without a status it said so inside of an answer.
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
    """The answer was cut at the model's output limit before anything of use came."""


class StreamBroken(ProviderError):
    """The answer broke off in the middle, or is not what the wire format allows.

    `final` says that the same answer would come again, so that asking again is of no use.
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
    """There is no model, and the request does not mean one call that is certain and changes nothing.

    Its text says what could be meant, and is for people. `line` is the line `/name key=value ...` that does what was
    asked for when it is sent, or the beginning of one where something is still to be said; empty where there is none.
    `shell` is what does it in a shell. Trying again, or another model service, changes nothing about it.
    """

    def __init__(self, message: str, *, line: str = "", shell: str = "", provider: str = "") -> None:
        super().__init__(message, provider=provider)
        self.line = line
        self.shell = shell


class BadRequest(ProviderError):
    """The service did not accept the request (any other 4xx)."""
