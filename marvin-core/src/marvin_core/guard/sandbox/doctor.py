"""Tests the protections of commands on this machine one by one, and reports them for people."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ...api.config import Config
from ...api.record import Record
from .trial import Found, Trial

_HELD = {
    "writes": "writes outside of the working directory are refused",
    "home": "the home folder is read-only",
    "keys": "keys cannot be read",
    "git": "what git runs (hooks, settings) cannot be changed",
    "network": "this machine and the network cannot be reached if the policy forbids it",
    "sockets": "abstract sockets of other programs cannot be reached",
    "processes": "other processes are invisible",
}
_LIMITS = {"memory": "memory", "processes": "the number of processes"}
_INSTALL = 'pip install "marvin-core[sandbox]" where Marvin is installed, or your system\'s package bubblewrap.'
_PERMIT = (
    "Allow this user to create user namespaces. In a container, this needs other container options; without them, "
    "only the container itself confines commands."
)
_NETWORK = "Commands can still reach the network; to prevent it, run Marvin in a container without a network."
_ABSTRACT = "It needs Linux 6.12 with Landlock. It is also enforced if commands have no network."


class Finding(Record):
    """One item: `ok` if it is as it should be; `needed` if calls skip approval because of it."""

    text: str
    ok: bool
    advice: str = ""
    needed: bool = True


async def examined(config: Config, search: str) -> Sequence[Finding]:
    """The findings, one for each item."""
    trial = Trial(config.cache_folder / "sandbox-trial", search, config.working_dir, config.timeouts)
    found = await trial.find()
    how = found.bubblewrap
    if how is None:
        return [_none(found)]
    findings = [Finding(text=f"bubblewrap works: {how.program}", ok=True)]
    for name, text in _HELD.items():
        refused = found.held.get(name)
        findings.append(Finding(text=text, ok=True) if refused else _lacking(name, text))
    if not how.overlays:
        text = "caches of package managers are empty inside the sandbox: they cannot be used through an overlay"
        findings.append(Finding(text=text, ok=False, advice="It needs bubblewrap 0.11 and Linux 5.11.", needed=False))
    for name, by in (await trial.limited(how)).items():
        limit = config.limits.sandbox_memory if name == "memory" else config.limits.sandbox_processes
        much = f"{limit} % of the available amount" if name == "memory" else f"{limit:,}"
        findings.append(
            Finding(text=f"{_LIMITS[name]} is limited by {by}: {much}", ok=True)
            if by
            else Finding(text=f"{_LIMITS[name]} is not limited", ok=False, advice=_limit_advice(), needed=False)
        )
    return findings


def _none(found: Found) -> Finding:
    advice = _PERMIT
    if "not installed" in found.why:
        advice = _INSTALL if sys.platform == "linux" else "Marvin supports no sandbox for this system."
    return Finding(text=f"there is no sandbox: {found.why}", ok=False, advice=advice)


def _lacking(name: str, text: str) -> Finding:
    advice = {"network": _NETWORK, "sockets": _ABSTRACT}.get(name, "")
    return Finding(text=f"not enforced: {text}", ok=False, advice=advice, needed=name != "sockets")


def _limit_advice() -> str:
    return "It needs a control group that this user may change, such as systemd provides; root needs one too."
