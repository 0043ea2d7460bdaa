"""What commands may reach on the network, as the user says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ..api.config import NetworkKind, NetworkPolicy
from ..api.errors import ConfigError, UsageError

_WORDS = ("none", "loopback", "all")
_TAKES = "it takes none, loopback, all, or hosts, as in example.org,*.example.com"


def network_policy(flag: str | None, variable: str | None, setting: str | Mapping[str, Any]) -> NetworkPolicy | None:
    """The policy by --network, else MARVIN_NETWORK, else config.yaml; None where none of them names one.

    Raises:
        UsageError, ConfigError: where it is none.
    """
    if flag is not None:
        try:
            return _of_text(flag)
        except ValueError as error:
            raise UsageError(f"--network is {flag!r}; {error}.") from None
    if variable:
        try:
            return _of_text(variable)
        except ValueError as error:
            raise ConfigError(f"MARVIN_NETWORK is {variable!r}; {error}.") from None
    return network_setting(setting)


def network_setting(setting: str | Mapping[str, Any]) -> NetworkPolicy | None:
    """`network:` of config.yaml; None where it is empty. Raises `ConfigError` for what is no policy."""
    if not setting:
        return None
    try:
        return _of_word(setting) if isinstance(setting, str) else _of_hosts(map(str, setting.get("hosts", [])))
    except ValueError as error:
        raise ConfigError(f"network in config.yaml: {error}.") from None


def _of_word(text: str) -> NetworkPolicy:
    if text not in _WORDS:
        raise ValueError(f"{text!r} is none of none, loopback and all. Hosts stand below it: `hosts: [example.org]`")
    return NetworkPolicy(kind=cast("NetworkKind", text))


def _of_text(text: str) -> NetworkPolicy:
    if text in _WORDS:
        return _of_word(text)
    entries = [entry.strip() for entry in text.split(",") if entry.strip()]
    # A word alone is rather a slip of the pen than a host.
    if not entries or (len(entries) == 1 and not set(entries[0]) & set(".:") and entries[0] != "localhost"):
        raise ValueError(_TAKES)
    return _of_hosts(entries)


def _of_hosts(entries: Any) -> NetworkPolicy:
    from ..util.patterns.hosts import HostList

    return NetworkPolicy(kind="hosts", hosts=HostList(entries).entries())
