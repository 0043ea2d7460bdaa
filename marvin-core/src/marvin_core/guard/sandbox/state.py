"""The kind of sandbox that restricts the programs of Marvin."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ...api.record import Record

RESULT = "sandbox.json"
"""The file in the cache folder with the result of this boot's trial."""
SandboxKind: TypeAlias = Literal["bubblewrap", "sandbox-exec", "none"]


class SandboxState(Record):
    """The sandbox of a session, according to its trial on this machine."""

    kind: SandboxKind
    lacks: tuple[str, ...] = ()
    """The actions that it does not block, each as the end of "It does not hold back ..."; empty if all are."""
    why: str = ""
    """Why there is none, or no effective one, for people; empty for an effective one."""

    @property
    def holds(self) -> bool:
        """Whether it is effective for writes, home, keys, `.git` and the network, so that calls can skip approval."""
        return self.kind != "none" and not self.lacks


NO_SANDBOX = SandboxState(kind="none", why="no sandbox was started")
