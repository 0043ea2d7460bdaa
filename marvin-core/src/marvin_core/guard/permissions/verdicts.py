"""Which of several verdicts holds."""

from __future__ import annotations

from ...api.hooks import Ask, Deny, Verdict
from ...api.record import Record


class Allow(Record):
    """A rule allows the call, so that what the tool itself declares need not be asked."""

    rule: str


def strongest(*verdicts: Allow | Verdict) -> Allow | Verdict:
    """The one that holds: a denial, else a question, else what the rules say."""
    for kind in (Deny, Ask, Allow):
        for verdict in verdicts:
            if isinstance(verdict, kind):
                return verdict
    return None
