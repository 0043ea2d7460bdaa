"""Whether the extensions of a folder may be loaded: code, servers and settings from a repository.

Having a clone does not mean trusting it. Extensions that run or change something are loaded only after a person
approved this content at this path; when a file changes, the approval expires. Instructions are text for the model and
need none.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePath

from ..api.config import Config
from ..api.errors import ConfigError
from ..api.permissions import ProjectTrust
from ..util.state_files import make_private_folder, read_trusted_json, update_file
from ..util.text import cut
from ..util.untrusted_json import parse_json

SETTINGS, HOOKS, TOOLS, COMMANDS = ".marvin/config.yaml", ".marvin/hooks", ".marvin/tools", ".marvin/commands"
SERVERS = ".mcp.json"
_FILES = {SERVERS: "servers with tools, which run in the sandbox if one works", SETTINGS: "settings"}
_FOLDERS = {
    HOOKS: (".py", "code that runs at prompts and at calls, in the sandbox if one works"),
    TOOLS: (".py", "code of tools, which runs as Marvin itself does, with all that you may do"),
    COMMANDS: (".md", "a slash command"),
    ".marvin/agents": (".md", "an agent: its instructions and tools"),
    ".marvin/prompts": (".md", "a prompt of the pipeline"),
}
"""The locations of extensions: the endings of their names, and their description in the question."""
PLACES = (*_FILES, *_FOLDERS)
"""The locations that show whether a folder has any."""
_KEPT_HERE = (SERVERS, SETTINGS, HOOKS, TOOLS, COMMANDS)
"""Files that are loaded at a start, with the content that was checked."""
_CODE = (HOOKS, TOOLS)
_LINES_SHOWN = 40
_LINE_SHOWN = 200
_NO = "no "
"""The prefix of the digest of a rejected content."""
_MOST_SERVERS = 20
_SERVER_SHOWN = 300
"""The maximum length of the description of a server, in characters."""
_MOST_FILES = 200
_MOST_BYTES = 1_000_000
_KEPT = 500
"""The maximum number of stored folders; the oldest is removed first."""


class TrustStore:
    """The trusted folders, by path and content, in the state folder."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._path = config.state_folder / "trusted.json"

    def look(self, root: Path) -> ProjectTrust:
        """The extensions of a folder, and whether they may be loaded. Blocks."""
        return self._looked(root, lambda name, content: None)

    def load(self, root: Path) -> tuple[ProjectTrust, Mapping[str, bytes]]:
        """The same, with those that are loaded at a start, if allowed: with exactly the content that was checked."""
        kept: dict[str, bytes] = {}

        def keep(name: str, content: bytes) -> None:
            if name.startswith(_KEPT_HERE):
                kept[name] = content

        found = self._looked(root, keep)
        return found, kept if found.trusted else {}

    def _looked(self, root: Path, keep: Callable[[str, bytes], None]) -> ProjectTrust:
        contents: dict[str, bytes | None] = {}
        details: list[str] = []
        for name, content in _contents(root):  # one after the other: they may be large
            contents[name] = None if content is None else hashlib.sha256(content).digest()
            details += _told(name, content)
            if content is not None:
                keep(name, content)
        brings, digest = tuple(contents), _digest(contents)
        known = self._known().get(str(root))
        if not brings:
            trusted, why = False, "it contains nothing that would be loaded"
        elif not digest:
            trusted, why = False, "a part of it cannot be checked: it is unreadable, a link, or too large"
        elif self._config.trust_project and root == self._config.working_dir:
            trusted, why = True, "--trust-project trusts it for this run"
        elif known == digest:
            trusted, why = True, "you trusted it"
        elif known == f"{_NO}{digest}":
            trusted, why = False, "you said no"
        else:
            trusted = False
            why = "you were not asked yet" if known is None else "its content has changed since you were asked"
        return ProjectTrust(
            folder=str(root),
            brings=brings,
            details=tuple(details),
            trusted=trusted,
            why=why,
            digest=digest,
            asked=bool(digest) and known in (digest, f"{_NO}{digest}"),
        )

    def trust(self, looked_at: ProjectTrust) -> None:
        """Store the approval of exactly this content. Blocks.

        Raises:
            ConfigError: it cannot be stored.
        """
        self._change(looked_at.folder, looked_at.digest)

    def decline(self, looked_at: ProjectTrust) -> None:
        """Store the rejection of this content, so that nobody is asked again until it changes. Blocks.

        Raises as `trust`.
        """
        self._change(looked_at.folder, f"{_NO}{looked_at.digest}")

    def forget(self, root: Path) -> None:
        """Revoke an approval. Blocks. Raises as `trust`."""
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
            raise ConfigError(
                f"{self._path} cannot be changed: {error.strerror}. The decision was not saved."
            ) from error


def _contents(root: Path) -> Iterator[tuple[str, bytes | None]]:
    """The extension files, each with its content; None for those that cannot be read as a whole."""
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
        yield f"{name}: it cannot be checked, so it cannot be trusted"
        return
    yield f"{name}: {what}"
    if name == SETTINGS:
        yield from _quoted(content)
    elif folder in _CODE:
        lines = content.count(b"\n") + (not content.endswith(b"\n"))
        yield f"  {lines:,} line{'' if lines == 1 else 's'} of Python"
    elif name == SERVERS:
        servers = list(_servers(content))
        yield from servers[:_MOST_SERVERS]
        if left := len(servers[_MOST_SERVERS:]):
            yield f"  and {left:,} more"


def _quoted(content: bytes) -> Iterator[str]:
    """The lines of a file, each marked as such; what is left out is counted."""
    lines = content.decode("utf-8", "replace").splitlines()
    yield from (cut(f"  | {line}", _LINE_SHOWN) for line in lines[:_LINES_SHOWN])
    if left := len(lines[_LINES_SHOWN:]):
        yield f"  and {left:,} lines more"


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
    """One value for all names and hashes, lengths among them; empty if a part could not be looked at."""
    total = hashlib.sha256()
    for name, content in contents.items():
        if content is None:
            return ""
        for part in (name.encode("utf-8", "surrogateescape"), content):
            total.update(len(part).to_bytes(8, "big") + part)
    return total.hexdigest()
