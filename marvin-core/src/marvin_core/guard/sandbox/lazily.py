"""The sandbox of a session, imported when the first command runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from ...util.state_files import read_trusted_json

if TYPE_CHECKING:
    from ...api.config import Config
    from ..processes.program import Launcher
    from .network import SandboxNetwork
    from .session import SessionSandbox, Where
    from .state import SandboxState


class LazySandbox:
    """Creates the `SessionSandbox` of a session when it is first needed; see there for its methods."""

    def __init__(
        self,
        config: Config,
        where: Where,
        environment: Mapping[str, str],
        network: Callable[[], SandboxNetwork],
        warn: Callable[[str], None],
    ) -> None:
        def make() -> SessionSandbox:
            from .session import SessionSandbox

            return SessionSandbox(config, where, environment, network(), warn)

        self._config = config
        self._where = where
        self._environment = environment
        self._make = make
        self._made: SessionSandbox | None = None

    @cached_property
    def _switched_off(self) -> SandboxState:
        from .state import SandboxState

        return SandboxState(kind="none", why="it is switched off")

    @property
    def _session(self) -> SessionSandbox:
        if self._made is None:
            self._made = self._make()
        return self._made

    def is_expected(self) -> bool:
        """Whether commands will run in a sandbox, as far as known without a trial; fixed for a session."""
        if self._config.sandbox == "off" or sys.platform != "linux":
            return False
        from .state import RESULT

        kept = read_trusted_json(self._config.cache_folder / RESULT)
        if isinstance(kept, dict) and isinstance(kept.get("found"), dict):
            return bool(kept["found"].get("bubblewrap"))
        from .bubblewrap import candidates

        return bool(candidates(self._environment.get("PATH", os.defpath), self._where.root))

    async def state(self) -> SandboxState:
        """The sandbox that restricts commands."""
        if self._config.sandbox == "off":
            return self._switched_off
        return await self._session.state()

    async def launcher(self) -> Launcher | None:
        """The launcher of programs in the sandbox; None if there is no sandbox."""
        return None if self._config.sandbox == "off" else await self._session.launcher()

    def news(self) -> str:
        """One-time notes for the model."""
        return self._made.news() if self._made is not None else ""

    async def close(self) -> None:
        """End all processes in it, and remove its files."""
        if self._made is not None:
            await self._made.close()

    def kill(self) -> None:
        """End all processes in it, immediately."""
        if self._made is not None:
            self._made.kill()
