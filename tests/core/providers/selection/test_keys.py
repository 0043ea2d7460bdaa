"""Keys of services: what becomes of one that is being tried out."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from marvin_core.api.providers import Secret
from marvin_core.app import App
from marvin_core.config.load import load
from tests.support.prepared_index import give_index

BEFORE, AFTER = "gsk-before-0123456789", "gsk-after-0123456789"


def test_a_key_whose_trial_is_cancelled_is_not_used(tmp_path: Path) -> None:
    """The service does not answer, and the user has had enough: the key before counts on."""
    asyncio.run(_cancelled(tmp_path))


async def _cancelled(tmp_path: Path) -> None:
    asked, over = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await reader.read()
        writer.close()
        over.set()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    env = {"GROQ_API_KEY": BEFORE, "GROQ_BASE_URL": f"http://127.0.0.1:{port}/v1", "MARVIN_PACKS": "core"}
    (tmp_path / "marvin").mkdir()
    given = {"HOME": str(tmp_path), "MARVIN_HOME": str(tmp_path / "marvin"), "GROQ_MODEL": "m", **env}
    config, secrets = load(["--provider", "groq"], given, cwd=tmp_path)
    app = App(give_index(config), secrets, warn=pytest.fail)
    async with server:
        trial = asyncio.ensure_future(app.keys().try_out("groq", Secret(AFTER)))
        await asyncio.wait_for(asked.wait(), 30)
        assert secrets.given("GROQ_API_KEY").reveal() == AFTER
        trial.cancel()
        with pytest.raises(asyncio.CancelledError):
            await trial
        assert secrets.given("GROQ_API_KEY").reveal() == BEFORE
        assert AFTER in secrets.known()
        await app.models.aclose()
        await asyncio.wait_for(over.wait(), 30)
