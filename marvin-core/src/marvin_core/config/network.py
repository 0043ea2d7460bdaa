"""What commands may reach on the network, as the user says it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ..api.config import NetworkKind, NetworkPolicy
from ..api.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from .file.sections import NetworkSettings

_WORDS = ("none", "loopback", "all")
_TAKES = "use none, loopback, all, or hosts, as in example.org,*.example.com"


def network_policy(flag: str | None, variable: str | None, setting: NetworkSettings) -> NetworkPolicy | None:
    """The policy by --network, else MARVIN_NETWORK, else config.yaml; None where none of them names one.

    Raises:
        UsageError, ConfigError: where it is none.
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
    # A word alone is rather a slip of the pen than a host.
    if not entries or (len(entries) == 1 and not set(entries[0]) & set(".:") and entries[0] != "localhost"):
        raise ValueError(_TAKES)
    return _of_hosts(entries)


def _of_hosts(entries: Any) -> NetworkPolicy:
    from ..util.patterns.hosts import HostList

    return NetworkPolicy(kind="hosts", hosts=HostList(entries).entries())
