"""A reviewer judges the places where tests were weakened: each is accepted with a reason, or rejected."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from marvin_core import Record, in_thread, one_line

from ..review.json_objects import json_objects
from ..review.texts import fenced

if TYPE_CHECKING:
    from ..run.context import Run
    from .comparison import Place

_ID = re.compile(r"W\d+")
_SHOWN = 100
"""Places in one request to a reviewer; further ones are not accepted."""
_REASON = 500
_TEXT = 200_000


class Judgement(Record):
    """A reviewer's judgement of one place."""

    accepted: bool
    reason: str
    by: str
    """The reviewer's session."""


async def judge(run: Run, phase: str, places: Sequence[Place], base: str) -> Mapping[str, Judgement]:
    """The judgements of the phase's code reviewer, by the keys of the places. Places without an answer are missing.

    Args:
        base: the commit with which the tests are compared.

    Raises:
        BudgetExceeded, MarvinError: as of `Run.ask`.
    """
    named = {f"W{number}": place for number, place in enumerate(places[:_SHOWN], 1)}
    values = {"places": "\n\n".join(_told(id, place) for id, place in named.items()), "since": base[:12]}
    result = await run.ask("code_reviewer", values, phase=phase, prompt="tests_review", read_only=True)
    if not result.answered:
        return {}
    said = await in_thread(lambda: _said(result.text[-_TEXT:]))
    return {
        named[id].key: Judgement(accepted=accepted, reason=reason, by=result.session_id)
        for id, (accepted, reason) in said.items()
        if id in named
    }


def _told(id: str, place: Place) -> str:
    test = f" {place.test}" if place.test else ""
    shown = [f"**{id}** `{place.file}:{place.line}`{test}: {place.what}"]
    shown += [f"{word}\n{fenced(text)}" for word, text in (("Before:", place.before), ("Now:", place.after)) if text]
    return "\n".join(shown)


def _said(text: str) -> Mapping[str, tuple[bool, str]]:
    """Whether a place is accepted and why, by id. A reason is required, and repeated answers have to agree."""
    found: dict[str, tuple[bool, str]] = {}
    for each in json_objects(text):
        value: Mapping[str, Any] = each.value
        id, verdict = str(value.get("id", "")).strip(), str(value.get("verdict", "")).strip().casefold()
        reason = one_line(str(value.get("reason", "")), _REASON)
        if not _ID.fullmatch(id) or verdict not in ("accepted", "rejected"):
            continue
        accepted = verdict == "accepted" and bool(reason) and found.get(id, (True, ""))[0]
        found[id] = (accepted, reason)
    return found
