"""The kind of sandbox that restricts the programs of Marvin."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ...api.record import Record

RESULT = "sandbox.json"
"""The file in the cache folder that holds what the trial of this boot found."""
SandboxKind: TypeAlias = Literal["bubblewrap", "sandbox-exec", "none"]


class SandboxState(Record):
    """The sandbox of a session, as it was tried on this machine."""

    kind: SandboxKind
    lacks: tuple[str, ...] = ()
    """What it does not hold back, each as the end of "It does not hold back ..."; empty where all holds."""
    why: str = ""
    """Why there is none, or none that holds, for people; empty where all holds."""

    @property
    def holds(self) -> bool:
        """Whether writes, home, keys, `.git` and the network are all held back, so that nothing need be asked."""
        return self.kind != "none" and not self.lacks


NO_SANDBOX = SandboxState(kind="none", why="no sandbox was started")
