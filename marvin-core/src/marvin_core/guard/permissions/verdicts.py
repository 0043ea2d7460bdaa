"""Verdicts on a call before it runs, and which of several applies."""

from __future__ import annotations

from typing import Literal

from ...api.hooks import Ask, Deny, Verdict
from ...api.record import Record


class Allow(Record):
    """A rule allows the call, so that what the tool itself declares need not be asked."""

    rule: str


class Finding(Record):
    """What is said of one part of a call, such as one command of a pipe."""

    text: str
    """The part, as it stands in the call."""
    says: Literal["allow", "ask", "deny", ""]
    """Empty where nothing speaks for or against it."""
    why: str
    """The rule behind it, or what the part would do, as the end of a sentence."""


class Judgement(Record):
    """The verdict on a call, and what a person needs in order to understand it."""

    verdict: Allow | Verdict
    findings: tuple[Finding, ...] = ()
    """The parts of the call, in their order."""
    alarm: str = ""
    """What makes the call dangerous, as in `removes the working directory`; empty for a plain one."""
    remember: str = ""
    """The allow rule that lets calls of this kind pass from now on; empty where no rule would be narrow enough."""


def strongest(*verdicts: Allow | Verdict) -> Allow | Verdict:
    """The one that holds: a denial, else a question, else what the rules say."""
    for kind in (Deny, Ask, Allow):
        for verdict in verdicts:
            if isinstance(verdict, kind):
                return verdict
    return None
