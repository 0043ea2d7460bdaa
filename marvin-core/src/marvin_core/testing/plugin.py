"""The pytest plugin. It is loaded wherever marvin-core is installed, so it imports nothing until it is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .model_server import ModelServer


@pytest.fixture
def marvin_model_server() -> Iterator[ModelServer]:
    """A model server on loopback; give it its answers with `script`."""
    from .model_server import ModelServer

    with ModelServer() as server:
        yield server
