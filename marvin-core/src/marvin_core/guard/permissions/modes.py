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
"""The meaning of each mode, for people."""
_IN_HOME = "the working directory is the home folder itself; --working-dir sets another one"
_LEAVING = "the permission mode is readonly; the user can change it with /permissions or --permission-mode"


def verdict_of_mode(mode: PermissionMode, spec: ToolSpec, *, holds: bool, in_home: bool) -> Ask | Deny | None:
    """The verdict of a mode on calls of a tool that no rule matches.

    Args:
        holds: whether the sandbox confines the programs of the call.
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
    """The same for a call that a person makes; no mode restricts it."""
    if spec.confirm:
        return Ask(reason=f"{spec.name} asks before each call")
    return Ask(reason=_IN_HOME) if spec.changes and in_home else None


def _writes_files_only(spec: ToolSpec) -> bool:
    """Whether a tool changes only tickets, or files that it reaches through path checks."""
    return "exec" not in spec.access and ("writable-files" in spec.passes or bool(spec.ticket_line))


def _why(mode: PermissionMode, spec: ToolSpec) -> str:
    does = "runs programs" if "exec" in spec.access else "writes"
    if mode == "auto" and does == "runs programs":
        return f"{spec.name} runs programs, and there is no working sandbox here"
    return f"{spec.name} {does}, and the permission mode is {mode}"


class StandingPermissions:
    """The permission state of a session: its mode, and the approvals that a person has given in it.

    If no mode was chosen, a chat begins with `ask` and switches to `auto` once an effective sandbox is confirmed. A
    non-interactive run then uses `auto`.
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
        """The rules in force; `readonly` leaves out those of the session, which were given in another mode."""
        return self._rules_alone if self.mode == "readonly" else self._with_session

    @property
    def mode(self) -> PermissionMode:
        """The current mode, as far as it is known."""
        return self._chosen or self._started

    @property
    def is_open(self) -> bool:
        """Whether the mode still depends on the sandbox."""
        return self._chosen is None

    def settle(self, *, holds: bool) -> None:
        """Apply the result of the sandbox check, if no mode was chosen."""
        self._started = "auto" if holds else "ask"

    def switch(self, mode: str) -> None:
        """Switch to another mode. Raises `UsageError` for an unknown one."""
        found = next((one for one in MODES if one == mode), None)
        if found is None:
            raise UsageError(f"Unknown permission mode {mode!r}. {hint_at(mode, MODES, ', '.join(MODES))}")
        self._chosen = found

    def cycle(self) -> PermissionMode:
        """Switch to the next mode, and return it."""
        self._chosen = MODES[(MODES.index(self.mode) + 1) % len(MODES)]
        return self._chosen

    @property
    def remembered(self) -> Sequence[str]:
        """The approvals of this session, one per line."""
        return [*self._rules, *(f"{name}: exactly {arguments}" for name, arguments in sorted(self._calls))]

    def allow(self, rule: str) -> None:
        """Add an allow rule for the session, as if it were in config.yaml; deny and ask rules still apply."""
        self._with_session = self.with_rule(rule)
        self._rules.append(rule)

    def with_rule(self, rule: str) -> Policy:
        """The rules that would be in force with this one added."""
        rules = self._config.permissions
        allowing = rules.replace(allow=(*rules.allow, *self._rules, rule))
        return Policy(self._config.replace(permissions=allowing))

    def allow_call(self, name: str, arguments: str) -> None:
        """Approve calls with exactly these arguments from now on."""
        self._calls.add((name, arguments))

    def allows_call(self, name: str, arguments: str) -> bool:
        """Whether a person has approved exactly this call for the session."""
        return self.mode != "readonly" and (name, arguments) in self._calls
