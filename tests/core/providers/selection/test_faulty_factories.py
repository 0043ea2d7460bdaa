"""Providers of packs that cannot be created: each is named with its pack, and ends nothing else."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from marvin_core import ClientFactory, Endpoint, ProviderSpec
from marvin_core.api.errors import PluginError
from marvin_core.http.clients import Clients
from marvin_core.providers.selection.catalog import Catalog
from marvin_core.providers.selection.choose import choose
from marvin_core.providers.selection.models import Models
from tests.support.engine import settled


def raises(endpoint: Endpoint, client: ClientFactory) -> None:
    """Fail, as a factory of a pack may."""
    raise RuntimeError("no such colour")


def leaves(endpoint: Endpoint, client: ClientFactory) -> None:
    """Want to leave the program."""
    raise SystemExit(3)


def cancels(endpoint: Endpoint, client: ClientFactory) -> None:
    """Cancel what nobody asked to be cancelled."""
    raise asyncio.CancelledError


def nothing(endpoint: Endpoint, client: ClientFactory) -> None:
    """Make nothing."""


def never_ready(environment: object) -> str:
    """Fail to say whether it is set up."""
    raise KeyboardInterrupt


def models_with(tmp_path: Path, spec: ProviderSpec) -> Models:
    config, secrets = settled(tmp_path, "--provider", "faulty")
    catalog = Catalog(config, secrets, [spec])
    return Models(catalog, choose(config, catalog), config, Clients(config), lambda *_, free: None)


def faulty(factory: str) -> ProviderSpec:
    return ProviderSpec(
        name="faulty",
        factory=f"{__name__}:{factory}",
        base_url="http://127.0.0.1:9",
        default_model="m",
        source="marvin-faulty",
    )


@pytest.mark.parametrize(
    ("factory", "why"),
    [
        ("raises", "cannot be used: RuntimeError: no such colour."),
        ("leaves", "cannot be used: SystemExit: 3."),
        ("cancels", "cannot be used: CancelledError."),
        ("nothing", "cannot be used: TypeError: its factory made None, which is not a provider."),
    ],
)
def test_a_factory_that_fails_is_named_with_its_pack(tmp_path: Path, factory: str, why: str) -> None:
    with pytest.raises(PluginError) as refused:
        models_with(tmp_path, faulty(factory)).first()
    assert f"The provider faulty of marvin-faulty {why}" in str(refused.value)
    assert "correct or remove its pack" in str(refused.value)


def test_what_cannot_say_that_it_is_ready_is_not(tmp_path: Path) -> None:
    config, secrets = settled(tmp_path)
    unready = faulty("raises").replace(base_url="", ready=f"{__name__}:never_ready")
    assert list(Catalog(config, secrets, [unready]).set_up()) == []
