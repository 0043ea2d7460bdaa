"""The life of a session on disk: begin, resume, fork, clear, switch branches, and save when Marvin is killed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..api.errors import SessionError
from ..api.events import AppStart, Event, SessionClear, SessionResume, SessionStart, Unsubscribe
from ..util.threads import in_thread
from ..version import __version__
from .driver import Driver, shown_prompt
from .parts import SessionParts

if TYPE_CHECKING:
    from ..api.controls import Branch, PromptEntry, SaidEntry, SessionEntry
    from ..api.messages import Message
    from ..sessions.reader import LoadedSession

_PLAY = "Play mode"
"""The title of a session that did not begin with a prompt."""


class Lifecycle:
    """The `SessionsControl` of a session: it switches the session file and the content of the conversation."""

    def __init__(self, parts: SessionParts, driver: Driver) -> None:
        self._parts = parts
        self._driver = driver
        self._started = False

    @property
    def _root(self) -> str:
        return str(self._parts.workspace.root)

    def begin(self, prompt: str) -> None:
        """Give the session its id, unless it has one."""
        if self._parts.writer.id:
            return
        model = self._parts.model
        self._start_app()
        title = _PLAY if self._parts.workspace.playing else prompt
        self._parts.writer.begin(
            self._parts.clock.now(), title, model.provider_name, model.model, self._root, model.thinking
        )
        self._emit_start()

    def _emit_start(self) -> None:
        self._parts.bus.emit(
            SessionStart(
                session_id=self._parts.writer.id,
                provider=self._parts.model.provider_name,
                model=self._parts.model.model,
                working_dir=self._root,
            )
        )

    def subscribe(self, listener: Callable[[Event], None]) -> Unsubscribe:
        """Call the listener with every event from now on; the first one also gets those of `go_on`."""
        unsubscribe = self._parts.bus.subscribe(listener)
        self._start_app()
        return unsubscribe

    def _start_app(self) -> None:
        """Send, once, the event that the program has started."""
        if not self._started:
            self._started = True
            self._parts.bus.emit(AppStart(version=__version__))
            if not self._parts.config.depth and os.path.isdir(f"{self._root}/.marvin/worktrees"):
                self._tell_of_worktrees()

    def _tell_of_worktrees(self) -> None:
        """Report worktrees of agents whose run was killed, or whose result was never reported."""
        from .agents.worktree_records import interrupted

        for known in interrupted(self._parts.workspace.root):
            self._parts.bus.warn(
                f"A run that was interrupted left the worktree of an agent: {known.path} (branch {known.branch}). "
                "Inspect it. The next agent in a worktree removes it if it is empty."
            )

    def go_on(self, path: Path) -> None:
        """Resume a session before there is an interface, which gets the events later.

        The previous cost of the session counts under the cost ceiling, including runs that were killed. Blocks, so
        the event loop must not run yet.
        """
        with self._parts.bus.keeping():
            self._take_up(path, self._load(path))
        self._driver.take_up_now()

    def _load(self, path: Path, leaf: str = "") -> LoadedSession:
        from ..sessions.reader import load

        return load(path, leaf, self._parts.config.limits.session_line)

    async def _open(self, path: Path, leaf: str = "") -> int:
        """Resume the session in a file, at the end of a branch; returns the number of its messages.

        This may take time: the file may be long, and the keyring may ask the user for the key of its model.
        """

        def load() -> LoadedSession:
            loaded = self._load(path, leaf)
            if not self._has_model:
                self._parts.model.know_earlier(loaded.header.provider, loaded.header.model)
            return loaded

        self._driver.check_free()
        loaded = await in_thread(load)
        self._driver.check_free()
        return self._take_up(path, loaded)

    @property
    def _has_model(self) -> bool:
        """Whether the user has set the model, so that the one of the session is ignored."""
        return "flag" in (self._parts.config.provider_from, self._parts.config.model_from)

    def _take_up(self, path: Path, loaded: LoadedSession) -> int:
        from ..conversation.pairing import heal
        from .resumption import gone

        messages, healed = heal(loaded.messages)
        self._take_up_prompts(loaded)
        self._parts.writer.resume(path, loaded.replace(messages=messages, times=_times_of(messages, loaded)))
        self._driver.opened()
        self._parts.conversation.load(messages)
        self._parts.state.clear()
        self._parts.state.update(loaded.state)
        self._start_app()
        header = loaded.header
        self._parts.model.restore(header.provider, header.model, header.thinking, fixed=self._has_model)
        offered = {spec.name for spec in self._parts.toolbox.offered}
        lost = gone(header, messages, offered, self._parts.toolbox.missing, self._root)
        for text in (*loaded.problems, *lost):
            self._parts.bus.warn(text)
        self._parts.bus.emit(
            SessionResume(
                session_id=self._parts.writer.id,
                provider=self._parts.model.provider_name,
                model=self._parts.model.model,
                messages=len(messages),
                healed=healed,
            )
        )
        return len(messages)

    def _take_up_prompts(self, loaded: LoadedSession) -> None:
        """Store the messages that the chat shows again, and the prompts that can be rewound to."""
        progress = self._parts.progress
        progress.prompts.clear()
        if self._parts.setup.asker is None:
            return
        from ..sessions.replay import end_of

        progress.replay = end_of(loaded.messages[loaded.seeded :], loaded.times[loaded.seeded :])
        progress.prompts += [(shown_prompt(one.text), one.time, one.leaf) for one in loaded.prompts]

    async def resume(self, session_id: str) -> int:
        """Resume the session with this ID or ID prefix; returns the number of its messages."""
        from ..sessions.store import find

        self._driver.check_free()
        return await self._open(find(self._parts.writer.folder, session_id))

    def clear(self) -> None:
        """Begin an empty conversation; it gets an ID with its first prompt."""
        self._driver.check_free()
        cleared = self._parts.writer.id
        self._parts.writer.clear()
        self._parts.model.conversation_left()
        self._parts.conversation.load(())
        self._parts.progress.prompts.clear()
        self._parts.progress.replay = ()
        self._parts.state.clear()
        self._parts.bus.emit(SessionClear(session_id=cleared))

    def fork(self) -> str:
        """Continue in a copy of this session; returns the ID of the copy."""
        self._driver.check_free()
        forked = self._parts.writer.id
        self._parts.writer.fork(self._parts.clock.now(), self._parts.conversation.messages)
        self._parts.progress.prompts.clear()
        self._driver.forked(forked)
        self._emit_start()
        return self._parts.writer.id

    def recent(self, limit: int) -> Sequence[SessionEntry]:
        """The most recent sessions of the working directory, newest first."""
        from itertools import islice

        from ..sessions.search import entries

        found = (entry for _, entry in entries(self._parts.writer.folder, self._root) if entry)
        return list(islice(found, limit))

    def branches(self) -> Sequence[Branch]:
        """The branches of this session, the one with the oldest end first."""
        from ..sessions.search import branches

        return branches(*self._position(), self._parts.config.limits.session_line)

    async def go_to(self, branch: Branch) -> int:
        """Switch to the end of a branch of this session; returns the number of its messages."""
        return await self._open(self._position()[0], branch.leaf)

    def prompts(self) -> Sequence[PromptEntry]:
        """The prompts that can be rewound to, oldest first: those since the last compaction."""
        from ..api.controls import PromptEntry

        return [PromptEntry(text=text, time=time, leaf=leaf) for text, time, leaf in self._parts.progress.prompts]

    async def rewind(self, prompt: PromptEntry) -> int:
        """Rewind to before a prompt, in a new branch; returns the number of messages that are left."""
        self._driver.check_free()
        earlier = [one for one in self._parts.progress.prompts if one[1] < prompt.time]
        count = await self._open(self._position()[0], prompt.leaf)
        self._parts.progress.prompts[:] = earlier
        return count

    def replay(self) -> Sequence[SaidEntry]:
        """The last messages of a resumed session, oldest first."""
        return self._parts.progress.replay

    def search(self, text: str, limit: int) -> Sequence[SessionEntry]:
        """The sessions of all folders with a text in their title or a message, newest first."""
        from itertools import islice

        from ..sessions.search import search

        hits = search(self._parts.writer.folder, text, largest=self._parts.config.limits.session_line)
        return [hit.entry for hit in islice(hits, limit)]

    def rename(self, title: str, session_id: str = "") -> str:
        """Rename a session, this one by default; returns the title as it is stored."""
        from ..sessions.records import title_of

        kept, writer = title_of(self._parts.kept.text(title)), self._parts.writer
        if session_id not in ("", writer.id):
            from ..sessions.renaming import rename
            from ..sessions.store import find

            rename(find(writer.folder, session_id), kept, self._parts.config)
        elif writer.position is None:
            raise SessionError("This session is not on disk yet, so it has no title. Type a request first.")
        else:
            writer.changed(title=kept)
        return kept

    async def export(self, kind: Literal["md", "html", "json"]) -> str:
        """The whole current branch as an HTML page or as JSON, with known secrets redacted."""
        path, leaf = self._position()
        limit = self._parts.config.limits.session_line

        def text() -> str:
            from ..sessions.export_kinds import exported
            from ..sessions.reader import load_full

            return self._parts.redactor.text(exported(load_full(path, limit, leaf), kind))

        return await in_thread(text)

    def _position(self) -> tuple[Path, str]:
        position = self._parts.writer.position
        if position is None:
            raise SessionError("This session is not on disk yet. Type a request first.")
        return position

    def before_retry(self) -> None:
        """Rewind to before the last answer, so that it is requested again.

        Raises:
            SessionError: there is no prompt yet.
        """
        self._driver.check_free()
        messages = self._parts.conversation.messages
        if not messages:
            raise SessionError("There is nothing to retry yet. Type a request.")
        if messages[-1].role == "assistant":  # one with calls is followed by their outputs, and goes on from them
            self._parts.writer.step_back()
            self._parts.conversation.load(messages[:-1])


def _times_of(messages: Sequence[Message], loaded: LoadedSession) -> tuple[float, ...]:
    """The times of these messages: those that were loaded, with the ones added to complete them."""
    known = {id(message): time for message, time in zip(loaded.messages, loaded.times, strict=False)}
    times: list[float] = []
    for message in messages:
        times.append(known.get(id(message), times[-1] if times else 0.0))
    return tuple(times)


def rescue(parts: SessionParts) -> None:
    """Save what there is and kill every child process, for no longer than `timeouts.release`."""
    saving = threading.Thread(target=_save, args=(parts,), daemon=True)
    saving.start()
    saving.join(parts.config.timeouts.release)
    parts.processes.kill()


def _save(parts: SessionParts) -> None:
    with suppress(Exception):  # what can be saved is, and the program ends in any case
        answer = parts.progress.answer
        if answer is not None and not answer.is_empty:
            parts.writer.save(answer.message("cancelled"))
        spent = parts.usage.prompt_ended()
        if spent:
            parts.writer.spent(spent)
        parts.writer.rescue()
