"""What the judge says of a command of run_command under rules, by itself: no tool, no session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from marvin_core.api.config import Permissions
from marvin_core.api.hooks import Verdict
from marvin_core.guard.permissions.policy import Policy
from marvin_core.guard.permissions.verdicts import Allow
from tests.support.engine import settled, spec

_SHELL = spec("run_command", access=["write", "exec"])

Judge = Callable[[str], Allow | Verdict]


def judge(folder: Path, root: Path, *, attended: bool = True, confined: bool = False, **rules: list[str]) -> Judge:
    """The judge of a run with these rules; `folder` holds its configuration, `root` is the working directory."""
    permissions = Permissions(**{name: tuple(found) for name, found in rules.items()})
    argv = [] if attended else ["--non-interactive"]
    config = settled(folder, *argv)[0]
    # What a busy machine takes too long for is not understood, which is another matter.
    patient = config.timeouts.replace(command_parse=60.0)
    policy = Policy(config.replace(permissions=permissions, timeouts=patient))

    def say(command: str) -> Allow | Verdict:
        return policy.judge(_SHELL, {"command": command}, root, confined=confined).verdict

    return say
