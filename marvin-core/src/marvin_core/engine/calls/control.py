"""How much a session asks, as interfaces see and change it."""

from __future__ import annotations

from collections.abc import Sequence

from ...api.config import PermissionMode
from ...api.permissions import ProjectTrust, Question
from ...guard.permissions.modes import StandingPermissions
from ...util.threads import in_thread
from ..parts import SessionParts


class SessionPermissions:
    """The mode, what was allowed, and the trust in the folder; `PermissionControl` says what each is for."""

    def __init__(self, parts: SessionParts) -> None:
        self._parts = parts
        self.standing = StandingPermissions(parts.config, attended=parts.setup.asker is not None)

    def switch(self, mode: str) -> None:
        """Go over to another mode. Raises `UsageError` for one that there is not."""
        self.standing.switch(mode)
        self._hand_on()

    def cycle(self) -> PermissionMode:
        """Go over to the next mode, and return it."""
        self.standing.cycle()
        self._hand_on()
        return self.mode

    def _hand_on(self) -> None:
        """Have a Marvin that a command starts from now on be held to the mode."""
        self._parts.environment["MARVIN_PERMISSION_MODE"] = self.mode

    @property
    def mode(self) -> PermissionMode:
        """The mode that is on."""
        return self.standing.mode

    async def settle(self) -> None:
        """Find out which mode is on, where that depends on the sandbox."""
        if self.standing.is_open:
            self.standing.settle(holds=(await self._parts.sandbox.state()).holds)

    @property
    def remembered(self) -> Sequence[str]:
        """What was allowed for this session, a line each."""
        return self.standing.remembered

    def project(self) -> ProjectTrust:
        """Whether what the working directory brings may be loaded. Blocks: call it in a thread."""
        from ...guard.trust import TrustStore

        return TrustStore(self._parts.config).look(self._parts.workspace.root)

    async def trust_project(self) -> ProjectTrust:
        """Ask whether the working directory is trusted, where it is not and somebody is there; keep the answer."""
        from ...guard.trust import TrustStore
        from ...util.terminal_text import exact_line
        from .asking import put

        found = await in_thread(self.project)
        if found.trusted or not found.brings or not found.digest or self._parts.setup.asker is None:
            return found
        question = Question(
            kind="trust",
            text=f"Trust the code and settings of {exact_line(found.folder)}? They are then loaded and run with all "
            "of your rights.",
            details=tuple(map(exact_line, found.details)),
        )
        if (await put(question, self._parts.setup))[0].says == "once":
            await in_thread(lambda: TrustStore(self._parts.config).trust(found))
        return await in_thread(self.project)

    def distrust_project(self) -> None:
        """Forget the trust in the working directory. Blocks: call it in a thread."""
        from ...guard.trust import TrustStore

        TrustStore(self._parts.config).forget(self._parts.workspace.root)
