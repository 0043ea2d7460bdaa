"""What a person is asked before calls run, and what may be answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from .config import PermissionMode
from .record import Record

PermissionAnswer: TypeAlias = Literal["once", "session", "always", "edit", "no"]
"""What may be said to a call.

`once` lets it run, `session` also all calls like it until Marvin ends, `always` stores a rule. `edit` has another
command run in its place. `no` refuses it.
"""


class AskedCall(Record):
    """A call that waits for a yes. Its texts show every character: what cannot be seen is written as an escape.

    `reason`, `alarm`, `remember` and each of `paths` are one line, and may stand among an interface's own words. The
    others, `text`, `findings` and `diff`, are to be set off from those.
    """

    call_id: str
    name: str
    text: str
    """What runs: the whole command, or the arguments, one a line. Nothing is cut."""
    reason: str
    """Why it is asked about, with the rule behind it, as the end of a sentence."""
    command: str = ""
    """The command as it is, for whoever wants to change it; empty where the call has none, or it may not be shown."""
    paths: tuple[str, ...] = ()
    """The files that it would change, as far as that is known beforehand."""
    diff: str = ""
    """What it would change in them, as unified diffs; empty where that is not known."""
    findings: tuple[str, ...] = ()
    """What is said of the parts of a command, each a line."""
    alarm: str = ""
    """What makes the call dangerous, as in `removes the working directory`; empty for a plain one."""
    remember: str = ""
    """The allow rule that `always` would store; empty where none is offered."""
    answers: tuple[PermissionAnswer, ...] = ("once", "no")
    """What may be answered. What a rule or a hook asks about is asked each time, so that no other yes is offered."""


class Question(Record):
    """What a person is asked. `calls` has all calls of one answer that need a yes; it is empty for `trust`."""

    kind: Literal["calls", "trust"]
    text: str
    """The question in a line."""
    calls: tuple[AskedCall, ...] = ()
    details: tuple[str, ...] = ()
    """For `trust`: what the folder brings, a line each."""

    @property
    def alarm(self) -> str:
        """What makes the most dangerous of the calls so; empty where none is."""
        return next((call.alarm for call in self.calls if call.alarm), "")

    @property
    def answers(self) -> int:
        """How many replies it takes: one for each call, one for anything else."""
        return max(1, len(self.calls))


class Reply(Record):
    """What a person says to one call, or to a question that is about none."""

    says: PermissionAnswer
    text: str = ""
    """With `no`: what the model is told."""
    rule: str = ""
    """With `always`: the rule to store."""
    command: str = ""
    """With `edit`: the command to run."""


NO = Reply(says="no")


@runtime_checkable
class PermissionUI(Protocol):
    """What an interface does besides, that asks about calls in a form of its own.

    One that does not have it gets the question as text, with the choices yes, session, always and no, by its `ask`.
    """

    async def permit(self, question: Question) -> Sequence[Reply]:
        """Ask the user; gives as many replies as the question takes, in the order of its calls.

        What was typed before the question was shown is no answer. No time-out runs meanwhile. A call without a reply
        does not run.
        """
        ...


class ProjectTrust(Record):
    """Whether what a folder brings may be loaded. Its instructions are read in any case."""

    folder: str
    brings: tuple[str, ...]
    """The files, relative to the folder: hooks, tools, commands, settings, servers."""
    details: tuple[str, ...] = ()
    """What each of them is, a line each, with the settings that one makes and the servers that one starts.

    It is as the folder has it: whoever shows it escapes it."""
    trusted: bool
    why: str
    """Where the trust comes from, or why there is none, as the end of a sentence."""
    digest: str
    """What tells this content from any other; empty where a part of it cannot be looked at, so that no yes counts."""
    asked: bool = False
    """Whether a person has said yes or no to this very content."""


class PermissionControl(Protocol):
    """How much a session asks, and changing it. A change counts from the next call on."""

    @property
    def mode(self) -> PermissionMode:
        """The mode that is on. One that depends on the sandbox is `ask` until a call or `settle` looks at that."""
        ...

    async def settle(self) -> None:
        """Find out which mode is on, where that depends on the sandbox; the first time on a machine it is tried."""
        ...

    def switch(self, mode: str) -> None:
        """Go over to another mode. Raises `UsageError` for one that there is not."""
        ...

    def cycle(self) -> PermissionMode:
        """Go over to the next mode, and return it."""
        ...

    @property
    def remembered(self) -> Sequence[str]:
        """What was allowed for this session, a line each."""
        ...

    def project(self) -> ProjectTrust:
        """Whether what the working directory brings may be loaded. Blocks: call it in a thread."""
        ...

    async def trust_project(self) -> ProjectTrust:
        """Ask whether the working directory is trusted, where it is not and somebody is there; keep the answer."""
        ...

    def distrust_project(self) -> None:
        """Forget the trust in the working directory. Blocks: call it in a thread."""
        ...
