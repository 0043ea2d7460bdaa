"""The language servers of a session: one of each kind for each root, started by the first edit that needs it."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from marvin_core import PackContext, ToolContext, ToolError, in_thread

from ..settings import CodingSettings, LspSettings
from . import report
from .catalog import SUFFIXES, ServerKind, kinds_of
from .documents import Diagnostic
from .lookup import found
from .offers import Offers
from .server import Server
from .status import Notes, ServerStatus

_FOLDER = "lsp"
"""In the pack's folder for machine-local data: where sessions write the state of their servers."""
_FILES = 20
"""Files of one edit that are checked at most."""
_SIZE = 1_000_000
"""Bytes of a file that is checked at most."""
_STARTS = 3
"""Starts of one server in a session at most."""
_SILENT = 3
"""Edits without an answer after which a server is hardly waited for."""
_HARDLY = 0.2


class LanguageServers:
    """The running language servers and their diagnostics."""

    def __init__(self) -> None:
        self.servers: list[Server] = []
        self.offers = Offers()
        self.notes = Notes(self.statuses)
        self._starts: dict[tuple[str, Path], int] = defaultdict(int)
        self._owed: list[tuple[Server, str, Path]] = []
        """Files whose diagnostics did not come in time."""
        self._told: set[str] = set()

    async def after_edit(self, context: ToolContext, paths: Sequence[str]) -> str:
        """The message about files that were just written; empty if there is none."""
        settings = (await in_thread(lambda: context.settings(CodingSettings))).lsp
        if not settings.use:
            return ""
        root = context.paths.root
        texts = await in_thread(lambda: _texts(context, paths))
        shown: dict[Server, list[str]] = defaultdict(list)
        for path in dict.fromkeys(paths):
            for server in self._for(context, path):
                if (text := texts.get(path)) is None:
                    server.forget(_file(root, path))
                else:
                    server.show(_file(root, path), text)
                    shown[server].append(path)
        if self.servers:
            await self.notes.open(lambda: noted_in(context))
        missing = [path for path in texts if not any(path in said for said in shown.values())]
        offered = await self.offers.offer(context, settings.install, missing)
        await self._wait(context, settings, root, shown)
        return "\n".join(filter(None, (self._said(root, shown), *self._faults(), offered)))

    def _for(self, context: ToolContext, path: str) -> Iterator[Server]:
        """The servers of a file, started if necessary: of each role the first that is installed."""
        roles: set[str] = set()
        for kind in kinds_of(path):
            if kind.role in roles:
                continue
            server = self._running(kind, context.paths.root) or self._started(context, kind)
            if server is not None:
                roles.add(kind.role)
                yield server

    def _running(self, kind: ServerKind, root: Path) -> Server | None:
        return next((one for one in self.servers if one.kind is kind and one.root == root and not one.fault), None)

    def _started(self, context: ToolContext, kind: ServerKind) -> Server | None:
        root = context.paths.root
        if self._starts[kind.name, root] >= _STARTS:
            return None
        program = found(kind, context.config_folder, context.processes.which)
        if program is None:
            return None
        self._starts[kind.name, root] += 1
        server = Server(kind, [program, *kind.arguments], root, self.notes.change)
        self.servers = [one for one in self.servers if not (one.kind is kind and one.root == root)]
        self.servers.append(server)
        server.start(context.processes)
        return server

    async def _wait(
        self, context: ToolContext, settings: LspSettings, root: Path, shown: Mapping[Server, Sequence[str]]
    ) -> None:
        limit = min(settings.wait, context.time_left / 2)
        await asyncio.gather(
            *(
                server.settled([_file(root, path) for path in paths], limit if server.silent < _SILENT else _HARDLY)
                for server, paths in shown.items()
            )
        )

    def _said(self, root: Path, shown: Mapping[Server, Sequence[str]]) -> str:
        """Diagnostics of these files, and late ones of earlier files."""
        now = {_file(root, path) for paths in shown.values() for path in paths}
        late: dict[str, list[Diagnostic]] = {}
        late_by = []
        for server, path, file in self._owed:
            document = server.documents.get(file)
            if file not in now and document is not None and document.wait_left <= 0:
                late.setdefault(path, []).extend(document.said or ())
                late_by.append(server.kind.name)
        self._owed = [(s, p, f) for s, p, f in self._owed if f not in now and _is_owed(s, f)]
        said: dict[str, list[Diagnostic]] = {}
        said_by, waiting = [], defaultdict(list)
        for server, paths in shown.items():
            for path in paths:
                document = server.documents.get(_file(root, path))
                if document is not None and document.wait_left <= 0:
                    said.setdefault(path, []).extend(document.said or ())
                    said_by.append(server.kind.name)
                elif not server.fault:
                    waiting[server.kind.name].append(path)
                    self._owed.append((server, path, _file(root, path)))
        texts = (report.told(said, said_by), report.pending(waiting), report.told(late, late_by))
        return "\n".join(filter(None, texts))

    def _faults(self) -> Iterator[str]:
        """Which servers do not work, and why; each once a session."""
        for server in self.servers:
            if server.fault and server.kind.name not in self._told:
                self._told.add(server.kind.name)
                # rustup leaves such a program where the component is missing, and so does a broken installation.
                way = f" The user can install it: {server.kind.way}" if not server.was_ready else ""
                yield f"[The language server {server.kind.name} does not work: {server.fault}.{way}]"

    def statuses(self) -> Sequence[ServerStatus]:
        """The state of the servers, and all their diagnostics."""
        return [server.status for server in self.servers]

    async def close(self) -> None:
        """Shut all of them down."""
        await asyncio.gather(*(server.close() for server in self.servers), self.offers.close())
        await self.notes.close()


@asynccontextmanager
async def language_servers() -> AsyncIterator[LanguageServers]:
    """The resource of a session."""
    servers = LanguageServers()
    try:
        yield servers
    finally:
        await servers.close()


def noted_in(context: PackContext) -> Path:
    """The folder in which sessions write the state of their servers."""
    return context.folders.state / _FOLDER


async def diagnostics_after(context: ToolContext, paths: Sequence[str]) -> str:
    """Diagnostics of files that were just written. Never raises: the edit is done.

    Returns:
        Text for the end of the result; empty if there is none.
    """
    if not any(Path(path).suffix in SUFFIXES for path in paths):
        return ""
    try:
        servers = await context.resource(language_servers)
        return await servers.after_edit(context, paths[:_FILES])
    except Exception:  # the file is written: no failure here may tell the model otherwise
        return ""


def _file(root: Path, path: str) -> Path:
    """The resolved path, as servers name the file."""
    return Path(os.path.normpath(root / path))


def _texts(context: ToolContext, paths: Sequence[str]) -> Mapping[str, str]:
    """The texts of the files that a server can check."""
    found = {}
    for path in paths:
        if Path(path).suffix not in SUFFIXES:
            continue
        try:
            with context.paths.open(path) as file:
                data = file.read(_SIZE + 1)
            if len(data) <= _SIZE:
                found[path] = data.decode()
        except (ToolError, OSError, UnicodeDecodeError):  # deleted, moved, or in another encoding
            continue
    return found


def _is_owed(server: Server, file: Path) -> bool:
    document = server.documents.get(file)
    return document is not None and not server.fault and document.wait_left > 0
