"""Verdicts on a call before it runs, and which of several applies."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Literal

from ...api.hooks import Ask, Deny, Verdict
from ...api.record import Record


class Allow(Record):
    """A rule allows the call, so the question that the tool itself declares is skipped."""

    rule: str


class Finding(Record):
    """The verdict on one part of a call, such as one command of a pipe."""

    text: str
    """The text of the part, as in the call."""
    says: Literal["allow", "ask", "deny", ""]
    """Empty if nothing speaks for or against it."""
    why: str
    """The rule that decided, or the effect of the part, as the end of a sentence."""


class Explanation(Record):
    """What a person who is asked about a call sees beside the verdict."""

    findings: tuple[Finding, ...] = ()
    """The parts of the call, in order."""
    remember: str = ""
    """The allow rule that would approve such calls from now on; empty if no rule would be narrow enough."""


class Judgement(Record):
    """The verdict on a call, and the details that a person needs to understand it."""

    verdict: Allow | Verdict
    alarm: str = ""
    """The danger of the call, as in `removes the working directory`; empty for none."""
    explain: Callable[[], Explanation] = Explanation
    """Returns the details. Most calls run without a question, so they are worked out only where they are shown."""

    @cached_property
    def _explanation(self) -> Explanation:
        return self.explain()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The parts of the call, in order."""
        return self._explanation.findings

    @property
    def remember(self) -> str:
        """The allow rule that would approve such calls from now on; empty if no rule would be narrow enough."""
        return self._explanation.remember


def strongest(*verdicts: Allow | Verdict) -> Allow | Verdict:
    """The verdict that applies: a denial, else a question, else the verdict of the rules."""
    given = [verdict for verdict in verdicts if verdict is not None]
    for kind in (Deny, Ask, Allow) if given else ():
        for verdict in given:
            if isinstance(verdict, kind):
                return verdict
    return None
