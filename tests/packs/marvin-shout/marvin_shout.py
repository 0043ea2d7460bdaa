"""An interface: it shouts the answers."""

import asyncio
from collections.abc import Iterable, Sequence

from marvin_core import SessionControl, UISpec, hookimpl


class Shout:
    """Answers the prompt it was started with, in capitals."""

    def run(self, session: SessionControl, prompt: str | None) -> int:
        return asyncio.run(self._run(session, prompt or "hello"))

    async def _run(self, session: SessionControl, prompt: str) -> int:
        result = await session.submit(prompt)
        print(result.text.upper())
        await session.close()
        return 0

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        return choices[0]


@hookimpl
def marvin_register_uis() -> Iterable[UISpec]:
    """One interface; `ui: shout` in config.yaml chooses it."""
    return [UISpec(name="shout", factory="marvin_shout:Shout")]
