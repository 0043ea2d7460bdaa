"""Maps calls of agent tools, as models trained with other programs write them, to our arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..adapters import IGNORED, refuse, says_yes, truth

LAUNCH_NAMES = {
    "ticket_id": ("ticket", "ticketId", "issue"),
    "prompt": ("task", "message", "query", "instructions"),
    "working_dir": ("workdir", "cwd", "workingDir", "directory", "folder"),
}
LAUNCH_IGNORED = (
    *(name for name in IGNORED if name != "instructions"),
    *("subagent_type", "agent_type", "name", "title"),
)
RESEARCH_NAMES = {"query": ("prompt", "task", "question", "message", "instructions")}
RESEARCH_IGNORED = LAUNCH_IGNORED
_USUAL = ("", "inherit", "default")
"""Values of `model` in other programs that mean the default model."""


def launch_arguments(given: dict[str, Any]) -> Mapping[str, Any]:
    """The arguments of launch_agent."""
    if says_yes(given, "worktree"):
        given.setdefault("isolation", "worktree")
    isolation = given.get("isolation")
    if isinstance(isolation, str):
        isolation = given["isolation"] = isolation.strip().lower()
    if "isolation" in given and (truth(isolation) in (False, None) or isolation == "none"):
        given["isolation"] = ""
    if truth(isolation) is True:  # there is only one kind of agent
        given["isolation"] = "worktree"
    return research_arguments(given)


def research_arguments(given: dict[str, Any]) -> Mapping[str, Any]:
    """The arguments of launch_research_agent, which launch_agent shares."""
    refuse(
        given, ("run_in_background", "background"), "A call waits for its agent; several researchers may run at once."
    )
    model = given.get("model")
    if isinstance(model, str):
        given["model"] = "auto" if model.strip().lower() in _USUAL else model.strip()
    return given
