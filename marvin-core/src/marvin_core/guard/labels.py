"""Labels for the origin of data in a session, and the calls that need approval because of them; no model decides."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

from ..api.config import Labels, Sink
from ..api.tools import ToolSpec
from ..util.terminal_text import exact_line

Origin: TypeAlias = Literal["web", "repository", "private", "secret", "tools"]
ORIGINS: tuple[Origin, ...] = get_args(Origin)

_TOLD: Mapping[str, Origin] = {one: one for one in ORIGINS if one != "tools"}
"""The origins that a tool may declare."""
PROMPT = "the system prompt"
"""The name for text that comes with each request; no tool can have this name."""
_KEY = ":labels"
"""The key of the labels in the session state; no distribution can have this name."""
_OF_REPOSITORIES = frozenset({"files", "git", "shell", "tickets"})
"""Groups of tools that read the working directory."""
_OF_THE_WEB = frozenset({"github", "knowledge", "pages", "search", "downloads", "media"})
"""Groups of tools that read fetched data, such as clones and articles, from the disk."""
_OF_SESSIONS = frozenset({"session"})
"""Groups of tools that only read what the conversation has already."""
_SPENDING = frozenset({"agents", "review"})
"""Groups of tools that start agents, whose models cost money."""
_REACHES = re.compile(
    r"://|@[\w.-]+:"
    r"|\b(?:curl|wget|aria2c|gh|glab|ssh|scp|sftp|rsync|nc|ncat|telnet|ftp|lynx|w3m|links|https?|xh|dig|nslookup|openssl)\b"
    r"|\b(?:fetch|pull|clone|ls-remote|submodule|install|add|update|download)\b"
)
"""Signs that a command reads from the network. Other network access is labelled as repository."""
_CALLED: Mapping[Origin, str] = {
    "web": "content of the web",
    "repository": "files of the working directory",
    "private": "private data",
    "secret": "something that contained a secret",
    "tools": "",
}
_DOES: Mapping[Sink, str] = {
    "send": "send data to a service",
    "spend": "may spend money",
    "run": "run programs",
    "reach": "reach the network",
}


def origins_of(spec: ToolSpec, arguments: Mapping[str, Any]) -> Sequence[Origin]:
    """The origins of the result of a call. Secrets in it are detected elsewhere."""
    found: list[Origin] = []
    command = arguments.get(spec.command) if spec.command else None
    reads_net = "net" in spec.access and (not isinstance(command, str) or _REACHES.search(command))
    if reads_net or spec.group in _OF_THE_WEB:
        found.append("web")
    if spec.group in _OF_REPOSITORIES or isinstance(command, str):
        found.append("repository")
    elif not found and "read" in spec.access and spec.group not in _OF_SESSIONS:
        found.append("private")
    return found


def told_origins(given: object) -> Sequence[Origin]:
    """The origins that a tool declares for a result; unknown ones count as web."""
    named = given if isinstance(given, (list, tuple, set, frozenset)) else (given,)
    return [_TOLD.get(one, "web") if isinstance(one, str) else "web" for one in named]


def sinks_of(spec: ToolSpec) -> Sequence[Sink]:
    """What a tool can do with data read earlier."""
    found: list[Sink] = []
    if {"net", "write"} <= spec.access and "exec" not in spec.access:
        found.append("send")
    if spec.group in _SPENDING or spec.confirm:
        found.append("spend")
    if "exec" in spec.access:
        found.append("run")
    if "net" in spec.access:
        found.append("reach")
    return found


class SessionLabels:
    """The labels of a session, kept in its state until it ends, also after it is resumed.

    Args:
        state: the state of the session.
        rules: which tools need approval after which origins.
    """

    def __init__(self, state: dict[str, dict[str, Any]], rules: Labels) -> None:
        self._state = state
        self._rules = rules

    def add(self, origins: Sequence[Origin], tool: str) -> None:
        """Record that a tool has read data of these origins; questions name the first tool of each."""
        for origin in origins:
            self._state.setdefault(_KEY, {}).setdefault(origin, tool)

    @property
    def known(self) -> Mapping[Origin, str]:
        """The labels, each with its tool."""
        kept = self._state.get(_KEY, {})
        return {origin: str(kept[origin]) for origin in ORIGINS if origin in kept}

    def why_asked(self, spec: ToolSpec) -> str:
        """Why calls of a tool need approval, with the rule, as the end of a sentence; empty if they do not."""
        sinks = sinks_of(spec)
        for origin, tool in self.known.items():
            rule: tuple[Sink, ...] = getattr(self._rules, origin)
            sink = next((one for one in sinks if one in rule), None)
            if sink is not None:
                read = f"{exact_line(tool)} {'holds' if tool.startswith(PROMPT) else 'has read'} {_CALLED[origin]}"
                if origin == "tools":
                    read = f"the model has read how others describe {exact_line(tool)}"
                return f"{read}, so tools that {_DOES[sink]} need approval (labels.{origin} in config.yaml)"
        return ""
