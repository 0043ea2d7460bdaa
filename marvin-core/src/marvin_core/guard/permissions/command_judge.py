"""The verdicts of the rules and the built-in list on a shell command, part by part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...api.hooks import Ask, Deny, Verdict
from .dangers import Danger
from .readings import Part, Reading
from .rules import Rule, Rules, asked, denied, nobody_there
from .shell_reader import read_command
from .verdicts import Allow, Explanation, Finding, Judgement

if TYPE_CHECKING:
    from ...api.config import Config

_FINDINGS = 50
_NAMED = 6
"""The most dangers of one command to list; beyond it only their number is given."""
_POSSIBLY = "may be one that "


class CommandJudge:
    """Judges the commands of one tool by its rules."""

    def __init__(self, config: Config, rules: Rules, tool: str) -> None:
        self._config = config
        self._rules = rules
        self._tool = tool

    def judge(self, text: str, root: Path, *, confined: bool, folder: str = "") -> Judgement:
        """The verdict is None if nothing speaks for or against the command. Blocks while a parser runs.

        Args:
            root: the working directory.
            confined: whether an effective sandbox applies; only certain dangers of the built-in list count then.
            folder: the folder in which it starts, relative to the working directory or absolute.
        """
        config = self._config
        reading = read_command(text, root, config.home, config.limits, config.timeouts, folder)
        alarm = self._alarm(reading, confined)
        verdict = self._verdict(text, reading, alarm)
        return Judgement(
            verdict=verdict, alarm=alarm, explain=lambda: self._explained(verdict, reading, alarm, confined)
        )

    def _explained(self, verdict: Allow | Verdict, reading: Reading, alarm: str, confined: bool) -> Explanation:
        findings = tuple(self._finding(part, reading, confined) for part in reading.parts[:_FINDINGS])
        remember = ""
        if not alarm and not reading.unknown and not isinstance(verdict, (Allow, Deny)):
            from .remembered import command_rule

            remember = command_rule(self._tool, self._uncovered(reading))
        return Explanation(findings=findings, remember=remember)

    def _verdict(self, text: str, reading: Reading, alarm: str) -> Allow | Verdict:
        for rule in self._rules.deny:
            doubt = _speaks(rule, text, reading)
            if doubt is not None:
                return Deny(reason=denied(rule, doubt))
        asking = self._asking(text, reading)
        if not alarm:
            return asking or self._allowed(text, reading)
        dangerous = self._dangerous(alarm)
        if asking is None or isinstance(dangerous, Deny):  # an ask rule loosens nothing non-interactively
            return dangerous
        return Ask(reason=f"{asking.reason}; {dangerous.reason}")

    def _asking(self, text: str, reading: Reading) -> Ask | None:
        for rule in self._rules.ask:
            doubt = _speaks(rule, text, reading)
            if doubt is not None:
                return Ask(reason=asked(rule, doubt))
        return None

    def _allowed(self, text: str, reading: Reading) -> Allow | None:
        for rule in self._rules.allow:
            if rule.is_whole or (rule.pattern.is_exact and rule.pattern.text == text):
                return Allow(rule=rule.text)
        if reading.unknown:
            return None
        needed = [part for part in reading.parts if part.needs_rule]
        covering = [self._covering(part) for part in needed]
        if not covering or not all(covering):
            return None
        return Allow(rule=", ".join(dict.fromkeys(rule.text for rule in covering if rule)))

    def _covering(self, part: Part) -> Rule | None:
        return next((rule for rule in self._rules.allow if rule.pattern.covers(part.line)), None)

    def _uncovered(self, reading: Reading) -> Sequence[Part]:
        return [part for part in reading.parts if part.needs_rule and self._covering(part) is None]

    def _alarm(self, reading: Reading, confined: bool) -> str:
        """The dangers on the built-in list that the command has or may have, as the end of a sentence."""
        found = [_told((danger for danger, _ in reading.dangers), confined)]
        if deep := reading.unknown.get("deep"):  # nesting shells this deep is only an attempt to hide something
            found.append(f"cannot be checked: {deep}")
        if not any(found) and not confined:
            why = reading.unknown.get("unparsed") or reading.unknown.get("hidden")
            found.append(f"cannot be checked: {why}" if why else "")
        return ", and ".join(filter(None, found))

    def _dangerous(self, what: str) -> Deny | Ask:
        if not self._config.non_interactive or self._config.when_asked(self._tool) == "allow-all":
            return Ask(reason=f"this command {what}")
        return nobody_there(f"this command {what}")

    def _finding(self, part: Part, reading: Reading, confined: bool) -> Finding:
        for rule in self._rules.deny:
            if _speaks_of(rule, part):
                return Finding(text=part.text, says="deny", why=f"deny: {rule.text}")
        for rule in self._rules.ask:
            if _speaks_of(rule, part):
                return Finding(text=part.text, says="ask", why=f"ask: {rule.text}")
        if why := _told((danger for danger, text in reading.dangers if text == part.text), confined):
            return Finding(text=part.text, says="ask", why=why)
        covering = self._covering(part)
        if covering is not None:
            return Finding(text=part.text, says="allow", why=f"allow: {covering.text}")
        why = "no rule matches it" if part.needs_rule else "it needs no rule"
        return Finding(text=part.text, says="", why=why)


def _told(dangers: Iterable[Danger], confined: bool) -> str:
    """All of these dangers as the end of one sentence: approving the first must not silently approve the others."""
    known = list(dangers)
    certain = list(dict.fromkeys(danger.what for danger in known if danger.certain))
    possible = [] if confined else list(dict.fromkeys(one.what for one in known if one.what not in certain))
    told = [_listed(certain), _POSSIBLY + _listed(possible) if possible else ""]
    return ", and ".join(filter(None, told))


def _listed(found: Sequence[str]) -> str:
    left = len(found) - _NAMED
    named = [*found[:_NAMED], f"{left} more of this kind"] if left > 0 else found
    return " and ".join(filter(None, [", ".join(named[:-1]), *named[-1:]]))


def _speaks(rule: Rule, text: str, reading: Reading) -> str | None:
    """Whether a rule matches a command: an empty text if so, the reason for doubt if it may match, None if not."""
    if rule.is_whole or rule.pattern.fits(text):
        return ""
    if any(rule.pattern.covers(line) for part in reading.parts for line in part.lines):
        return ""
    if any(_speaks_of(rule, part) for part in reading.parts):
        return "a part that is only known when it runs may match the rule"
    return next(iter(reading.unknown.values()), None)


def _speaks_of(rule: Rule, part: Part) -> bool:
    return rule.is_whole or any(map(rule.pattern.may_fit, part.lines))
