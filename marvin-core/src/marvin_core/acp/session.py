"""One session in an editor: its prompts, its updates, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from acp import schema
from acp.exceptions import RequestError
from acp.utils import serialize_params

from ..api.errors import NotActed, OutputLimit, Refused
from ..api.events import AgentEnd, Event, ModelCycle, Notice, UsageReport
from ..api.record import Record
from ..api.session import Command, TurnResult
from ..api.tools import ToolSpec
from ..engine.session import Session
from ..guard.trust import TrustStore
from ..sessions import store
from ..sessions.reader import load_full
from ..ui.typed_lines import Display, LineInterpreter
from ..util.failures import is_failure, shown
from ..util.text import cut, one_line
from ..util.threads import in_thread
from .choices import modes, options
from .history import history
from .person import EditorPerson
from .prompts import Block, EditorPrompt, ReadFile, read_prompt
from .updates import EventUpdates, Update, note, text_chunk

NEW = "New session"
"""The title of a session before its first prompt."""
_LEFT_OUT = frozenset("clear copy exit fork login preferences raw resume sessions theme".split())
"""Commands that editors provide themselves, or that need a terminal."""
_TITLE = 80
_STOPS: Mapping[str, schema.StopReason] = {"cancelled": "cancelled", "rounds": "max_turn_requests"}


class Opened(Record):
    """An open session. `saved` adds its usage to the lifetime totals; it blocks."""

    session: Session
    saved: Callable[[], None]


class Post(Protocol):
    """Queues a message to the editor; returns at once."""

    def __call__(self, message: Mapping[str, object], /) -> None: ...


class EditorSession:
    """A session, its user, and the updates for the editor."""

    def __init__(self, opened: Opened, person: EditorPerson, post: Post) -> None:
        self.engine = opened.session
        self._saved = opened.saved
        self._person = person
        self._post = post
        self._running: asyncio.Task[TurnResult | None] | None = None
        self._ended = ""
        self._cost: float | None = None
        self._held: list[Update] = []
        self._titled = self._asked = False
        self._shown_mode = ""
        self._model_changed = False
        self._updates = EventUpdates(lambda: self.engine.working_dir, self._spec, terminals=person.terminals)
        person.updates, person.tell = self._updates, self.tell
        self._lines = LineInterpreter(
            self.engine,
            Display(text=self._say, output=self._say, error=self._say, suggestion=self._say, confirm=person.ask),
        )
        self.engine.subscribe(self._heed)

    @property
    def id(self) -> str:
        """The ID of the session, also the name of its file."""
        return self._person.session_id

    def _spec(self, name: str) -> ToolSpec | None:
        return next((spec for spec in self.engine.tools if spec.name == name), None)

    async def begin(self) -> None:
        """Begin a new session."""
        self.engine.sessions.begin(NEW)
        await self._ready()

    async def resume(self, session_id: str) -> None:
        """Resume an earlier session. Raises `RequestError` if there is none with exactly this ID."""
        folder = self.engine.parts.writer.folder
        if all(path.stem != session_id for path in await in_thread(lambda: store.sessions(folder))):
            raise RequestError.resource_not_found(session_id)
        await self.engine.sessions.resume(session_id)
        self._titled = True
        await self._ready()

    async def _ready(self) -> None:
        self._person.session_id = self.engine.id
        self.engine.switch_mode("coding")
        await self.engine.permissions.settle()
        self._shown_mode = self.engine.permissions.mode

    async def show_history(self) -> None:
        """Send the earlier messages."""
        position = self.engine.parts.writer.position
        if position is None:
            return
        path, leaf = position
        largest = self.engine.parts.config.limits.session_line
        full = await in_thread(lambda: load_full(path, largest, leaf))
        for update in history(full.messages, self._spec, self._updates.calls):
            self.tell(update)

    def announce(self) -> None:
        """Send the list of commands."""
        found = [_command(name, command) for name, command in self.engine.commands.items() if name not in _LEFT_OUT]
        self.tell(schema.AvailableCommandsUpdate(session_update="available_commands_update", available_commands=found))

    def tell(self, update: Update) -> None:
        """Send the editor an update of this session."""
        notification = schema.SessionNotification(session_id=self.id, update=update)
        self._post({"jsonrpc": "2.0", "method": "session/update", "params": serialize_params(notification)})

    def warn(self, text: str) -> None:
        """Queue a notice until a prompt runs: an editor cannot show it earlier."""
        self._heed(Notice(level="warning", text=text))

    def _say(self, text: str) -> None:
        self.tell(text_chunk(f"{text}\n"))

    def _heed(self, event: Event) -> None:
        if isinstance(event, AgentEnd):
            self._ended = event.stop_reason
        elif isinstance(event, ModelCycle):
            self._model_changed = True
            event = Notice(level="info", text=event.reason)
        if isinstance(event, UsageReport):
            self._tell_usage(event)
        elif isinstance(event, Notice) and self._running is None:
            self._held.append(note(event))
        else:
            for update in self._updates.of(event):
                self.tell(update)

    def _tell_usage(self, event: UsageReport) -> None:
        if event.cost is not None:
            self._cost = (self._cost or 0.0) + event.cost
        standing = self.engine.standing()
        cost = schema.Cost(amount=round(self._cost, 6), currency="USD") if self._cost is not None else None
        used, size = max(0, standing.tokens), max(0, standing.window)
        self.tell(schema.UsageUpdate(session_update="usage_update", used=used, size=size, cost=cost))

    async def prompt(self, blocks: Sequence[Block], read: ReadFile | None) -> schema.PromptResponse:
        """Run a prompt to its end.

        Raises:
            RequestError: a prompt is already running, or this one is empty.
        """
        if self._running is not None:
            raise RequestError.invalid_request({"details": "A prompt of this session is still running."})
        if not blocks:
            raise RequestError.invalid_params({"details": "The prompt is empty."})
        self._ended = ""
        self._running = running = asyncio.ensure_future(self._run(blocks, read))
        try:
            await asyncio.wait([running])
            if running.cancelled():
                return schema.PromptResponse(stop_reason="cancelled")
            result = running.result()
        finally:
            running.cancel()
            self._running = None
        await self._tell_changes()
        return schema.PromptResponse(stop_reason=self._stop(result))

    def _stop(self, result: TurnResult | None) -> schema.StopReason:
        error = result.error if result is not None else None
        if isinstance(error, Refused):
            return "refusal"
        if isinstance(error, OutputLimit):
            return "max_tokens"
        return _STOPS.get(self._ended, "end_turn")

    async def _run(self, blocks: Sequence[Block], read: ReadFile | None) -> TurnResult | None:
        try:
            for update in self._held:
                self.tell(update)
            self._held.clear()
            if not self._asked:
                self._asked = True
                await self._ask_about_project()
            prompt = await read_prompt(blocks, self.engine, read)
            for text in prompt.notes:
                self.tell(text_chunk(f"> {text}\n\n"))
            if prompt.line.startswith("/") and not prompt.attached.images:
                await self._command(prompt)
                return None
            self._title(prompt.line)
            return await self._submit(prompt)
        except BaseException as error:
            if not is_failure(error):
                raise
            self._say(f"Error: {shown(error)}")
            return None

    async def _command(self, prompt: EditorPrompt) -> None:
        name = prompt.line[1:].partition(" ")[0].strip()
        if name in _LEFT_OUT and name in self.engine.commands:
            self._say(f"/{name} works in a chat on a terminal only; your editor has its own way for most of these.")
            return
        await self._lines.run(prompt.text)

    async def _submit(self, prompt: EditorPrompt) -> TurnResult:
        result = await self.engine.submit(prompt.text, prompt.attached)
        if isinstance(result.error, NotActed):
            self._say("\n".join(filter(None, [str(result.error), result.error.line])))
        elif result.error is not None:
            self._say(f"\n\nError: {shown(result.error)}")
        return result

    async def _ask_about_project(self) -> None:
        """Ask once whether the extensions of the folder may be loaded, as a chat does at its start."""
        permissions = self.engine.permissions
        found = await in_thread(permissions.project)
        if found.trusted or found.asked or not found.brings or not found.digest:
            return
        if (await permissions.trust_project()).trusted:
            self._say("What this folder brings is loaded from the next session on.")
        else:
            config = self.engine.parts.config
            await in_thread(lambda: TrustStore(config).decline(found))

    def _title(self, line: str) -> None:
        title = cut(one_line(line, _TITLE), _TITLE)
        if self._titled or not title:
            return
        self._titled = True
        kept = self.engine.sessions.rename(title)
        self.tell(schema.SessionInfoUpdate(session_update="session_info_update", title=kept))

    async def _tell_changes(self) -> None:
        """Send the options that the prompt has changed, for instance by a command."""
        mode = self.engine.permissions.mode
        if mode != self._shown_mode:
            self._shown_mode = mode
            self.tell(schema.CurrentModeUpdate(session_update="current_mode_update", current_mode_id=mode))
            self._model_changed = True
        if self._model_changed:
            self._model_changed = False
            await self._tell_options()

    async def _tell_options(self) -> None:
        found = await options(self.engine)
        self.tell(schema.ConfigOptionUpdate(session_update="config_option_update", config_options=found))

    async def switch(self, mode: str) -> None:
        """Switch the permission mode. Raises `UsageError` for an unknown one."""
        self.engine.permissions.switch(mode)
        await self._tell_changes()

    def modes(self) -> schema.SessionModeState:
        """The permission modes, with the current one."""
        return modes(self.engine)

    def cancel(self) -> None:
        """Cancel the running prompt, if there is one."""
        if self._running is not None:
            self._running.cancel()

    async def close(self) -> None:
        """End the session and all its processes."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        await self.engine.close()
        await in_thread(self._saved)

    def rescue(self) -> None:
        """Save the session and kill its processes, when the event loop can no longer do it."""
        self.engine.rescue()


def _command(name: str, command: Command) -> schema.AvailableCommand:
    takes = None
    if command.takes:
        takes = schema.AvailableCommandInput(schema.UnstructuredCommandInput(hint=command.takes))
    return schema.AvailableCommand(name=name, description=command.help, input=takes)


def folder_of(cwd: str) -> Path:
    """The working directory from an editor. Raises `RequestError` if it is not a folder."""
    path = Path(cwd)
    if "\0" in cwd or not path.is_absolute() or not path.is_dir():
        raise RequestError.invalid_params({"details": f"cwd is not the absolute path of a folder: {cut(cwd, 200)!r}"})
    return path
