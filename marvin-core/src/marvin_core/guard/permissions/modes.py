"""The permission modes, and approvals for the session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from ...api.config import Config, PermissionMode
from ...api.errors import UsageError
from ...api.hooks import Ask, Deny
from ...api.tools import ToolSpec
from ...util.text import hint_at
from .policy import Policy

MODES: tuple[PermissionMode, ...] = get_args(PermissionMode)
MEANINGS = {
    "ask": "everything that writes or runs something needs approval",
    "edit": "files inside the working directory may be written; everything else needs approval",
    "auto": "as edit, and commands may run in the sandbox",
    "readonly": "nothing can be written or run",
}
"""What each mode means, for people."""
_IN_HOME = "the working directory is the home folder itself; --working-dir sets another one"
_LEAVING = "the permission mode is readonly; the user can change it with /permissions or --permission-mode"


def verdict_of_mode(mode: PermissionMode, spec: ToolSpec, *, holds: bool, in_home: bool) -> Ask | Deny | None:
    """What a mode says of calls of a tool on which no rule speaks.

    Args:
        holds: whether the sandbox holds what the call runs.
        in_home: whether the working directory is the home folder itself.
    """
    if mode == "readonly" and spec.changes:
        return Deny(reason=_LEAVING)
    if spec.changes and in_home:
        return Ask(reason=_IN_HOME)
    if not spec.changes:
        return Ask(reason=f"{spec.name} asks before each call") if spec.confirm else None
    if mode == "auto" and holds and "exec" in spec.access:
        return None
    if mode != "ask" and _writes_files_only(spec) and not spec.confirm:
        return None
    return Ask(reason=_why(mode, spec))


def verdict_by_hand(spec: ToolSpec, *, in_home: bool) -> Ask | None:
    """The same of a call that a person makes, whom no mode holds back."""
    if spec.confirm:
        return Ask(reason=f"{spec.name} asks before each call")
    return Ask(reason=_IN_HOME) if spec.changes and in_home else None


def _writes_files_only(spec: ToolSpec) -> bool:
    """Whether all that a tool changes is files, which it reaches through the sandbox of paths, or tickets."""
    return "exec" not in spec.access and ("writable-files" in spec.passes or bool(spec.ticket_line))


def _why(mode: PermissionMode, spec: ToolSpec) -> str:
    does = "runs programs" if "exec" in spec.access else "writes"
    if mode == "auto" and does == "runs programs":
        return f"{spec.name} runs programs, and there is no working sandbox here"
    return f"{spec.name} {does}, and the permission mode is {mode}"


class StandingPermissions:
    """What holds for a whole session: its mode, and what a person has allowed in it.

    A chat for which no mode was chosen begins with `ask`, and goes over to `auto` once a sandbox is known to hold.
    Where nobody is there the mode is `auto` unless another one was chosen.
    """

    def __init__(self, config: Config, *, attended: bool) -> None:
        self._config = config
        self._chosen: PermissionMode | None = config.permission_mode or (None if attended else "auto")
        self._started: PermissionMode = "ask"
        self._rules: list[str] = []
        self._calls: set[tuple[str, str]] = set()
        self._rules_alone = self._with_session = Policy(config)

    @property
    def policy(self) -> Policy:
        """The rules that count now; in `readonly` without those of the session, which were given in another mode."""
        return self._rules_alone if self.mode == "readonly" else self._with_session

    @property
    def mode(self) -> PermissionMode:
        """The mode that is on, as far as it is known."""
        return self._chosen or self._started

    @property
    def is_open(self) -> bool:
        """Whether the mode still depends on the sandbox."""
        return self._chosen is None

    def settle(self, *, holds: bool) -> None:
        """Take what was found out of the sandbox into account, where no mode was chosen."""
        self._started = "auto" if holds else "ask"

    def switch(self, mode: str) -> None:
        """Go over to another mode. Raises `UsageError` for one that there is not."""
        found = next((one for one in MODES if one == mode), None)
        if found is None:
            raise UsageError(f"Unknown permission mode {mode!r}. {hint_at(mode, MODES, ', '.join(MODES))}")
        self._chosen = found

    def cycle(self) -> PermissionMode:
        """Go over to the next mode, and return it."""
        self._chosen = MODES[(MODES.index(self.mode) + 1) % len(MODES)]
        return self._chosen

    @property
    def remembered(self) -> Sequence[str]:
        """What was allowed for this session, a line each."""
        return [*self._rules, *(f"{name}: exactly {arguments}" for name, arguments in sorted(self._calls))]

    def allow(self, rule: str) -> None:
        """Have a rule allow calls from now on, as one of config.yaml would; deny and ask rules hold."""
        self._with_session = self.with_rule(rule)
        self._rules.append(rule)

    def with_rule(self, rule: str) -> Policy:
        """The rules that would count if this one was allowed as well."""
        rules = self._config.permissions
        allowing = rules.replace(allow=(*rules.allow, *self._rules, rule))
        return Policy(self._config.replace(permissions=allowing))

    def allow_call(self, name: str, arguments: str) -> None:
        """Have calls with exactly these arguments pass from now on."""
        self._calls.add((name, arguments))

    def allows_call(self, name: str, arguments: str) -> bool:
        """Whether a person has allowed this very call for the session."""
        return self.mode != "readonly" and (name, arguments) in self._calls
