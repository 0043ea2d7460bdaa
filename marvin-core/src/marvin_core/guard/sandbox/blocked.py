"""Explains from a program's output what the sandbox blocked, with advice."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from . import places
from .policy import TICKETS, Layout

_TAIL = 20_000
"""The number of bytes at the end of the output that are searched; errors appear there."""
_PATHS_OF_LINE = 12
_TOLD = 3
_REFUSED = re.compile(
    r"read-only file system|\berofs\b|permission denied|\beacces\b|operation not permitted|device or resource busy"
    r"|\bebusy\b|cross-device link",
    re.IGNORECASE,
)
_MISSING = re.compile(r"no such file or directory|\benoent\b", re.IGNORECASE)
"""The explanation for a ticket command, if the folder of the tickets looks empty."""
_UNREACHED = re.compile(
    r"network is unreachable|could(?: not|n't) resolve|name or service not known|no address associated"
    r"|temporary failure in name resolution|name resolution|nodename nor servname|getaddrinfo|enotfound|eai_again"
    r"|enetunreach|failed to lookup address|dns error|no such host|unable to resolve",
    re.IGNORECASE,
)
_CANDIDATE = re.compile(r"[^\s'\"`‘’“”:,;()<>\[\]=]+")
_QUOTED = re.compile(r"['\"`‘“]([^'\"`’”]+)['\"`’”]")
_GIT: dict[str, str] = {
    "config": "only the user can change git settings: give them the command to run, such as git remote add or git "
    "config",
    "hooks": "only the user can change hooks: describe the change to them",
    "config.worktree": "only the user can change git settings: give them the command to run",
    "attributes": "write project settings to .gitattributes",
}
_GIT_ELSE = "the user can change it"


def explain(output: bytes, cwd: Path, layout: Layout) -> str:
    """The actions that the sandbox blocked, one per line; empty if the output shows none."""
    text = output[-_TAIL:].decode("utf-8", "replace")
    told: dict[str, None] = {}
    for line in text.splitlines():
        if _REFUSED.search(line) or (TICKETS in line and _MISSING.search(line)):
            for path in _paths(line, cwd):
                said = _said_of(path, layout)
                if said:
                    told[said] = None
                    break
        if layout.policy.network != "all" and _UNREACHED.search(line):
            told[_network(layout)] = None
    return "\n".join(list(told)[:_TOLD])


def _paths(line: str, cwd: Path) -> Iterator[Path]:
    """Strings in a line that may be paths, once links are followed."""
    # After the name of the program and the line of its script, the path in question comes last.
    plain = [text for text in reversed(_CANDIDATE.findall(line)) if "/" in text or "." in text]
    for text in [*_QUOTED.findall(line), *plain][:_PATHS_OF_LINE]:
        if "\0" not in text:
            yield Path(os.path.realpath(cwd / text.rstrip(".")))


def _said_of(path: Path, layout: Layout) -> str:
    kind = layout.kind_of(path)
    if kind in ("hidden", "bare") and path.is_relative_to(layout.policy.root / TICKETS):
        return f"The sandbox hides {path}: use the ticket tools for tickets."
    if kind in ("hidden", "empty"):
        return f"The sandbox hides {path}: it hides keys, browser profiles, command histories and Marvin's own files."
    if kind != "read-only" or not (os.path.exists(path) or os.path.exists(path.parent)):
        return ""
    root = layout.policy.root
    if layout.policy.root_kept and path.is_relative_to(root):
        return (
            f"In the sandbox {path} is read-only: the working directory is the home folder, and nobody can be asked "
            "in this run. Write files with the file tools, and let commands write to /tmp. The user can choose "
            "another folder with --working-dir."
        )
    if path.is_relative_to(root) and places.is_one_of(path.relative_to(root), places.RUN_BY_THEMSELVES):
        return f"The sandbox does not let {path} change: programs of the user run or obey it automatically."
    if any(path.is_relative_to(folder) for folder in layout.closed):
        return (
            f"The sandbox does not let {path} or the rest of the git folder change: a file that git runs is a link "
            "or cannot be created, so it cannot be protected separately."
        )
    if any(path.is_relative_to(folder) for folder in layout.own_code):
        return (
            f"The sandbox does not let {path} change: Marvin itself runs from there. Use a separate virtual "
            "environment for the project."
        )
    if ".git" in path.parts or any(part in path.parts for part in ("worktrees", "modules")):
        name = next((part for part in reversed(path.parts) if part.removesuffix(".lock") in _GIT), "")
        advice = _GIT.get(name.removesuffix(".lock"), _GIT_ELSE if ".git" in path.parts else "")
        return f"The sandbox does not let {path} change, because git runs commands from it; {advice}." if advice else ""
    if path.is_relative_to(root / ".marvin"):
        return f"The sandbox does not let {path} change: it belongs to Marvin."
    return (
        f"In the sandbox {path} is read-only: only the working directory {root}, /tmp and the caches of package "
        "managers can be written."
    )


def _network(layout: Layout) -> str:
    if layout.policy.network == "hosts":
        return (
            "In the sandbox commands can reach some hosts only, through the proxy in the variables HTTP_PROXY and "
            "ALL_PROXY. A program that ignores these variables has no network."
        )
    return "The sandbox has no network: commands can reach only programs inside it."
