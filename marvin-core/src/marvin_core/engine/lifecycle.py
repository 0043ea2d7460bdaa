"""A session's beginning and end on disk: begin, resume, fork, clear, and going from branch to branch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ..api.errors import SessionError
from ..api.events import AppStart, Event, SessionClear, SessionResume, SessionStart, Unsubscribe
from ..api.session import Branch, SessionEntry
from ..version import __version__
from .driver import Driver
from .parts import SessionParts


class Lifecycle:
    """The `SessionsControl` of a session: it changes which file is written, and what the conversation holds."""

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
        self._parts.writer.begin(
            self._parts.clock.now(), prompt, model.provider_name, model.model, self._root, model.thinking
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
        """Have every event from now on passed to the listener; the first one also gets those of `go_on`."""
        unsubscribe = self._parts.bus.subscribe(listener)
        self._start_app()
        return unsubscribe

    def _start_app(self) -> None:
        """Tell, once, that the program is up."""
        if not self._started:
            self._started = True
            self._parts.bus.emit(AppStart(version=__version__))

    def go_on(self, path: Path) -> None:
        """Go on with a session before there is an interface, which is told of it later.

        What the session cost so far counts under the cost ceiling, in runs that were killed as well. Blocks, so no
        loop may run yet.
        """
        with self._parts.bus.keeping():
            self.open(path)
        self._driver.take_up_now()

    def open(self, path: Path, leaf: str = "") -> int:
        """Go on with the session in a file, at the end of a branch; returns how many messages that has."""
        from ..conversation.pairing import heal
        from ..sessions.reader import load
        from .resumption import gone

        self._driver.check_free()
        loaded = load(path, leaf, self._parts.config.limits.session_line)
        messages, healed = heal(loaded.messages)
        self._parts.writer.resume(path, loaded)
        self._driver.opened()
        self._parts.conversation.load(messages)
        self._parts.state.clear()
        self._parts.state.update(loaded.state)
        self._start_app()
        header, config = loaded.header, self._parts.config
        self._parts.model.restore(
            header.provider, header.model, header.thinking, fixed="flag" in (config.provider_from, config.model_from)
        )
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

    def resume(self, session_id: str) -> int:
        """Go on with the session whose id is, or starts with, this one; returns how many messages it has."""
        from ..sessions.store import find

        self._driver.check_free()
        return self.open(find(self._parts.writer.folder, session_id))

    def clear(self) -> None:
        """Begin an empty conversation; it gets an id with its first prompt."""
        self._driver.check_free()
        cleared = self._parts.writer.id
        self._parts.writer.clear()
        self._parts.conversation.load(())
        self._parts.state.clear()
        self._parts.bus.emit(SessionClear(session_id=cleared))

    def fork(self) -> str:
        """Go on in a copy of this session; returns its id."""
        self._driver.check_free()
        forked = self._parts.writer.id
        self._parts.writer.fork(self._parts.clock.now(), self._parts.conversation.messages)
        self._driver.forked(forked)
        self._emit_start()
        return self._parts.writer.id

    def recent(self, limit: int) -> Sequence[SessionEntry]:
        """The newest sessions of the working directory, the newest one first."""
        from itertools import islice

        from ..sessions.search import entries

        found = (entry for _, entry in entries(self._parts.writer.folder, self._root) if entry)
        return list(islice(found, limit))

    def branches(self) -> Sequence[Branch]:
        """The branches of this session, oldest end first."""
        from ..sessions.search import branches

        return branches(*self._position(), self._parts.config.limits.session_line)

    def go_to(self, branch: Branch) -> int:
        """Go on at the end of a branch of this session; returns how many messages it has."""
        self._driver.check_free()
        return self.open(self._position()[0], branch.leaf)

    def _position(self) -> tuple[Path, str]:
        position = self._parts.writer.position
        if position is None:
            raise SessionError("This session is not on disk yet. Type a request first.")
        return position

    def before_retry(self) -> None:
        """Go back to before the last answer, so that the model is asked again what led to it.

        Raises:
            SessionError: where nothing was asked yet.
        """
        self._driver.check_free()
        messages = self._parts.conversation.messages
        if not messages:
            raise SessionError("There is nothing to retry yet. Type a request.")
        if messages[-1].role == "assistant":  # one with calls is followed by their outputs, and goes on from them
            self._parts.writer.step_back()
            self._parts.conversation.load(messages[:-1])
