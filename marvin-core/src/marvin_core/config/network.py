"""The user's network policy for commands in the sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ..api.config import NetworkKind, NetworkPolicy
from ..api.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from .file.sections import NetworkSettings

_WORDS = ("none", "loopback", "all")
_TAKES = "use none, loopback, all, or hosts, as in example.org,*.example.com"


def network_policy(flag: str | None, variable: str | None, setting: NetworkSettings) -> NetworkPolicy | None:
    """The policy from --network, else MARVIN_NETWORK, else config.yaml; None if none of them sets it.

    Raises:
        UsageError, ConfigError: the value is invalid.
    """
    if flag is not None:
        try:
            return _of_text(flag)
        except ValueError as error:
            raise UsageError(f"--network is {flag!r}; {str(error).rstrip('.')}.") from None
    if variable:
        try:
            return _of_text(variable)
        except ValueError as error:
            raise ConfigError(f"MARVIN_NETWORK is {variable!r}; {error}.") from None
    return NetworkPolicy(kind=setting.kind, hosts=setting.hosts) if setting.kind else None


def _of_text(text: str) -> NetworkPolicy:
    if text in _WORDS:
        return NetworkPolicy(kind=cast("NetworkKind", text))
    entries = [entry.strip() for entry in text.split(",") if entry.strip()]
    # A single word without a dot is more likely a typing error than a host.
    if not entries or (len(entries) == 1 and not set(entries[0]) & set(".:") and entries[0] != "localhost"):
        raise ValueError(_TAKES)
    return _of_hosts(entries)


def _of_hosts(entries: Any) -> NetworkPolicy:
    from ..util.patterns.hosts import HostList

    return NetworkPolicy(kind="hosts", hosts=HostList(entries).entries())
