"""Marvin as an agent of an editor: the methods of the Agent Client Protocol, over any number of sessions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from acp import PROTOCOL_VERSION, schema
from acp.agent.connection import AgentSideConnection
from acp.exceptions import RequestError

from ..api.config import McpServer
from ..api.errors import MarvinError
from ..api.ui import UI
from ..config.program import command_name
from ..sessions.search import entries
from ..util.failures import is_failure, shown
from ..util.garbage import collect_again, end_exemptions
from ..util.threads import in_thread
from ..version import __version__
from .choices import choose, options
from .line import EditorLine
from .person import EditorClient, EditorPerson, person_for
from .prompts import Block
from .servers import GivenServer, servers_given
from .session import EditorSession, Opened, folder_of

_MOST_SESSIONS = 100
_LISTED = 50
"""The number of sessions per page."""
_READING = 10.0
"""The maximum seconds for an editor to return the text of an open file."""


class Opener(Protocol):
    """Opens a session of a folder. Blocks; called in a thread, one at a time."""

    def __call__(
        self, cwd: Path, servers: Mapping[str, McpServer], ui: UI, warn: Callable[[str], None], /
    ) -> Opened: ...


class EditorAgent:
    """Handles the requests of an editor. `sessions` is the folder of session files; `how_to` explains keys."""

    def __init__(self, opener: Opener, sessions: Path, how_to: str) -> None:
        self._opener = opener
        self._folder = sessions
        self._how_to = how_to
        self._opening = asyncio.Lock()
        self._open: dict[str, EditorSession] = {}
        self._capabilities: schema.ClientCapabilities | None = None
        self._client: EditorClient | None = None
        self._line: EditorLine | None = None

    async def serve(self, reading: int, writing: int, closing: float) -> None:
        """Serve one editor until it disconnects; queued messages have `closing` seconds to be written."""
        logging.getLogger().setLevel(logging.CRITICAL)  # the SDK logs errors of its peer, which gets them anyway
        collect_again()
        self._line = line = EditorLine(reading, writing)
        connection = AgentSideConnection(self, line, listening=False, use_unstable_protocol=True)  # type: ignore[arg-type]
        self._client = connection
        try:
            await connection.listen()
        finally:
            for session in self._open.values():
                session.cancel()
            await connection.close()
            await line.finish(closing)

    async def close(self) -> None:
        """End every session and all its processes."""
        found = list(self._open.values())
        self._open.clear()
        await asyncio.gather(*(session.close() for session in found), return_exceptions=True)

    def rescue(self) -> None:
        """Save all sessions and kill their processes, when the event loop can no longer do it."""
        for session in list(self._open.values()):
            session.rescue()

    async def initialize(
        self, protocol_version: int, client_capabilities: schema.ClientCapabilities | None = None, **_: Any
    ) -> schema.InitializeResponse:
        """Return the capabilities of this agent."""
        # The SDK hands on what it cannot read, such as a list: then nothing is known of the editor.
        known = isinstance(client_capabilities, schema.ClientCapabilities)
        self._capabilities = client_capabilities if known else None
        return schema.InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=schema.Implementation(name="marvin", title="Marvin", version=__version__),
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(image=True, audio=False, embedded_context=True),
                mcp_capabilities=schema.McpCapabilities(http=True, sse=False),
                session_capabilities=schema.SessionCapabilities(
                    list=schema.SessionListCapabilities(),
                    close=schema.SessionCloseCapabilities(),
                    resume=schema.SessionResumeCapabilities(),
                ),
            ),
            auth_methods=[],
        )

    async def authenticate(self, method_id: str, **_: Any) -> None:
        """Raise `RequestError`: there is no login, since Marvin uses the API keys of its user."""
        raise RequestError(-32602, f"There is nothing to log in to here. {self._how_to}")

    async def new_session(
        self, cwd: str, mcp_servers: Sequence[GivenServer] | None = None, **_: Any
    ) -> schema.NewSessionResponse:
        """Begin a session."""
        session = await self._opened(cwd, mcp_servers, lambda one: one.begin())
        asyncio.get_running_loop().call_soon(session.announce)  # after the response, which has the ID
        return schema.NewSessionResponse(
            session_id=session.id, modes=session.modes(), config_options=await options(session.engine)
        )

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Sequence[GivenServer] | None = None, **_: Any
    ) -> schema.LoadSessionResponse:
        """Resume an earlier session, and send its messages."""
        session = await self._resumed(cwd, session_id, mcp_servers)
        await session.show_history()
        return schema.LoadSessionResponse(modes=session.modes(), config_options=await options(session.engine))

    async def resume_session(
        self, session_id: str, cwd: str, mcp_servers: Sequence[GivenServer] | None = None, **_: Any
    ) -> schema.ResumeSessionResponse:
        """Resume an earlier session that the editor already shows."""
        session = await self._resumed(cwd, session_id, mcp_servers)
        return schema.ResumeSessionResponse(modes=session.modes(), config_options=await options(session.engine))

    async def _resumed(self, cwd: str, session_id: str, servers: Sequence[GivenServer] | None) -> EditorSession:
        session = await self._opened(cwd, servers, lambda one: one.resume(session_id), earlier=session_id)
        asyncio.get_running_loop().call_soon(session.announce)
        return session

    async def _opened(
        self,
        cwd: str,
        given: Sequence[GivenServer] | None,
        begin: Callable[[EditorSession], Awaitable[None]],
        earlier: str = "",
    ) -> EditorSession:
        """Open one session at a time. The open session `earlier` is closed first: both would write to the same file."""
        assert self._client is not None
        root = folder_of(cwd)
        told: list[str] = []
        servers = servers_given(given, told.append)
        person = person_for(self._client, root, self._capabilities)
        async with self._opening:
            if (ends := self._open.pop(earlier, None)) is not None:
                await ends.close()
                end_exemptions()
            if len(self._open) >= _MOST_SESSIONS:
                raise RequestError.invalid_request({"details": f"{_MOST_SESSIONS} sessions are open. Close some."})
            try:
                opened = await in_thread(lambda: self._opener(root, servers, person, told.append), to_the_end=True)
                session = await self._begun(opened, person, begin)
            except MarvinError as error:
                raise RequestError(-32603, str(error)) from error
            self._open[session.id] = session
        for text in told:
            session.warn(text)
        return session

    async def _begun(
        self, opened: Opened, person: EditorPerson, begin: Callable[[EditorSession], Awaitable[None]]
    ) -> EditorSession:
        assert self._line is not None
        session = EditorSession(opened, person, self._line.post)
        try:
            await begin(session)
        except BaseException:
            await session.close()
            raise
        return session

    def _session(self, session_id: str) -> EditorSession:
        session = self._open.get(session_id)
        if session is None:
            raise RequestError.invalid_params({"details": f"No session {session_id!r:.100} is open. Load it first."})
        return session

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: Any
    ) -> schema.ListSessionsResponse:
        """The sessions on disk, newest first."""
        start = int(cursor) if cursor and cursor.isascii() and cursor.isdigit() else 0

        def found() -> list[schema.SessionInfo]:
            root = str(Path(cwd).resolve()) if cwd else ""
            kept = (entry for _, entry in entries(self._folder, root) if entry is not None and entry.messages)
            page = islice(kept, start, start + _LISTED + 1)
            return [
                schema.SessionInfo(
                    session_id=entry.id,
                    cwd=entry.working_dir,
                    title=entry.title,
                    updated_at=datetime.fromtimestamp(entry.time, UTC).isoformat(),
                )
                for entry in page
            ]

        page = await in_thread(found)
        more = str(start + _LISTED) if len(page) > _LISTED else None
        return schema.ListSessionsResponse(sessions=page[:_LISTED], next_cursor=more)

    async def close_session(self, session_id: str, **_: Any) -> schema.CloseSessionResponse:
        """End a session; it stays on disk."""
        session = self._session(session_id)
        del self._open[session_id]
        await session.close()
        end_exemptions()
        return schema.CloseSessionResponse()

    async def prompt(self, session_id: str, prompt: Sequence[Block], **_: Any) -> schema.PromptResponse:
        """Run a prompt to its end."""
        session = self._session(session_id)
        fs = self._capabilities.fs if self._capabilities is not None else None
        return await session.prompt(prompt, self._reader(session_id) if fs is not None and fs.read_text_file else None)

    def _reader(self, session_id: str) -> Callable[[str], Any]:
        async def read(path: str) -> str | None:
            assert self._client is not None
            try:
                async with asyncio.timeout(_READING):
                    return (await self._client.read_text_file(session_id, path)).content
            except BaseException as error:
                if not is_failure(error) or isinstance(error, asyncio.CancelledError):
                    raise
                return None  # it is not text, or not open in the editor: use the file on disk

        return read

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Cancel the running prompt."""
        with suppress(RequestError):
            self._session(session_id).cancel()

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> schema.SetSessionModeResponse:
        """Switch the permission mode."""
        session = self._session(session_id)
        try:
            await session.switch(mode_id)
        except MarvinError as error:
            raise RequestError(-32602, str(error)) from error
        return schema.SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> schema.SetSessionConfigOptionResponse:
        """Set a mode, a model, or a thinking level."""
        session = self._session(session_id)
        try:
            if config_id == "mode":
                await session.switch(str(value))
            else:
                await choose(session.engine, config_id, str(value))
        except MarvinError as error:
            raise RequestError(-32602, shown(error)) from error
        return schema.SetSessionConfigOptionResponse(config_options=await options(session.engine))


def how_keys_are_set() -> str:
    """A sentence for the user about how to set the API key of a model service."""
    return f"`{command_name()} login NAME` in a terminal sets the key of a model service."
