"""What a program's output tells of what the sandbox held back, in words that help to go on."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from . import places
from .policy import TICKETS, Layout

_TAIL = 20_000
"""Bytes at the end of the output that are looked through; errors stand there."""
_PATHS_OF_LINE = 12
_TOLD = 3
_REFUSED = re.compile(
    r"read-only file system|\berofs\b|permission denied|\beacces\b|operation not permitted|device or resource busy"
    r"|\bebusy\b|cross-device link",
    re.IGNORECASE,
)
_MISSING = re.compile(r"no such file or directory|\benoent\b", re.IGNORECASE)
"""Said of a ticket, where the folder of the tickets looks empty."""
_UNREACHED = re.compile(
    r"network is unreachable|could(?: not|n't) resolve|name or service not known|no address associated"
    r"|temporary failure in name resolution|name resolution|nodename nor servname|getaddrinfo|enotfound|eai_again"
    r"|enetunreach|failed to lookup address|dns error|no such host|unable to resolve",
    re.IGNORECASE,
)
_CANDIDATE = re.compile(r"[^\s'\"`‘’“”:,;()<>\[\]=]+")
_QUOTED = re.compile(r"['\"`‘“]([^'\"`’”]+)['\"`’”]")
_GIT: dict[str, str] = {
    "config": "git settings are the user's: name the command for them to run, such as git remote add or git config",
    "hooks": "hooks are the user's: name the change for them to make",
    "config.worktree": "git settings are the user's: name the command for them to run",
    "attributes": "write what belongs to the project to .gitattributes",
}
_GIT_ELSE = "the user can change it"


def explain(output: bytes, cwd: Path, layout: Layout) -> str:
    """What the sandbox held back, one line for each; empty where nothing in the output tells of it."""
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
    """What in a line may be a path, as it is once links are followed."""
    # Behind the name of the program and the line of its script, what is meant stands last.
    plain = [text for text in reversed(_CANDIDATE.findall(line)) if "/" in text or "." in text]
    for text in [*_QUOTED.findall(line), *plain][:_PATHS_OF_LINE]:
        if "\0" not in text:
            yield Path(os.path.realpath(cwd / text.rstrip(".")))


def _said_of(path: Path, layout: Layout) -> str:
    kind = layout.kind_of(path)
    if kind in ("hidden", "bare") and path.is_relative_to(layout.policy.root / TICKETS):
        return f"The sandbox hides {path}: tickets are reached by the tools for tickets only."
    if kind in ("hidden", "empty"):
        return f"The sandbox hides {path}: keys, browser profiles, histories and Marvin's own files."
    if kind != "read-only" or not (os.path.exists(path) or os.path.exists(path.parent)):
        return ""
    root = layout.policy.root
    if layout.policy.root_kept and path.is_relative_to(root):
        return (
            f"The sandbox holds {path} read-only: the home folder itself is the working directory, and nobody is there "
            "to ask. Write files by the tools for that, commands to /tmp; --working-dir names a folder to work in."
        )
    if path.is_relative_to(root) and places.is_one_of(path.relative_to(root), places.RUN_BY_THEMSELVES):
        return f"The sandbox keeps {path} as it is: programs of the user run it by themselves, or obey it."
    if any(path.is_relative_to(folder) for folder in layout.closed):
        return (
            f"The sandbox keeps {path} and the whole git folder as they are: what git runs is a link there, or cannot "
            "be made, so that it cannot be guarded alone."
        )
    if any(path.is_relative_to(folder) for folder in layout.own_code):
        return f"The sandbox keeps {path} as it is: Marvin itself runs from there. Use an environment of the project."
    if ".git" in path.parts or any(part in path.parts for part in ("worktrees", "modules")):
        name = next((part for part in reversed(path.parts) if part.removesuffix(".lock") in _GIT), "")
        advice = _GIT.get(name.removesuffix(".lock"), _GIT_ELSE if ".git" in path.parts else "")
        return f"The sandbox keeps {path} as it is, since git runs what stands there; {advice}." if advice else ""
    if path.is_relative_to(root / ".marvin"):
        return f"The sandbox keeps {path} as it is: it is Marvin's."
    return (
        f"The sandbox holds {path} read-only: inside it the working directory {root}, /tmp and the "
        "caches of package managers can be written."
    )


def _network(layout: Layout) -> str:
    if layout.policy.network == "hosts":
        return (
            "The sandbox lets commands reach some hosts only, by the proxy that the variables HTTP_PROXY and ALL_PROXY "
            "name. A program that does not use it reaches nothing."
        )
    return "The sandbox has no way to the network: commands reach what runs inside of it, and nothing else."
