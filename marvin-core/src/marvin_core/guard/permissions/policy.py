"""Whether a call may run: the rules of config.yaml, what tools declare, and a short list of dangerous commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ...api.config import Config, Permissions
from ...api.hooks import Ask, Deny, Verdict
from ...api.record import Record
from ...api.tools import ToolSpec
from .verdicts import Allow, strongest


class Rule(Record):
    """One rule: `tool`, or `tool(pattern)` where the pattern is matched against each text argument."""

    text: str
    tool: str
    pattern: str

    @classmethod
    def parse(cls, text: str) -> Rule:
        """The rule that a line of config.yaml means."""
        tool, _, rest = text.strip().partition("(")
        return cls(text=text, tool=tool.strip(), pattern=rest.removesuffix(")") if rest else "*")

    def fits(self, name: str, values: Iterable[str]) -> bool:
        """Whether it speaks of a call of this tool with one of these values."""
        if not fnmatchcase(name, self.tool):
            return False
        return self.pattern == "*" or any(fnmatchcase(value, self.pattern) for value in values)


class Policy:
    """Judges calls by the user's rules and the built-in list; hooks can only tighten what it says."""

    def __init__(self, config: Config) -> None:
        rules: Permissions = config.permissions
        self._deny = [Rule.parse(text) for text in rules.deny]
        self._ask = [Rule.parse(text) for text in rules.ask]
        self._allow = [Rule.parse(text) for text in rules.allow]
        self._config = config

    def judge(self, spec: ToolSpec, arguments: Mapping[str, Any], root: Path) -> Allow | Verdict:
        """The verdict of rules and declarations; None where nothing speaks against the call."""
        command = arguments.get(spec.command)
        if isinstance(command, str):
            others = list(_texts({name: value for name, value in arguments.items() if name != spec.command}))
            verdict = self._judge_command(spec, command, root)
            return strongest(verdict, self._forbidding(spec, others)) if others else verdict
        return self._judge_values(spec, list(_texts(arguments)))

    def _judge_command(self, spec: ToolSpec, command: str, root: Path) -> Allow | Verdict:
        """A compound command is judged part by part: one forbidden part forbids it, all must be allowed."""
        from .shell_commands import danger, parts

        simple = parts(command)
        forbidding = self._forbidding(spec, [command, *simple])
        if forbidding is not None:
            return forbidding
        found = danger(command, root)
        if found is not None:
            return self._dangerous(found)
        allowing = [self._first(self._allow, spec, [part]) for part in simple]
        if allowing and all(allowing):
            return Allow(rule=", ".join(dict.fromkeys(rule.text for rule in allowing if rule)))
        return self._declared(spec)

    def _judge_values(self, spec: ToolSpec, values: list[str]) -> Allow | Verdict:
        forbidding = self._forbidding(spec, values)
        if forbidding is not None:
            return forbidding
        allowing = self._first(self._allow, spec, values)
        return Allow(rule=allowing.text) if allowing is not None else self._declared(spec)

    def _forbidding(self, spec: ToolSpec, values: list[str]) -> Deny | Ask | None:
        denying = self._first(self._deny, spec, values)
        if denying is not None:
            return Deny(reason=f"the rule `deny: {denying.text}` of config.yaml forbids it")
        asking = self._first(self._ask, spec, values)
        return None if asking is None else Ask(reason=f"the rule `ask: {asking.text}` of config.yaml wants a yes")

    def _dangerous(self, what: str) -> Deny | Ask:
        if not self._config.non_interactive or self._config.on_ask == "allow-all":
            return Ask(reason=f"this command {what}")
        return Deny(
            reason=f"this command {what}, which needs a person's yes, and nobody is there to ask. "
            "Do it another way, or leave it to the user (--on-ask allow-all permits it)"
        )

    def _declared(self, spec: ToolSpec) -> Ask | None:
        if spec.confirm:
            return Ask(reason=f"{spec.name} asks before each call")
        if self._config.in_home and spec.changes:
            return Ask(reason="the working directory is the home folder itself; set another one with --working-dir")
        return None

    def _first(self, rules: list[Rule], spec: ToolSpec, values: list[str]) -> Rule | None:
        return next((rule for rule in rules if rule.fits(spec.name, values)), None)


def _texts(value: Any) -> Iterator[str]:
    """Every text in the arguments, in lists and objects too: a rule must not be got round by nesting."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts(inner)
