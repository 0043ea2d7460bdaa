"""Whether what a folder brings may be loaded: code, servers and settings that came with a repository.

A clone is not its owner's word. What would run or change something is loaded only after a person said yes to this very
content at this very place; when a file changes, the yes is gone. Instructions are text for the model and need none.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path, PurePath

from ..api.config import Config
from ..api.errors import ConfigError
from ..api.permissions import ProjectTrust
from ..util.state_files import make_private_folder, read_trusted_json, update_file
from ..util.text import cut
from ..util.untrusted_json import parse_json

_FILES = {".mcp.json": "servers with tools", ".marvin/config.yaml": "settings"}
_FOLDERS = {
    ".marvin/hooks": (".py", "code that would run at prompts and at calls"),
    ".marvin/tools": (".py", "code of tools"),
    ".marvin/commands": (".md", "a slash command"),
    ".marvin/agents": (".md", "an agent: its instructions and tools"),
    ".marvin/prompts": (".md", "a prompt of the pipeline"),
}
"""Where files are that would be loaded: how their names end, and what they are to whoever is asked."""
_LOADED = ("", ".marvin/agents", ".marvin/prompts")
"""What a yes has loaded by now; the rest is asked about with them, so that a later version need not ask again."""
_SERVERS = ".mcp.json"
_MOST_SERVERS = 20
_SERVER_SHOWN = 300
"""Characters of what one server starts."""
_MOST_FILES = 200
_MOST_BYTES = 1_000_000
_KEPT = 500
"""How many folders are remembered; the oldest is forgotten first."""


class TrustStore:
    """The folders that a person trusts, by place and content, in the state folder."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._path = config.state_folder / "trusted.json"

    def look(self, root: Path) -> ProjectTrust:
        """What a folder brings, and whether that may be loaded. Blocks."""
        return self._looked_at(root, "")[0]

    def content(self, root: Path, name: str) -> bytes | None:
        """What a file of a trusted folder held when it was looked at; None without trust, or such a file. Blocks."""
        found, content = self._looked_at(root, name)
        return content if found.trusted else None

    def _looked_at(self, root: Path, wanted: str) -> tuple[ProjectTrust, bytes | None]:
        contents: dict[str, bytes | None] = {}
        details: list[str] = []
        held: bytes | None = None
        for name, content in _contents(root):  # one after the other: they may be large
            contents[name] = None if content is None else hashlib.sha256(content).digest()
            details += _told(name, content)
            held = content if name == wanted else held
        brings, digest = tuple(contents), _digest(contents)
        if not brings:
            trusted, why = False, "it brings nothing that would be loaded"
        elif not digest:
            trusted, why = False, "a part of it cannot be looked at: it is unreadable, a link, or too large"
        elif self._config.trust_project and root == self._config.working_dir:
            trusted, why = True, "--trust-project grants it for this run"
        elif self._known().get(str(root)) == digest:
            trusted, why = True, "you said so"
        else:
            trusted = False
            why = "its content has changed since you said so" if str(root) in self._known() else "nobody was asked"
        found = ProjectTrust(
            folder=str(root), brings=brings, details=tuple(details), trusted=trusted, why=why, digest=digest
        )
        return found, held

    def trust(self, looked_at: ProjectTrust) -> None:
        """Remember a yes to what was looked at, and to nothing that came since. Blocks.

        Raises:
            ConfigError: where it cannot be kept.
        """
        self._change(looked_at.folder, looked_at.digest)

    def forget(self, root: Path) -> None:
        """Take a yes back. Blocks. Raises as `trust`."""
        self._change(str(root), None)

    def _known(self) -> dict[str, str]:
        kept = read_trusted_json(self._path)
        return kept if isinstance(kept, dict) else {}

    def _change(self, folder: str, digest: str | None) -> None:
        def changed(content: bytes | None) -> bytes:
            known = self._known()
            known.pop(folder, None)
            if digest is not None:
                known[folder] = digest
            return json.dumps(dict(list(known.items())[-_KEPT:]), indent=1).encode()

        try:
            make_private_folder(self._path.parent)
            update_file(self._path, changed, self._config.timeouts)
        except OSError as error:
            raise ConfigError(f"{self._path} cannot be changed: {error.strerror}. Nothing was remembered.") from error


def _contents(root: Path) -> Iterator[tuple[str, bytes | None]]:
    """The files that would be loaded, with what each holds; None for what cannot be looked at as a whole."""
    found = [name for name in _FILES if os.path.lexists(root / name)]
    for folder, (ending, _) in _FOLDERS.items():
        try:
            names = sorted(os.listdir(root / folder))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            yield folder, None
            continue
        found += [f"{folder}/{name}" for name in names if name.endswith(ending)]
    for name in found[:_MOST_FILES]:
        # What is looked at through a link is elsewhere, and may be something else by the next look.
        above = [root / folder for folder in PurePath(name).parents[:-1]]
        yield name, None if any(map(os.path.islink, above)) else _content(root / name)
    if len(found) > _MOST_FILES:
        yield f"{len(found) - _MOST_FILES:,} more files", None


def _content(path: Path) -> bytes | None:
    try:
        # A pipe would hold up whoever opens it; a link could lead to what nobody was shown.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            data = stream.read(_MOST_BYTES + 1)
    except OSError:
        return None
    return data if len(data) <= _MOST_BYTES else None


def _told(name: str, content: bytes | None) -> Iterator[str]:
    """What a file is and does, a line each, for whoever is asked to trust it. Nothing in it is escaped yet."""
    folder = os.path.dirname(name)
    what = _FOLDERS[folder][1] if folder in _FOLDERS else _FILES.get(name, "")
    if content is None:
        yield f"{name}: it cannot be looked at, so that no yes counts"
        return
    yield f"{name}: {what}" if folder in _LOADED else f"{name}: {what}; this version does not load it"
    if name == _SERVERS:
        servers = list(_servers(content))
        yield from servers[:_MOST_SERVERS]
        if left := len(servers[_MOST_SERVERS:]):
            yield f"  and {left:,} more"


def _servers(content: bytes) -> Iterator[str]:
    """What each server is: the program that it would start, or the address that it would talk to."""
    try:
        servers = parse_json(content)["mcpServers"]
        for name, server in servers.items():
            command = [server.get("command"), *(server.get("args") or [])]
            given = " ".join(shlex.quote(str(word)) for word in command) if command[0] else str(server.get("url"))
            variables = " ".join(map(str, server.get("env") or ()))
            with_them = f", with the variables {variables}" if variables else ""
            verb = "starts" if command[0] else "talks to"
            yield cut(f"  {name} {verb} {given}{with_them}", _SERVER_SHOWN)
    except (ValueError, KeyError, TypeError, AttributeError):
        yield "  it does not have the form of such a file"


def _digest(contents: dict[str, bytes | None]) -> str:
    """One value for all names and hashes, lengths among them; empty where a part could not be looked at."""
    total = hashlib.sha256()
    for name, content in contents.items():
        if content is None:
            return ""
        for part in (name.encode("utf-8", "surrogateescape"), content):
            total.update(len(part).to_bytes(8, "big") + part)
    return total.hexdigest()
