"""The model services of services.toml, and the variables with their keys."""

from __future__ import annotations

from functools import cache
from typing import Any


def service_table() -> dict[str, dict[str, Any]]:
    """The services by name, each with the fields of its `ProviderSpec`."""
    import tomllib
    from importlib.resources import files

    return tomllib.loads(files("marvin_core.config").joinpath("services.toml").read_text(encoding="utf-8"))


@cache
def key_variables() -> frozenset[str]:
    """The variables with keys of these services, and with logins that are passed to their programs."""
    kinds = ("key_variables", "home_key_variables", "handed_on")
    return frozenset(name for one in service_table().values() for kind in kinds for name in one.get(kind, ()))
