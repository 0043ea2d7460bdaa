"""An editor that speaks the Agent Client Protocol: the client of the published library, and a person behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from acp import PROTOCOL_VERSION, schema, spawn_agent_process
from acp.client.connection import ClientSideConnection

from tests.e2e.support_e2e import LIMIT, PROGRAM, Marvin

LINE = 64 * 1024 * 1024


class Terminal:
    """A terminal that an editor shows: what stands in it, and how its program ended."""

    def __init__(self, cwd: str) -> None:
        self.cwd = cwd
        self.text = ""
        self.exits: list[tuple[int | None, str | None]] = []


class Editor:
    """Takes what it is told, and picks the kinds of options that it was given, the last one again and again."""

    def __init__(self, *picks: str, files: dict[str, str] | None = None, terminals: bool = False) -> None:
        self.picks = list(picks) or ["allow_once"]
        self.files = files or {}
        self.shows_terminals = terminals
        self.updates: list[tuple[str, Any]] = []
        self.asked: list[schema.ToolCallUpdate] = []
        self.options: list[list[schema.PermissionOption]] = []
        self._came = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        """Take what a session tells."""
        self.updates.append((session_id, update))
        self._came.set()

    async def request_permission(
        self, session_id: str, tool_call: schema.ToolCallUpdate, options: list[schema.PermissionOption], **_: Any
    ) -> schema.RequestPermissionResponse:
        """Pick the option of the kind that is next."""
        self.asked.append(tool_call)
        self.options.append(options)
        wanted = self.picks.pop(0) if len(self.picks) > 1 else self.picks[0]
        if wanted == "nothing":
            self._came.set()
            await asyncio.Event().wait()
        found = [one for one in options if one.kind == wanted]
        if not found:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        picked = schema.AllowedOutcome(outcome="selected", option_id=found[-1].option_id)
        return schema.RequestPermissionResponse(outcome=picked)

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **_: Any
    ) -> schema.ReadTextFileResponse:
        """The text of a file that is open here."""
        return schema.ReadTextFileResponse(content=self.files[path])

    def on_connect(self, conn: Any) -> None:
        """Nothing to do."""

    def of(self, kind: str, session_id: str = "") -> list[Any]:
        """The updates of a kind, of one session where that is named."""
        return [update for one, update in self.updates if update.session_update == kind and session_id in ("", one)]

    def said(self, session_id: str = "") -> str:
        """The text of the answers."""
        return "".join(one.content.text for one in self.of("agent_message_chunk", session_id))

    def terminals(self) -> dict[str, Terminal]:
        """The terminals that it shows, as Zed reads them: opened by a call, filled and closed by its updates."""
        shown: dict[str, Terminal] = {}
        for _, update in self.updates:
            meta = getattr(update, "field_meta", None) or {}
            if update.session_update == "tool_call" and (opened := meta.get("terminal_info")):
                assert opened["terminal_id"] not in shown
                shown[opened["terminal_id"]] = Terminal(opened["cwd"])
            elif update.session_update == "tool_call_update":
                if more := meta.get("terminal_output"):
                    shown[more["terminal_id"]].text += more["data"]
                if left := meta.get("terminal_exit"):
                    shown[left["terminal_id"]].exits.append((left["exit_code"], left["signal"]))
        return shown

    async def until(self, reached: Callable[[], object]) -> None:
        """Wait for something that is told."""
        async with asyncio.timeout(LIMIT):
            while not reached():
                self._came.clear()
                await self._came.wait()


class Talk:
    """A Marvin that an editor started."""

    def __init__(self, agent: ClientSideConnection, process: asyncio.subprocess.Process, editor: Editor) -> None:
        self.agent = agent
        self.process = process
        self.editor = editor

    async def session(self, folder: Path, servers: Sequence[Any] = ()) -> str:
        """A new session in a folder."""
        return (await self.agent.new_session(cwd=str(folder), mcp_servers=list(servers))).session_id

    async def ask(self, session_id: str, *blocks: Any) -> str:
        """Send a prompt; returns why it ended."""
        prompt = [text(one) if isinstance(one, str) else one for one in blocks]
        async with asyncio.timeout(LIMIT):
            return (await self.agent.prompt(session_id=session_id, prompt=prompt)).stop_reason


def text(words: str) -> schema.TextContentBlock:
    """A text as a block."""
    return schema.TextContentBlock(type="text", text=words)


@asynccontextmanager
async def talking(marvin: Marvin, editor: Editor) -> AsyncIterator[Talk]:
    """Have an editor start Marvin, and shake hands."""
    fs = schema.FileSystemCapabilities(read_text_file=bool(editor.files), write_text_file=False)
    meta = {"terminal_output": True} if editor.shows_terminals else None
    able = schema.ClientCapabilities(fs=fs, terminal=False, field_meta=meta)
    async with spawn_agent_process(
        editor,  # type: ignore[arg-type]  # it has what Marvin asks for
        *PROGRAM,
        "acp",
        env=marvin.env,
        cwd=marvin.project,
        transport_kwargs={"limit": LINE, "shutdown_timeout": LIMIT, "stderr": None},
    ) as (agent, process):
        await agent.initialize(protocol_version=PROTOCOL_VERSION, client_capabilities=able)
        yield Talk(agent, process, editor)
    assert process.returncode == 0, process.returncode
