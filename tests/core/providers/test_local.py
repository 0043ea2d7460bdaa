"""The provider `local` where it cannot work: what it says, and what to do."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from marvin_core.api.errors import ConfigError, MarvinError, ModelNotFound
from marvin_core.builtin import marvin_register_providers
from marvin_core.config.load import load
from marvin_core.providers.local import create
from marvin_core.providers.selection.catalog import Catalog
from marvin_core.providers.selection.choose import choose
from tests.support.chatting import request


def failure(home: Path, model: str) -> MarvinError:
    """What the first request fails with."""
    config, secrets = load(("--model", f"local/{model}"), {"HOME": str(home)}, cwd=home)
    chosen = choose(config, Catalog(config, secrets, tuple(marvin_register_providers())))
    assert chosen.endpoint is not None
    assert chosen.local

    async def ask() -> None:
        assert chosen.endpoint is not None
        provider = create(chosen.endpoint, pytest.fail)
        try:
            async with aclosing(provider.stream(request())) as deltas:  # type: ignore[type-var]
                async for _ in deltas:
                    pytest.fail("it answered")
        finally:
            await provider.aclose()

    with pytest.raises(MarvinError) as caught:
        asyncio.run(ask())
    return caught.value


def test_it_wants_a_file(tmp_path: Path) -> None:
    said = failure(tmp_path, "")
    assert isinstance(said, ConfigError)
    assert "needs a GGUF file: --model local/PATH.gguf" in str(said)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    said = failure(tmp_path, f"{tmp_path}/none.gguf")
    assert isinstance(said, ModelNotFound)
    assert str(said).startswith(f"There is no file {tmp_path}/none.gguf.")


def test_without_its_package_it_says_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    assert 'pip install "marvin-core[local]"' in str(failure(tmp_path, f"{tmp_path}/model.gguf"))
