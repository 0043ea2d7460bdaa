"""Questions to the user before calls run, and the possible answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from .config import PermissionMode
from .record import Record

PermissionAnswer: TypeAlias = Literal["once", "session", "always", "edit", "no"]
"""The possible answers for a call.

`once` runs it, `session` also all similar calls until Marvin ends, `always` stores a rule. `edit` runs another
command instead. `no` denies it.
"""


class AskedCall(Record):
    """A call that needs approval. All characters of its texts are visible: invisible ones are written as escapes.

    `reason`, `alarm`, `remember` and each of `paths` are one line, and may be part of an interface's own text. Show
    `text`, `findings` and `diff` separately from it.
    """

    call_id: str
    name: str
    text: str
    """What runs: the complete command, or the arguments, one per line."""
    reason: str
    """Why it needs approval, with the rule, as the end of a sentence."""
    command: str = ""
    """The original command, for editing; empty if the call has none, or if it must not be shown."""
    paths: tuple[str, ...] = ()
    """The files that it would change, as far as known in advance."""
    diff: str = ""
    """The changes as unified diffs; empty if unknown."""
    findings: tuple[str, ...] = ()
    """Remarks on the parts of a command, one per line."""
    alarm: str = ""
    """Why the call is dangerous, as in `removes the working directory`; empty if it is not."""
    remember: str = ""
    """The allow rule that `always` would store; empty if none is offered."""
    answers: tuple[PermissionAnswer, ...] = ("once", "no")
    """The possible answers. If a rule or a hook requires approval, it does so each time: `session` and `always` are
    not offered."""


class Question(Record):
    """A question to the user. `calls` has all calls of one answer that need approval; it is empty for `trust`."""

    kind: Literal["calls", "trust"]
    text: str
    """The question in one line."""
    calls: tuple[AskedCall, ...] = ()
    details: tuple[str, ...] = ()
    """For `trust`: the extensions of the folder, one per line."""

    @property
    def alarm(self) -> str:
        """The `alarm` of the most dangerous call; empty if none is dangerous."""
        return next((call.alarm for call in self.calls if call.alarm), "")

    @property
    def answers(self) -> int:
        """The number of replies: one for each call, or one for any other question."""
        return max(1, len(self.calls))


class Reply(Record):
    """The answer to one call, or to a question without calls."""

    says: PermissionAnswer
    text: str = ""
    """With `no`: the reason for the model."""
    rule: str = ""
    """With `always`: the rule to store."""
    command: str = ""
    """With `edit`: the command to run."""


NO = Reply(says="no")


@runtime_checkable
class PermissionUI(Protocol):
    """An optional part of an interface that asks for approval in a form of its own.

    An interface without it gets the question as text, with the choices yes, session, always and no, by its `ask`.
    """

    async def permit(self, question: Question) -> Sequence[Reply]:
        """Ask the user; returns one reply for each call, in their order.

        Input typed before the question was shown must not count as an answer. No time-out runs meanwhile. A call
        without a reply does not run.
        """
        ...


class ProjectTrust(Record):
    """Whether the extensions in a folder may be loaded. Its instruction files are read in any case."""

    folder: str
    brings: tuple[str, ...]
    """The files, relative to the folder: hooks, tools, commands, settings, servers."""
    details: tuple[str, ...] = ()
    """A description of each, one per line, with the changed settings and the started servers.

    It is not escaped: escape it before showing it."""
    trusted: bool
    why: str
    """Where the trust comes from, or why there is none, as the end of a sentence."""
    digest: str
    """A digest of the content; empty if a part of it cannot be read, so that trust cannot be given."""
    asked: bool = False
    """Whether the user has answered for exactly this content."""


class PermissionControl(Protocol):
    """The permission mode of a session. A change applies from the next call on."""

    @property
    def mode(self) -> PermissionMode:
        """The current mode. A mode that depends on the sandbox is `ask` until a call or `settle` has checked it."""
        ...

    async def settle(self) -> None:
        """Determine the current mode, if it depends on the sandbox; the first time on a machine runs a test."""
        ...

    def switch(self, mode: str) -> None:
        """Switch to another mode. Raises `UsageError` for an unknown one."""
        ...

    def cycle(self) -> PermissionMode:
        """Switch to the next mode, and return it."""
        ...

    @property
    def remembered(self) -> Sequence[str]:
        """The approvals for this session, one per line."""
        ...

    def project(self) -> ProjectTrust:
        """Whether the extensions of the working directory may be loaded. Blocks: call it in a thread."""
        ...

    async def trust_project(self) -> ProjectTrust:
        """Ask in an interactive session whether to trust the working directory, if it is not yet; store the answer."""
        ...

    def distrust_project(self) -> None:
        """Revoke the trust in the working directory. Blocks: call it in a thread."""
        ...
