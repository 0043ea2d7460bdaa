"""What language servers are configured with: options, settings, and restrictions without a sandbox."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .catalog import ServerKind

_NOTHING = -32601
_NULL = (
    "client/registerCapability",
    "client/unregisterCapability",
    "window/workDoneProgress/create",
    "window/showMessageRequest",
    "workspace/diagnostic/refresh",
    "workspace/semanticTokens/refresh",
    "workspace/inlayHint/refresh",
    "workspace/codeLens/refresh",
)


def _typescript_of(program: str) -> str:
    """The TypeScript that is installed beside typescript-language-server; empty if there is none."""
    for folder in Path(os.path.realpath(program)).parents:
        if folder.name == "node_modules":
            found = folder / "typescript" / "lib" / "tsserver.js"
            return str(found) if found.is_file() else ""
    return ""


def refusal(kind: ServerKind, program: str, *, sandboxed: bool) -> str:
    """Why a server is not used here; empty if it is."""
    if kind.name == "typescript-language-server" and not sandboxed and not _typescript_of(program):
        return "it has no TypeScript of its own, and would run the project's TypeScript outside of a sandbox"
    return ""


def passing(kind: ServerKind, path: Path) -> tuple[str, Mapping[str, Any]]:
    """A request about a file that the server answers once it has read the newest version."""
    if kind.name == "typescript-language-server":
        # The server sends syntax errors first and all others only later. This request makes it compute them.
        arguments = ["semanticDiagnosticsSync", {"file": str(path)}]
        return "workspace/executeCommand", {"command": "typescript.tsserverRequest", "arguments": arguments}
    return "textDocument/documentSymbol", {"textDocument": {"uri": path.as_uri()}}


def options_of(kind: ServerKind, program: str, *, sandboxed: bool) -> Mapping[str, Any]:
    """The initialization options."""
    if kind.name == "typescript-language-server":
        # These would load programs from the project's node_modules, and fetch types without being asked.
        path = _typescript_of(program)
        return {"disableAutomaticTypingAcquisition": True, **({"tsserver": {"path": path}} if path else {})}
    return {**kind.options, **({} if sandboxed else kind.careful)}


def answer_of(
    kind: ServerKind, root: Path, method: str, given: Mapping[str, Any], *, sandboxed: bool
) -> Mapping[str, Any]:
    """The answer to a request of the server, as `result` or `error`."""
    if method == "workspace/configuration":
        items = given.get("items")
        settings = _settings(kind, root, sandboxed=sandboxed)
        return {"result": [_section(settings, item) for item in items] if isinstance(items, list) else []}
    if method == "workspace/workspaceFolders":
        return {"result": [{"uri": root.as_uri(), "name": root.name or "/"}]}
    if method == "workspace/applyEdit":
        return {"result": {"applied": False}}
    if method in _NULL:
        return {"result": None}
    return {"error": {"code": _NOTHING, "message": "not supported"}}


def _settings(kind: ServerKind, root: Path, *, sandboxed: bool) -> Mapping[str, Any]:
    if sandboxed:
        return kind.settings
    if "python" not in kind.settings:
        return {**kind.settings, **({kind.name: kind.careful} if kind.careful else {})}
    # The interpreter of a project is a program of the project. Its packages are found without it.
    packages = [str(path) for path in sorted(root.glob(".venv/lib/python3*/site-packages"))]
    python = dict(kind.settings["python"])
    python["analysis"] = {**python["analysis"], "extraPaths": packages}
    sections = {name: {**given, "analysis": python["analysis"]} for name, given in kind.settings.items()}
    return {**sections, "python": {**python, "pythonPath": sys.executable}}


def _section(settings: Mapping[str, Any], item: object) -> Any:
    """The settings of a section named as `a.b`; None if there are none."""
    name = item.get("section") if isinstance(item, dict) else None
    found: Any = settings
    for part in name.split(".") if isinstance(name, str) and name else ():
        found = found.get(part) if isinstance(found, dict) else None
    return found
