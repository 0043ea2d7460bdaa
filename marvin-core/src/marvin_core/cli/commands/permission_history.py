"""`marvin permissions history`: the past calls that would need approval today, and rules that would allow them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from ...api.config import Config
from ...api.errors import SessionError
from ...api.hooks import Ask
from ...api.record import Record
from ...api.tools import ToolSpec
from ...guard.permissions.modes import verdict_of_mode
from ...guard.permissions.policy import Policy
from ...guard.permissions.verdicts import Judgement
from ...sessions.reader import load_full
from ...sessions.store import sessions
from ...util.text import counted, one_line
from ...util.untrusted_json import parse_json

_FEWEST = 3
"""The minimum number of calls that a proposed rule covers."""
_LONGEST = 100
_REFUSED = " was not run: "


class PastCall(Record):
    """A model's tool call from a session file. `ran` is whether it was allowed.

    `asked` is the user's answer to the request for approval; empty if there was no request.
    """

    tool: str
    arguments: Mapping[str, Any]
    working_dir: str
    ran: bool
    asked: str = ""

    @property
    def text(self) -> str:
        """The call in one line: its tool with its first argument."""
        first = next(iter(self.arguments.values()), "")
        return one_line(f"{self.tool} {first}", _LONGEST)


class Proposal(Record):
    """An allow rule, and the past calls that it would allow without a question."""

    rule: str
    covers: tuple[PastCall, ...]


def past_calls(folder: Path, most: int) -> Iterator[PastCall]:
    """The calls of the newest `most` sessions in a folder, newest session first. Damaged files are skipped."""
    for path in islice(sessions(folder), most):
        try:
            whole = load_full(path)
        except (OSError, SessionError):
            continue
        outputs = {output.call_id: output for message in whole.messages for output in message.outputs}
        for call in (call for message in whole.messages for call in message.calls):
            arguments = _object(call.arguments)
            output = outputs.get(call.id)
            if arguments is not None and output is not None:
                ran = not (output.is_error and _REFUSED in output.text)
                yield PastCall(
                    tool=call.name,
                    arguments=arguments,
                    working_dir=whole.header.working_dir,
                    ran=ran,
                    asked=output.asked,
                )


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = parse_json(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


class DryRun:
    """Applies the current rules and permission mode to past calls, without running them.

    Args:
        holds: whether the sandbox confines commands.
    """

    def __init__(self, config: Config, tools: Sequence[ToolSpec], calls: Sequence[PastCall], *, holds: bool) -> None:
        self._config = config
        self._mode = config.permission_mode or ("auto" if holds else "ask")
        self._tools = {spec.name: spec for spec in tools}
        self._holds = holds
        self.calls = [call for call in calls if call.tool in self._tools]

    def _judge(self, policy: Policy, call: PastCall) -> tuple[bool, Judgement]:
        """Whether the call needs approval, and the judgement of the rules."""
        spec = self._tools[call.tool]
        confined = self._holds and "exec" in spec.access
        judgement = policy.judge(spec, call.arguments, Path(call.working_dir or "/"), confined=confined)
        verdict = judgement.verdict
        if verdict is None:
            return isinstance(verdict_of_mode(self._mode, spec, holds=self._holds, in_home=False), Ask), judgement
        return isinstance(verdict, Ask), judgement

    @cached_property
    def asked(self) -> Sequence[tuple[PastCall, Judgement]]:
        """The calls that need approval, each with the judgement of the rules."""
        policy = Policy(self._config)
        judged = [(call, self._judge(policy, call)) for call in self.calls]
        return [(call, judgement) for call, (asks, judgement) in judged if asks]

    @cached_property
    def proposals(self) -> Sequence[Proposal]:
        """The proposed allow rules, by the number of covered calls in descending order.

        A proposed rule covers at least three calls, and none that was refused.
        """
        wanted = dict.fromkeys(j.remember for call, j in self.asked if j.remember and j.verdict is None and call.ran)
        found = []
        for rule in wanted:
            policy = self._with([rule])
            covers = tuple(call for call, _ in self.asked if not self._judge(policy, call)[0])
            if len(covers) >= _FEWEST and all(call.ran for call in covers):
                found.append(Proposal(rule=rule, covers=covers))
        return sorted(found, key=lambda proposal: -len(proposal.covers))

    def _with(self, rules: Sequence[str]) -> Policy:
        permissions = self._config.permissions
        return Policy(self._config.replace(permissions=permissions.replace(allow=(*permissions.allow, *rules))))

    @cached_property
    def left(self) -> int:
        """The number of calls that would still need approval with all proposed rules."""
        policy = self._with([proposal.rule for proposal in self.proposals])
        return sum(self._judge(policy, call)[0] for call, _ in self.asked)

    def _questions(self) -> Iterator[str]:
        """The lines about past requests for approval, and the answers."""
        past = [call for call in self.calls if call.asked]
        if not past:
            return
        refused = sum(call.asked == "no" for call in past)
        yield f"You were asked about {len(past)} of {len(self.calls)} past calls, and refused {refused}:"
        counts: dict[str, list[int]] = {}
        for call in past:
            found = counts.setdefault(call.tool, [0, 0])
            found[0] += 1
            found[1] += call.asked == "no"
        for tool, (count, no) in sorted(counts.items(), key=lambda item: -item[1][0]):
            yield f"{count:6}  {tool}{f', {no} refused' if no else ''}"
        yield ""

    def report(self, shown: int = 5) -> Iterator[str]:
        """The lines of the report. `shown` is the maximum number of different calls to list per rule."""
        yield from self._questions()
        found = f"{len(self.asked)} of {len(self.calls)} past calls"
        yield f"{found} would need your approval today, in the mode {self._mode}."
        by_tool: dict[str, int] = {}
        for call, _ in self.asked:
            by_tool[call.tool] = by_tool.get(call.tool, 0) + 1
        for tool, count in sorted(by_tool.items(), key=lambda item: -item[1]):
            yield f"{count:6}  {tool}"
        if not self.proposals:
            yield (
                "There is no rule to propose: a rule must cover at least three such calls, and none that was refused."
            )
            return
        yield f"\nThese rules would have asked {counted(self.left, 'time')} instead of {len(self.asked)}:"
        for proposal in self.proposals:
            yield f"\n  {proposal.rule}   ({counted(len(proposal.covers), 'call')})"
            texts = list(dict.fromkeys(call.text for call in proposal.covers))
            yield from (f"      {text}" for text in texts[:shown])
            if len(texts) > shown:
                yield f"      and {len(texts) - shown} more"
