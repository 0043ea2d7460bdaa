"""Previews a call's changes to files by running its tool on an overlay that is not written."""

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
    """The changes that a call would make. `fails` is why it would fail in the current state."""

    paths: tuple[str, ...] = ()
    diff: str = ""
    fails: str = ""


def can_be_tried(spec: ToolSpec) -> bool:
    """Whether a tool declares that it only writes files, by the paths of its context."""
    return "writable-files" in spec.passes and spec.access <= {"read", "write"}


class _Trial(Record):
    """The shared state of calls that are previewed together: the resulting files, and the packs' session state."""

    paths: PreviewPaths
    states: dict[str, dict[str, Any]]


class _TrialContext(CallContext):
    """The context of a tool in a preview: files that are not written, and no access to anything else."""

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
        """The resulting files."""
        return self._trial_paths

    @property
    def processes(self) -> NoReturn:
        """No programs run in a preview."""
        raise NoPreviewError

    @property
    def agents(self) -> NoReturn:
        """No agents are started in a preview."""
        raise NoPreviewError

    @property
    def http(self) -> httpx.AsyncClient:
        """Nothing is fetched in a preview."""
        raise NoPreviewError

    @property
    def session(self) -> SessionView:
        """A tool's effects on the session cannot be previewed."""
        raise NoPreviewError

    @property
    def state(self) -> dict[str, Any]:
        """The state of this pack in the session: a copy, shared by all calls that are previewed together."""
        if self._spec.source not in self._states:
            self._states[self._spec.source] = deepcopy(super().state)
        return self._states[self._spec.source]

    def reading(self, folder: Path) -> NoReturn:
        """Files in other folders are not part of a preview."""
        raise NoPreviewError

    def writing(self, folder: Path) -> NoReturn:
        """The same for files written in other folders."""
        raise NoPreviewError

    def progress(self, text: str, done: float | None = None, total: float | None = None) -> None:
        """A preview reports no progress."""

    async def ask(self, question: str, choices: Sequence[str]) -> NoReturn:
        """Nobody is asked in a preview."""
        raise NoPreviewError

    async def ask_text(self, question: str, choices: Sequence[str] = ()) -> NoReturn:
        """Nobody is asked in a preview."""
        raise NoPreviewError

    async def resource(self, factory: Callable[[], AbstractAsyncContextManager[Any]]) -> NoReturn:
        """Nothing is entered in a preview."""
        raise NoPreviewError


class Previews:
    """Previews calls in sequence: each sees the changes that the previous ones would make."""

    def __init__(self, parts: SessionParts, session: SessionView) -> None:
        self._parts = parts
        self._session = session
        self._paths = PreviewPaths(parts.workspace.paths)
        self._trial = _Trial(paths=self._paths, states={})

    async def of(self, loaded: LoadedTool, values: Mapping[str, Any], origin: CallOrigin) -> Preview:
        """The changes that a call would make; empty if they cannot be determined.

        Raises:
            ToolError: if the path is refused or unsuitable for the call, so that no question is needed.
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
            return Preview(fails=str(error).partition("\n")[0])  # the rest may contain parts of files
        except Exception:  # a third-party tool: its effects are unknown
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
