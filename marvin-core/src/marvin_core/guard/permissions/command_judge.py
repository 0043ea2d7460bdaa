"""What the rules and the built-in list say of a shell command, part by part."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...api.hooks import Ask, Deny, Verdict
from .readings import Part, Reading
from .rules import Rule, Rules, asked, denied, nobody_there
from .shell_reader import read_command
from .verdicts import Allow, Finding, Judgement

if TYPE_CHECKING:
    from ...api.config import Config

_FINDINGS = 50
_POSSIBLY = "may be one that "


class CommandJudge:
    """Judges the commands of one tool by its rules."""

    def __init__(self, config: Config, rules: Rules, tool: str) -> None:
        self._config = config
        self._rules = rules
        self._tool = tool

    def judge(self, text: str, root: Path, *, confined: bool, folder: str = "") -> Judgement:
        """The verdict is None where nothing speaks for or against the command. Blocks while a parser runs.

        Args:
            root: the working directory.
            confined: whether it runs in a sandbox that holds; the built-in list then counts what is certain alone.
            folder: where it begins, relative to the working directory or absolute.
        """
        config = self._config
        reading = read_command(text, root, config.home, config.limits, config.timeouts, folder)
        alarm = self._alarm(reading, confined)
        verdict = self._verdict(text, reading, alarm)
        findings = tuple(self._finding(part, reading, confined) for part in reading.parts[:_FINDINGS])
        remember = ""
        if not alarm and not reading.unknown and not isinstance(verdict, (Allow, Deny)):
            from .remembered import command_rule

            remember = command_rule(self._tool, self._uncovered(reading))
        return Judgement(verdict=verdict, findings=findings, alarm=alarm, remember=remember)

    def _verdict(self, text: str, reading: Reading, alarm: str) -> Allow | Verdict:
        for rules, verdict in ((self._rules.deny, _deny), (self._rules.ask, _ask)):
            for rule in rules:
                doubt = _speaks(rule, text, reading)
                if doubt is not None:
                    return verdict(rule, doubt)
        if alarm:
            return self._dangerous(alarm)
        return self._allowed(text, reading)

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
        """What of the built-in list it does, or may do, as the end of a sentence."""
        certain = next((danger.what for danger, _ in reading.dangers if danger.certain), "")
        deep = reading.unknown.get("deep")
        if not certain and deep:  # nobody nests shells so deep but to hide something
            return f"cannot be judged: {deep}"
        if certain or confined:
            return certain
        for danger, _ in reading.dangers:
            return _POSSIBLY + danger.what
        why = reading.unknown.get("unparsed") or reading.unknown.get("hidden")
        return f"cannot be judged: {why}" if why else ""

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
        for danger, text in reading.dangers:
            if text == part.text and (danger.certain or not confined):
                why = danger.what if danger.certain else _POSSIBLY + danger.what
                return Finding(text=part.text, says="ask", why=why)
        covering = self._covering(part)
        if covering is not None:
            return Finding(text=part.text, says="allow", why=f"allow: {covering.text}")
        why = "no rule speaks of it" if part.needs_rule else "it needs no rule of its own"
        return Finding(text=part.text, says="", why=why)


def _deny(rule: Rule, doubt: str) -> Deny:
    return Deny(reason=denied(rule, doubt))


def _ask(rule: Rule, doubt: str) -> Ask:
    return Ask(reason=asked(rule, doubt))


def _speaks(rule: Rule, text: str, reading: Reading) -> str | None:
    """Whether a rule speaks of a command: empty where it does, the doubt where it may, None where it does not."""
    if rule.is_whole or rule.pattern.fits(text):
        return ""
    if any(rule.pattern.covers(line) for part in reading.parts for line in part.lines):
        return ""
    if any(_speaks_of(rule, part) for part in reading.parts):
        return "what is only known when it runs may be what the rule names"
    return next(iter(reading.unknown.values()), None)


def _speaks_of(rule: Rule, part: Part) -> bool:
    return rule.is_whole or any(map(rule.pattern.may_fit, part.lines))
