"""The service of sub-agents. Each one is a separate Marvin with the limits of this session, and ends with it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from ...api.agents import AgentEnding, AgentProgress, AgentResult, AgentTask, ApartTask
from ...api.errors import MarvinError, ToolError
from ...api.models import AgentModel
from ...api.processes import Job, ProcessResult
from ...config.limits import MAX_DEPTH
from ...config.tiers import ALIASES
from ...guard.files.no_links import own_folder
from ...guard.processes.agents import AgentLife
from ...util.threads import in_thread
from .command_line import AgentPlace, argv_of, environment_of
from .definitions import AgentDefinition, as_defined, find_definitions, is_defined
from .host import AgentHost
from .project_context import prompt_of
from .slots import VARIABLE as SLOTS
from .slots import AgentSlots
from .stream import AgentStream, said_on_stderr, used_by
from .workplaces import WorkPlace, WorkPlaces
from .writers import Writers

_PREFIX, _DAY = "agent-", 86_400
_KEPT = 100_000
"""The number of bytes of each stream that are kept; events are read as they arrive."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_ENDINGS: dict[int, AgentEnding] = {0: "answered", 3: "budget", 130: "cancelled"}


class AgentService:
    """The `Agents` of one session."""

    def __init__(self, host: AgentHost) -> None:
        self._host = host
        self._workplaces = WorkPlaces(host.config, host.processes, host.environment.get("TICKETS_DIR", ""))
        self._writers = Writers()
        self._slots = AgentSlots(host.config)
        self.working = 0
        """The number of running agents."""

    async def run(self, task: AgentTask, progress: AgentProgress | None = None) -> AgentResult:
        """Run an agent to its end; see `Agents.run`."""
        task = await self._defined(self._checked(task))
        model = await self._model(task)
        folder = await in_thread(lambda: self._folder(task))
        async with AsyncExitStack() as turn:
            if not task.read_only and not task.isolation:
                await turn.enter_async_context(self._writers.turn(_files(task, folder)))
            await turn.enter_async_context(self._slots.one())
            return await self._worked(task, model, folder, progress)

    async def _worked(
        self, task: AgentTask, model: AgentModel, folder: Path, progress: AgentProgress | None
    ) -> AgentResult:
        work = await self._workplaces.open(task, folder)
        if progress is not None and work.tree is not None:
            progress(f"on the branch {work.tree.known.branch}, in {work.tree.known.path}")
        result = None
        try:
            place = await in_thread(lambda: self._prepared(task, work))
            self.working += 1
            try:
                result = await self._ran(task, model, place, progress)
            finally:
                self.working -= 1
        finally:
            # The results of the agent are kept even after a cancellation.
            told = await asyncio.shield(self._workplaces.close(work, task, result))
        return result.replace(worktree=told)

    async def start_apart(self, task: ApartTask) -> Job:
        """Start a Marvin that outlives this one; see `Agents.start_apart`."""
        from .apart import start_apart

        return await start_apart(self._host, task)

    def _checked(self, task: AgentTask) -> AgentTask:
        """The task with the limits of its kind and of this session. Raises `ToolError` if it is not possible."""
        config = self._host.config
        if config.depth >= MAX_DEPTH:
            raise ToolError(
                f"No agent was started: agents may be nested {MAX_DEPTH} levels deep, and this one is at level "
                f"{config.depth}. Do the work yourself."
            )
        if self._host.workspace.playing:
            raise ToolError("No agent was started: agents are not available in play mode. Do the work yourself.")
        if not task.prompt.strip():
            raise ToolError("The prompt is empty. Say what the agent should do, and how to tell that it is done.")
        return task.replace(read_only=task.read_only or task.kind == "research" or config.read_only)

    async def _defined(self, task: AgentTask) -> AgentTask:
        """The task with the definition of its agent from a file. Raises `ToolError` for an unknown agent."""
        if not is_defined(task):
            return task
        task = as_defined(task, await self._definitions())
        return task.replace(isolation="") if task.read_only else task

    async def _definitions(self) -> Sequence[AgentDefinition]:
        host = self._host
        return await in_thread(lambda: find_definitions(host.config, host.workspace.root, host.packs))

    async def _model(self, task: AgentTask) -> AgentModel:
        active = self._host.model
        name = "" if task.model == "auto" else ALIASES.get(task.model, task.model)
        try:
            current = active.provider if active.configured or not name else None
            if name:
                meant = self._host.config.tiers.get(name, name)  # a service may have the name of a tier
                await in_thread(lambda: active.source.know(meant, current))
            return active.source.for_agent(name, current)
        except MarvinError as error:
            names = ", ".join(one.name for one in await self._definitions() if not one.problem)
            others = f" Agents that are defined by files: {names}." if name and names else ""
            raise ToolError(f"No agent was started: {str(error) or 'no model is configured.'}{others}") from error

    def _folder(self, task: AgentTask) -> Path:
        """Its working directory, which must be one of this session's folders. Raises `ToolError` for another."""
        paths, root = self._host.workspace.paths, self._host.workspace.root
        if not task.working_dir or task.working_dir == ".":
            return root
        if paths.stat(task.working_dir).kind != "folder":
            raise ToolError(
                f"working_dir={task.working_dir!r} is not a folder. Give a folder, or leave working_dir out."
            )
        return Path(os.path.realpath(root / paths.locate(task.working_dir)))

    def _prepared(self, task: AgentTask, work: WorkPlace) -> AgentPlace:
        """Write the prompt to a file, and start the log of calls. Raises `ToolError` if that fails."""
        host, workspace = self._host, self._host.workspace
        told = task.replace(instructions="\n\n".join(filter(None, (task.instructions, work.instructions))))
        # The pipeline adds its own working rules, and recognises a prompt by its text.
        prompt = (
            task.prompt
            if task.phase
            else prompt_of(told, work.folder, workspace.paths_of(work.folder), reads_only=task.read_only)
        )
        prompt = host.redactor.text(prompt)
        name = f"{_PREFIX}{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(4).hex()}"
        try:
            logs = workspace.folder("logs")
            with own_folder(workspace.root, logs) as opened:
                _remove_old(opened, self._host.config.limits.agent_days)
                _write(opened, f"{name}.md", prompt)
                _write(opened, f"{name}.jsonl", "")
        except OSError as error:
            raise ToolError(
                f"No agent was started, because its prompt cannot be written below {workspace.root} "
                f"({error.strerror}). Free space there, or make that folder writable."
            ) from error
        files = {"prompt_file": logs / f"{name}.md", "log": logs / f"{name}.jsonl"}
        return AgentPlace(folder=work.folder, environment=work.environment, is_trusted=work.is_trusted, **files)

    async def _ran(
        self, task: AgentTask, model: AgentModel, place: AgentPlace, progress: AgentProgress | None
    ) -> AgentResult:
        host, timeouts = self._host, self._host.config.timeouts
        environment = environment_of(task, model, place, host.environment, host.secrets)
        life = AgentLife(
            environment={**environment, SLOTS: str(self._slots.first)},
            grace=timeouts.agent_end,
        )
        stream = AgentStream(progress)
        limit = task.timeout or (timeouts.agent_research if task.read_only else timeouts.agent_build)
        try:
            done = await host.processes.run(
                argv_of(task, model, place, host.config, self._tools(task)),
                cwd=place.folder,
                timeout=limit,
                output_limit=_KEPT,
                outside=True,  # it starts a sandbox for its own programs
                enough=stream.feed,
                agent=life,
            )
        except asyncio.CancelledError:
            self._count(stream, b"")
            raise
        cost = self._count(stream, done.stderr)
        return _result(done, stream, limit).replace(cost=cost, log=place.log)

    def _tools(self, task: AgentTask) -> str:
        """Its tools, limited to those of this session. Raises `ToolError` for an invalid name."""
        chosen = task.tools or "coding"
        if task.ticket and task.tools and not task.read_only:  # without a tool of its own it could do nothing
            chosen = ",".join([chosen, *(spec.name for spec in self._host.toolbox.offered if spec.ticket_line)])
        try:
            beyond = self._host.toolbox.beyond(chosen)
        except MarvinError as error:
            raise ToolError(f"No agent was started: {error}") from error
        return ",".join([chosen, *(f"-{name}" for name in beyond)]) if beyond or task.tools else ""

    def _count(self, stream: AgentStream, stderr: bytes) -> float | None:
        """Add its usage to that of this session; returns its cost in USD, None if that is unknown."""
        used = used_by(stderr)
        if used is None:  # it did not end by itself, and the agents below it are not counted
            used = stream.used
        self._host.meter.add_agent(used)
        costs = [model.cost for model in used.values()]
        return None if None in costs else sum(cost for cost in costs if cost is not None)


