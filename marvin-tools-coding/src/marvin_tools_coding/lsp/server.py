"""One language server: its start, its messages and its end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from marvin_core import Conversation, Processes, ToolError

from .catalog import ServerKind
from .configured import answer_of, options_of, passing, refusal
from .documents import Document, path_of
from .status import ServerStatus
from .wire import MessageReader, WireError, packed

_START = 60.0
"""Seconds that a server may take to start."""
_GOODBYE = 1.0
"""Seconds that it may take to answer the shutdown request."""
_FLOOD = 100_000_000
"""Bytes that a server may send between two edits."""
_OPEN = 40
"""Files that are open in a server at most."""
_SAVED = {"synchronization": {"didSave": True}, "publishDiagnostics": {"versionSupport": True}}
_CAN = {
    "textDocument": _SAVED,
    "workspace": {"configuration": True, "workspaceFolders": True, "didChangeWatchedFiles": {}},
    "window": {"workDoneProgress": True},
}


class Server:
    """A running language server for one root folder.

    Args:
        argv: the command that starts it.
        root: the folder that it works on.
        on_news: called after new diagnostics, or a change of its state.
    """

    def __init__(self, kind: ServerKind, argv: Sequence[str], root: Path, on_news: Callable[[], None]) -> None:
        self.kind = kind
        self.root = root
        self.fault = ""
        """Why it can no longer be used; empty while it can."""
        self.documents: dict[Path, Document] = {}
        self.silent = 0
        """How many edits in a row got no diagnostics in time."""
        self._argv = argv
        self._talk: Conversation | None = None
        self._reader = MessageReader()
        self._answers: dict[int, asyncio.Future[Mapping[str, Any]]] = {}
        self._last = 0
        self._received = 0
        self._ready = False
        self._news = asyncio.Event()
        self._on_news = on_news
        self._starting: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """Its process id; 0 if there is no process."""
        return self._talk.pid if self._talk is not None and self._talk.running else 0

    @property
    def was_ready(self) -> bool:
        """Whether its start completed."""
        return self._ready

    @property
    def state(self) -> str:
        """Its state, for people."""
        return self.fault or ("running" if self._ready else "starting")

    @property
    def status(self) -> ServerStatus:
        """Its state, and the diagnostics of its open files."""
        said, waiting = {}, []
        for path, document in self.documents.items():
            name = str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)
            if document.said is None:
                waiting.append(name)
            else:
                said[name] = document.said
        pid, root = self.pid, str(self.root)
        return ServerStatus(name=self.kind.name, state=self.state, pid=pid, root=root, waiting=waiting, said=said)

    def start(self, processes: Processes) -> None:
        """Start it in the background."""
        self._starting = asyncio.ensure_future(self._start(processes))

    async def _start(self, processes: Processes) -> None:
        try:
            async with asyncio.timeout(_START):
                self._talk = await processes.converse(
                    self._argv, cwd=self.root, on_output=self._take, on_end=self._ended
                )
                if said := refusal(self.kind, self._argv[0], sandboxed=self._talk.sandboxed):
                    await self._fail(said)
                    return
                await self._request("initialize", self._introduction(self._talk))
            self._notify("initialized", {})
            self._ready = True
            self._on_news()
            for document in self.documents.values():
                self._open(document)
        except TimeoutError:
            await self._fail("it does not answer")
        except (ToolError, WireError) as error:
            await self._fail(str(error))

    def _introduction(self, talk: Conversation) -> Mapping[str, Any]:
        uri = self.root.as_uri()
        return {
            # In a sandbox the server would look for this id among other processes, and exit.
            "processId": None if talk.sandboxed else os.getpid(),
            "clientInfo": {"name": "marvin"},
            "rootUri": uri,
            "rootPath": str(self.root),
            "workspaceFolders": [{"uri": uri, "name": self.root.name or "/"}],
            "capabilities": _CAN,
            "initializationOptions": options_of(self.kind, self._argv[0], sandboxed=talk.sandboxed),
        }

    def show(self, path: Path, text: str) -> None:
        """Send the current text of a file."""
        self._received = 0
        document = self.documents.pop(path, None)
        if document is None:
            document = Document(path, self.kind.languages[path.suffix], text)
        else:
            document.write(text)
        self.documents[path] = document
        if self._ready:
            self._open(document)
        while len(self.documents) > _OPEN:
            self.forget(next(iter(self.documents)))

    def _open(self, document: Document) -> None:
        uri, version = document.path.as_uri(), document.version
        known = {"uri": uri, "version": version}
        if document.is_open:
            self._notify("textDocument/didChange", {"textDocument": known, "contentChanges": [{"text": document.text}]})
        else:
            whole = {**known, "languageId": document.language, "text": document.text}
            self._notify("textDocument/didOpen", {"textDocument": whole})
            document.is_open = True
        self._notify("textDocument/didSave", {"textDocument": {"uri": uri}})
        request = asyncio.ensure_future(self._request(*passing(self.kind, document.path)))

        def passed(done: asyncio.Future[Mapping[str, Any]]) -> None:
            if not done.cancelled() and done.exception() is None and document.version == version:
                document.passed = True
                self._tell()

        request.add_done_callback(passed)

    def forget(self, path: Path) -> None:
        """Close a file that was removed or is no longer needed."""
        document = self.documents.pop(path, None)
        if document is not None and document.is_open:
            self._notify("textDocument/didClose", {"textDocument": {"uri": path.as_uri()}})

    async def settled(self, paths: Sequence[Path], limit: float) -> bool:
        """Wait, for some seconds at most, until the diagnostics of files are complete; returns whether they are."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + limit
        while not self.fault:
            left = max((self.documents[path].wait_left for path in paths if path in self.documents), default=0.0)
            if left <= 0:
                self.silent = 0
                return True
            now = loop.time()
            if now >= deadline:
                break
            self._news.clear()
            try:
                async with asyncio.timeout(min(left, deadline - now)):
                    await self._news.wait()
            except TimeoutError:
                continue
        self.silent += 1
        return False

    def _tell(self) -> None:
        """Wake all waiters."""
        self._news.set()
        self._on_news()

    def _notify(self, method: str, parameters: Mapping[str, Any]) -> None:
        self._send({"method": method, "params": parameters})

    async def _request(self, method: str, parameters: Mapping[str, Any] | None) -> Mapping[str, Any]:
        self._last += 1
        number = self._last
        answer: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        message = {"id": number, "method": method}
        try:
            self._send(message if parameters is None else {**message, "params": parameters})
            return await answer
        finally:
            self._answers.pop(number, None)

    def _send(self, message: Mapping[str, Any]) -> None:
        if self._talk is None or self.fault:
            return
        try:
            self._talk.send(packed(message))
        except ToolError as error:
            self._give_up(str(error))

    def _take(self, chunk: bytes) -> None:
        if self.fault:
            return
        self._received += len(chunk)
        try:
            if self._received > _FLOOD:
                raise WireError("it sent more data than is allowed")
            for message in self._reader.feed(chunk):
                self._heed(message)
        except WireError as error:
            self._give_up(str(error))

    def _heed(self, message: Mapping[str, Any]) -> None:
        method, number = message.get("method"), message.get("id")
        parameters = message.get("params")
        given = parameters if isinstance(parameters, dict) else {}
        if method is None:
            waiting = self._answers.get(number) if isinstance(number, int) else None
            if waiting is not None and not waiting.done():
                waiting.set_result(message)
        elif number is not None:
            sandboxed = self._talk is not None and self._talk.sandboxed
            self._send({"id": number, **answer_of(self.kind, self.root, str(method), given, sandboxed=sandboxed)})
        elif method == "textDocument/publishDiagnostics":
            path = path_of(given.get("uri"))
            document = self.documents.get(path) if path is not None else None
            if document is not None:
                document.take(given, self.kind.name)
                self._tell()

    def _ended(self) -> None:
        self._give_up("it ended by itself" if self._ready else "it ended during its start")

    def _give_up(self, fault: str) -> None:
        """Mark it as failed and wake all waiters."""
        self.fault = self.fault or fault
        self._tell()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(ToolError(fault))
                answer.exception()  # there may be no waiters left
        if self._talk is not None and self._talk.running:
            self._closing = asyncio.ensure_future(self._talk.close())

    async def _fail(self, fault: str) -> None:
        self._give_up(fault)
        if self._talk is not None:
            await self._talk.close()

    async def close(self) -> None:
        """Shut it down, and kill it if it does not exit."""
        if self._starting is not None and not self._starting.done():
            self._starting.cancel()
            await asyncio.wait([self._starting])
        if self._talk is None:
            return
        try:
            if self._ready and not self.fault:
                async with asyncio.timeout(_GOODBYE):
                    await self._request("shutdown", None)
                self._notify("exit", {})
        except (TimeoutError, ToolError):  # it is killed next
            pass
        finally:
            self.fault = self.fault or "it was shut down"
            await self._talk.close()
