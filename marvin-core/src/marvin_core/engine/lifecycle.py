"""A session's beginning and end on disk: begin, resume, fork, clear, and going from branch to branch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..api.errors import SessionError
from ..api.events import AppStart, Emit, SessionClear, SessionResume, SessionStart
from ..api.session import Branch, SessionEntry
from ..conversation.pairing import heal
from ..sessions.reader import load
from ..sessions.search import branches, entries
from ..sessions.store import find
from ..version import __version__
from .resumption import gone

if TYPE_CHECKING:
    from ..api.tool_context import Clock
    from ..conversation.conversation import Conversation
    from ..sessions.writer import Recorder
    from ..tools.toolbox import Toolbox
    from .active_model import ActiveModel


class Lifecycle:
    """The `Archive` of a session: it changes which file is written, and what the conversation holds.

    With `fixed` the user said which model is to answer, whatever a resumed session was with.
    """

    def __init__(
        self,
        recorder: Recorder,
        conversation: Conversation,
        state: dict[str, dict[str, Any]],
        model: ActiveModel,
        toolbox: Toolbox,
        root: Callable[[], Path],
        clock: Clock,
        emit: Emit,
        warn: Callable[[str], None],
        check_free: Callable[[], None],
        *,
        fixed: bool,
    ) -> None:
        self._recorder = recorder
        self._conversation = conversation
        self._state = state
        self._model = model
        self._toolbox = toolbox
        self._root = root
        self._clock = clock
        self._emit = emit
        self._warn = warn
        self._check_free = check_free
        self._fixed = fixed
        self._started = False

    def begin(self, prompt: str) -> None:
        """Give the session its id, unless it has one."""
        if self._recorder.id:
            return
        model = self._model
        self._start_app()
        self._recorder.begin(
            self._clock.now(), prompt, model.provider_name, model.model, str(self._root()), model.thinking
        )
        self._emit_start()

    def _emit_start(self) -> None:
        self._emit(
            SessionStart(
                session_id=self._recorder.id,
                provider=self._model.provider_name,
                model=self._model.model,
                working_dir=str(self._root()),
            )
        )

    def _start_app(self) -> None:
        if not self._started:
            self._started = True
            self._emit(AppStart(version=__version__))

    def open(self, path: Path, leaf: str = "") -> int:
        """Go on with the session in a file, at the end of a branch; returns how many messages that has."""
        self._check_free()
        loaded = load(path, leaf)
        messages, healed = heal(loaded.messages)
        self._recorder.resume(path, loaded)
        self._conversation.load(messages)
        self._state.clear()
        self._state.update(loaded.state)
        self._start_app()
        header = loaded.header
        self._model.restore(header.provider, header.model, header.thinking, fixed=self._fixed)
        offered = {spec.name for spec in self._toolbox.offered}
        lost = gone(header, messages, offered, self._toolbox.missing, str(self._root()))
        for text in (*loaded.problems, *lost):
            self._warn(text)
        self._emit(
            SessionResume(
                session_id=self._recorder.id,
                provider=self._model.provider_name,
                model=self._model.model,
                messages=len(messages),
                healed=healed,
            )
        )
        return len(messages)

    def resume(self, session_id: str) -> int:
        """Go on with the session whose id is, or starts with, this one; returns how many messages it has."""
        self._check_free()
        return self.open(find(self._recorder.folder, session_id))

    def clear(self) -> None:
        """Begin an empty conversation; it gets an id with its first prompt."""
        self._check_free()
        cleared = self._recorder.id
        self._recorder.clear()
        self._conversation.load(())
        self._state.clear()
        self._emit(SessionClear(session_id=cleared))

    def fork(self) -> str:
        """Go on in a copy of this session; returns its id."""
        self._check_free()
        self._recorder.fork(self._clock.now(), self._conversation.messages)
        self._emit_start()
        return self._recorder.id

    def recent(self, limit: int) -> Sequence[SessionEntry]:
        """The newest sessions of the working directory, the newest one first."""
        found = (entry for _, entry in entries(self._recorder.folder, str(self._root())) if entry)
        return list(islice(found, limit))

    def branches(self) -> Sequence[Branch]:
        """The branches of this session, oldest end first."""
        return branches(*self._position())

    def go_to(self, branch: Branch) -> int:
        """Go on at the end of a branch of this session; returns how many messages it has."""
        self._check_free()
        return self.open(self._position()[0], branch.leaf)

    def _position(self) -> tuple[Path, str]:
        position = self._recorder.position
        if position is None:
            raise SessionError("This session is not on disk yet. Type a request first.")
        return position

    def before_retry(self) -> None:
        """Go back to before the last answer, so that the model is asked again what led to it.

        Raises:
            SessionError: where nothing was asked yet.
        """
        self._check_free()
        messages = self._conversation.messages
        if not messages:
            raise SessionError("There is nothing to retry yet. Type a request.")
        if messages[-1].role == "assistant":  # one with calls is followed by their outputs, and goes on from them
            self._recorder.step_back()
            self._conversation.load(messages[:-1])