def _files(task: AgentTask, folder: Path) -> list[str] | None:
    """The absolute paths of the files that an agent may write; None for any."""
    if task.writable_files is None:
        return None
    return [os.path.normpath(folder / file) for file in task.writable_files]


def _remove_old(folder: int, days: int) -> None:
    """Remove prompts and logs of agents that are older than that."""
    oldest = time.time() - days * _DAY
    for name in os.listdir(folder):
        if name.startswith(_PREFIX):
            with suppress(OSError):  # another Marvin was faster, or the name is that of a folder
                if os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime < oldest:
                    os.unlink(name, dir_fd=folder)


def _write(folder: int, name: str, text: str) -> None:
    descriptor = os.open(name, _NEW, 0o600, dir_fd=folder)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as stream:
        stream.write(text)


def _result(done: ProcessResult, stream: AgentStream, limit: float) -> AgentResult:
    code = done.exit_code
    said = said_on_stderr(done.stderr)
    if done.timed_out:
        ended: AgentEnding = "timeout"
        reason = f"It took longer than {limit:g} s and was stopped, with all processes that it had started."
    elif code is None or code < 0:
        ended = "failed"
        reason = f"It was killed by signal {-(code or 0)}, with all processes that it had started."
    else:
        ended = _ENDINGS.get(code, "failed")
        reason = "" if ended == "answered" else (stream.error or said or f"It ended with exit code {code}.")
    return AgentResult(
        text=stream.text,
        ended=ended,
        reason=reason,
        exit_code=code,
        session_id=stream.session_id,
        seconds=done.elapsed,
    )
