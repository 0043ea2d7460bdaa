"""The interface of the garden."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from marvin_core import SessionControl

from .settings import GardenSettings


class Fence:
    """Asks once, shows nothing, and leaves with the number of litres."""

    def __init__(self) -> None:
        self.shown = ""

    def run(self, session: SessionControl, prompt: str | None) -> int:
        """One prompt."""

        async def go() -> None:
            try:
                self.shown = (await session.submit(prompt or "hello")).text
            finally:
                await session.close()

        asyncio.run(go())
        return session.pack("garden").settings(GardenSettings).litres

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """Always the first choice."""
        return choices[0]
