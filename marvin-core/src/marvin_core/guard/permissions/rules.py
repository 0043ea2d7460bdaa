"""The permission rules of config.yaml, and the calls that each matches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from ...api.config import Permissions
from ...api.hooks import Deny
from ...util.patterns.texts import Pattern


class Rule:
    """One rule: `tool`, or `tool(pattern)` where the pattern is matched against each text argument."""

    def __init__(self, text: str) -> None:
        tool, _, rest = text.strip().partition("(")
        self.text = text
        self.tool = tool.strip()
        self.pattern = Pattern(rest.removesuffix(")") if rest else "*")

    @property
    def is_whole(self) -> bool:
        """Whether it matches all calls of its tool."""
        return self.pattern.text == "*"

    def names(self, tool: str) -> bool:
        """Whether it applies to this tool."""
        return fnmatchcase(tool, self.tool)

    def fits(self, tool: str, values: Iterable[str]) -> bool:
        """Whether it matches a call of this tool with one of these values."""
        return self.names(tool) and (self.is_whole or any(map(self.pattern.fits, values)))


class Rules:
    """All rules, by their verdict."""

    def __init__(self, permissions: Permissions) -> None:
        self.deny = list(map(Rule, permissions.deny))
        self.ask = list(map(Rule, permissions.ask))
        self.allow = list(map(Rule, permissions.allow))

    def of(self, tool: str) -> Rules:
        """The rules for one tool."""
        found = Rules(Permissions())
        found.deny, found.ask, found.allow = (
            [rule for rule in rules if rule.names(tool)] for rules in (self.deny, self.ask, self.allow)
        )
        return found

    @property
    def are_any(self) -> bool:
        """Whether there is any rule."""
        return bool(self.deny or self.ask or self.allow)

    @property
    def everything(self) -> Sequence[Rule]:
        """All rules."""
        return [*self.deny, *self.ask, *self.allow]


def denied(rule: Rule, doubt: str = "") -> str:
    """Why a rule forbids a call, as the start of a sentence; the caller adds the full stop."""
    return f"the rule `deny: {rule.text}` in config.yaml forbids it" + (f", since {doubt}" if doubt else "")


def nobody_there(what: str) -> Deny:
    """The denial of calls that always need approval, for non-interactive runs. `what` is the start of a sentence."""
    return Deny(
        reason=f"{what}, which needs the user's approval, and nobody can give it in this run. Do it another way, or "
        "leave it to the user (--on-ask allow-all permits it)"
    )


def asked(rule: Rule, doubt: str = "") -> str:
    """Why a rule requires approval."""
    return f"the rule `ask: {rule.text}` in config.yaml requires approval" + (f", since {doubt}" if doubt else "")
