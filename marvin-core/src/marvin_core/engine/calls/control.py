"""The permissions of a session, for interfaces to show and change."""

from __future__ import annotations

from collections.abc import Sequence

from ...api.config import PermissionMode
from ...api.permissions import ProjectTrust, Question
from ...guard.permissions.modes import StandingPermissions
from ...util.threads import in_thread
from ..parts import SessionParts


class SessionPermissions:
    """The mode, the approvals, and the trust in the folder; `PermissionControl` explains each."""

    def __init__(self, parts: SessionParts) -> None:
        self._parts = parts
        self.standing = StandingPermissions(parts.config, attended=parts.setup.asker is not None)

    def switch(self, mode: str) -> None:
        """Switch to another mode. Raises `UsageError` for an unknown one."""
        self.standing.switch(mode)
        self._hand_on()

    def cycle(self) -> PermissionMode:
        """Switch to the next mode, and return it."""
        self.standing.cycle()
        self._hand_on()
        return self.mode

    def _hand_on(self) -> None:
        """Apply the mode to each Marvin that a command starts from now on."""
        self._parts.environment["MARVIN_PERMISSION_MODE"] = self.mode

    @property
    def mode(self) -> PermissionMode:
        """The current mode."""
        return self.standing.mode

    async def settle(self) -> None:
        """Determine the current mode, if it depends on the sandbox."""
        if self.standing.is_open:
            self.standing.settle(holds=(await self._parts.sandbox.state()).holds)

    @property
    def remembered(self) -> Sequence[str]:
        """The approvals of this session, one per line."""
        return self.standing.remembered

    def project(self) -> ProjectTrust:
        """Whether the extensions of the working directory may be loaded. Blocks: call it in a thread."""
        from ...guard.trust import TrustStore

        return TrustStore(self._parts.config).look(self._parts.workspace.root)

    async def trust_project(self) -> ProjectTrust:
        """Ask whether to trust the working directory, if that is undecided and a person is there; store the answer."""
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
        """Revoke the trust in the working directory. Blocks: call it in a thread."""
        from ...guard.trust import TrustStore

        TrustStore(self._parts.config).forget(self._parts.workspace.root)
