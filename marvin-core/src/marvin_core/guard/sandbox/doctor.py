"""What holds commands back on this machine, item by item and tried for real, in words for people."""

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
    "network": "this machine and the network are out of reach where the policy says so",
    "sockets": "abstract sockets of other programs are out of reach",
    "processes": "other processes are out of sight",
}
_LIMITS = {"memory": "memory", "processes": "the number of processes"}
_INSTALL = 'pip install "marvin-core[sandbox]" where Marvin is installed, or your system\'s package bubblewrap.'
_PERMIT = (
    "Let this user make user namespaces. In a container that takes other options of the container; without them, the "
    "container itself is what holds commands back."
)
_NETWORK = "Commands reach the network all the same; a container around Marvin can do without one."
_ABSTRACT = "It takes Linux 6.12 with Landlock. Where commands have no network but each other, it holds."


class Finding(Record):
    """One item: `ok` where it is as it should be; `needed` where nothing is asked about because of it."""

    text: str
    ok: bool
    advice: str = ""
    needed: bool = True


async def examined(config: Config, search: str) -> Sequence[Finding]:
    """What was found, one finding for each item."""
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
        text = "caches of package managers cannot be copied as they are used: inside, they begin empty"
        findings.append(Finding(text=text, ok=False, advice="It takes bubblewrap 0.11 and Linux 5.11.", needed=False))
    for name, by in (await trial.limited(how)).items():
        limit = config.limits.sandbox_memory if name == "memory" else config.limits.sandbox_processes
        much = f"{limit} % of what there is" if name == "memory" else f"{limit:,}"
        findings.append(
            Finding(text=f"{_LIMITS[name]} is limited by {by}: {much}", ok=True)
            if by
            else Finding(text=f"{_LIMITS[name]} is not limited", ok=False, advice=_limit_advice(), needed=False)
        )
    return findings


def _none(found: Found) -> Finding:
    advice = _PERMIT
    if "not installed" in found.why:
        advice = _INSTALL if sys.platform == "linux" else "Marvin knows none for this system."
    return Finding(text=f"there is no sandbox: {found.why}", ok=False, advice=advice)


def _lacking(name: str, text: str) -> Finding:
    advice = {"network": _NETWORK, "sockets": _ABSTRACT}.get(name, "")
    return Finding(text=f"not held: {text}", ok=False, advice=advice, needed=name != "sockets")


def _limit_advice() -> str:
    return "It takes a control group that this user may change, as systemd gives its users; root needs one."
