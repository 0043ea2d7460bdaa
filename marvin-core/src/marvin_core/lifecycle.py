"""A session's beginning and end on disk: begin, resume, fork, clear, and going from branch to branch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import __version__, transcript
from .errors import MarvinError, SessionError
from .events import AppStart, Emit, Event, SessionClear, SessionResume, SessionStart
from .records import Record
from .ui.base import Branch, SessionEntry

if TYPE_CHECKING:
    from .conversation import Conversation
    from .recorder import Recorder
    from .tools import Clock


class Place(Record):
    """What a session file says of where a session runs."""

    provider: str
    model: str
    working_dir: Callable[[], Path]


class Lifecycle:
    """The `Archive` of a session: it changes which file is written, and what the conversation holds."""

    def __init__(
        self,
        recorder: Recorder,
        conversation: Conversation,
        state: dict[str, dict[str, Any]],
        place: Place,
        clock: Clock,
        emit: Emit,
        check_free: Callable[[], None],
    ) -> None:
        self._recorder = recorder
        self._conversation = conversation
        self._state = state
        self._place = place
        self._clock = clock
        self._emit = emit
        self._check_free = check_free
        self._started = False

    def begin(self, prompt: str) -> None:
        """Give the session its id, unless it has one."""
        if self._recorder.id:
            return
        place = self._place
        self._start_app()
        self._recorder.begin(self._clock.now(), prompt, place.provider, place.model, str(place.working_dir()))
        self._emit_start()

    def _emit_start(self) -> None:
        place = self._place
        self._emit(
            SessionStart(
                session_id=self._recorder.id,
                provider=place.provider,
                model=place.model,
                working_dir=str(place.working_dir()),
            )
        )

    def _start_app(self) -> None:
        if not self._started:
            self._started = True
            self._emit(AppStart(version=__version__))

    def open(self, path: Path, warn: Callable[[str], None], leaf: str = "") -> int:
        """Go on with the session in a file, at the end of a branch; returns how many messages that has."""
        self._check_free()
        loaded = transcript.load(path, leaf)
        messages, healed = transcript.heal(loaded.messages)
        self._recorder.resume(path, loaded)
        self._conversation.load(messages)
        self._state.clear()
        self._state.update(loaded.state)
        self._start_app()
        for problem in loaded.problems:
            warn(problem)
        self._emit(
            SessionResume(
                session_id=self._recorder.id,
                provider=self._place.provider,
                model=self._place.model,
                messages=len(messages),
                healed=healed,
            )
        )
        return len(messages)
