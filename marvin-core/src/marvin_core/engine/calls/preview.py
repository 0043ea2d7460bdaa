"""What a call would change in files, found out by running its tool on files that are not written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ...api.errors import FileChanged, PathRefused, ToolError
from ...api.events import CallOrigin
from ...api.record import Record
from ...api.tool_context import Paths, SessionView
from ...api.tools import ToolSpec
from ...guard.files.preview import NoPreviewError, PreviewPaths
from ...kit.files.diffs import unified_diff
from ...tools.toolbox import LoadedTool
from ...util.threads import in_thread
from ..parts import SessionParts
from .context import CallContext, ContextOfCall
from .timer import CallTimer

if TYPE_CHECKING:
    import httpx


class Preview(Record):
    """What a call would change. `fails` is why it would fail as things stand."""

    paths: tuple[str, ...] = ()
    diff: str = ""
    fails: str = ""


def can_be_tried(spec: ToolSpec) -> bool:
    """Whether a tool declares that it writes nothing but files, through the paths of its context."""
    return "writable-files" in spec.passes and spec.access <= {"read", "write"}


class _Trial(Record):
    """What calls that are tried together share: the files as they would be, and what packs keep in the session."""

    paths: PreviewPaths
    states: dict[str, dict[str, Any]]


class _TrialContext(CallContext):
    """What a tool gets that is only tried: files that are not written, and nothing that reaches further."""

    def __init__(
        self,
        parts: SessionParts,
        session: SessionView,
        spec: ToolSpec,
        origin: CallOrigin,
        trial: _Trial,
    ) -> None:
        timer = CallTimer(parts.config.timeouts.preview)
        super().__init__(parts, session, spec, ContextOfCall(id="", origin=origin, timer=timer))
        self._trial_paths = trial.paths
        self._states = trial.states

    @property
    def paths(self) -> Paths:
        """The files as they would be."""
        return self._trial_paths

    @property
    def processes(self) -> NoReturn:
        """No programs run for a trial."""
        raise NoPreviewError

    @property
    def agents(self) -> NoReturn:
        """No agents are started for a trial."""
        raise NoPreviewError

    @property
    def http(self) -> httpx.AsyncClient:
        """Nothing is fetched for a trial."""
        raise NoPreviewError

    @property
    def session(self) -> SessionView:
        """What a tool does to the session cannot be tried."""
        raise NoPreviewError

    @property
    def state(self) -> dict[str, Any]:
        """What this pack keeps in the session: a copy, for all calls that are tried together."""
        if self._spec.source not in self._states:
            self._states[self._spec.source] = deepcopy(super().state)
        return self._states[self._spec.source]

    def reading(self, folder: Path) -> NoReturn:
        """What lies elsewhere is no part of a trial."""
        raise NoPreviewError

    def writing(self, folder: Path) -> NoReturn:
        """The same of what would be written elsewhere."""
        raise NoPreviewError

    def progress(self, text: str, done: float | None = None, total: float | None = None) -> None:
        """A trial tells nothing."""

    async def ask(self, question: str, choices: Sequence[str]) -> NoReturn:
        """Nobody is asked for a trial."""
        raise NoPreviewError

    async def ask_text(self, question: str, choices: Sequence[str] = ()) -> NoReturn:
        """Nobody is asked for a trial."""
        raise NoPreviewError

    async def resource(self, factory: Callable[[], AbstractAsyncContextManager[Any]]) -> NoReturn:
        """Nothing is entered for a trial."""
        raise NoPreviewError


class Previews:
    """Tries calls one after the other: each sees what those before it would have written."""

    def __init__(self, parts: SessionParts, session: SessionView) -> None:
        self._parts = parts
        self._session = session
        self._paths = PreviewPaths(parts.workspace.paths)
        self._trial = _Trial(paths=self._paths, states={})

    async def of(self, loaded: LoadedTool, values: Mapping[str, Any], origin: CallOrigin) -> Preview:
        """What a call would change; empty where that cannot be known.

        Raises:
            ToolError: where the path is refused, or is not what the call needs, so that nobody need be asked.
        """
        if not can_be_tried(loaded.spec):
            return Preview()
        context = _TrialContext(self._parts, self._session, loaded.spec, origin, self._trial)
        try:
            with self._paths.trying():
                async with asyncio.timeout(self._parts.config.timeouts.preview):
                    await loaded.call(deepcopy(dict(values)), context)
        except ToolError as error:
            if isinstance(error, (PathRefused, FileChanged)) or isinstance(error.__cause__, OSError):
                raise
            return Preview(fails=str(error).partition("\n")[0])  # the rest may hold parts of files
        except Exception:  # a stranger's tool: what it would do is not known
            return Preview()
        changes = dict(self._paths.changes)
        return Preview(paths=tuple(changes), diff=await in_thread(lambda: _difference(changes)))


def _difference(changes: Mapping[str, tuple[bytes, bytes]]) -> str:
    return "".join(
        f"{path} is not text: {len(before):,} bytes become {len(after):,}.\n"
        if b"\0" in before + after
        else unified_diff(path, before.decode("utf-8", "replace"), after.decode("utf-8", "replace"))
        for path, (before, after) in changes.items()
    )
