"""Sub-agents: Marvin processes of their own that do a part of the work under the same rules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from .processes import Job
from .record import Record

Isolation: TypeAlias = Literal["", "worktree"]
"""Where a writing agent works: in the folder itself, or in a git worktree with a branch of its own."""
PipelinePhase: TypeAlias = Literal["", "1a", "2a"]
"""The pipeline phase that an agent begins with; without one the agent does not run the pipeline."""
AgentEnding: TypeAlias = Literal["answered", "failed", "timeout", "budget", "cancelled"]
"""How an agent ended.

answered: it finished, with exit code 0. failed: any other exit code or a signal. timeout: its time was up.
budget: the cost ceiling was reached (exit code 3). cancelled: something other than its awaiter interrupted it.
"""
AgentProgress: TypeAlias = Callable[[str], None]
"""Called with one line about what a running agent does."""


class AgentTask(Record):
    """The task of an agent, and its limits beyond those of the agent or session that starts it."""

    prompt: str
    kind: str = "build"
    """build, research, search, or the name of an agent that is defined in a Markdown file."""
    model: str = "auto"
    """A tier, a model as `--model` takes it, or auto for what fits the kind."""
    working_dir: str = ""
    """Its working directory, relative to the one of the session, which it must not leave; empty for the same one."""
    ticket: str = ""
    """The ticket it works on; it must create a ticket below it before it writes. Empty for none."""
    read_only: bool = False
    """Whether it is read-only: tools that write or run programs are not offered."""
    writable_files: tuple[str, ...] | None = None
    """The only files that it may write, relative to its working directory; None for any."""
    isolation: Isolation = ""
    timeout: float | None = None
    """Seconds; None for `timeouts.agent_build`, or `timeouts.agent_research` where it is read-only."""
    tools: str = ""
    """Its tools, as `--tools` takes them; empty for the default of agents."""
    phase: PipelinePhase = ""
    instructions: str = ""
    """Text before the prompt: general instructions for this kind of agent."""


class AgentResult(Record):
    """The result of an agent. Its text is for the caller and is never written to a file."""

    text: str
    """The text after its last tool call; possibly incomplete if it failed."""
    ended: AgentEnding
    reason: str = ""
    """Why it did not answer, in one or more lines; empty if it did."""
    exit_code: int | None = None
    """Negative for a signal; None if it did not end by itself."""
    cost: float | None = None
    """USD, including nested agents; None if it did not report it."""
    session_id: str = ""
    """Its session ID, for `marvin sessions show`; empty if it had none yet."""
    log: Path | None = None
    """A JSON Lines file with one line for each of its tool calls; None if it made none."""
    seconds: float = 0.0
    worktree: str = ""
    """What happened to its worktree and its uncommitted changes, as text; empty if there is nothing to report."""

    @property
    def answered(self) -> bool:
        """Whether it finished with exit code 0."""
        return self.ended == "answered"


class ApartTask(Record):
    """A sub-command that runs in the background and outlives the Marvin that starts it, and its limits."""

    name: str
    """Its ID: its kind, a dash, and letters and digits, as in `review-20260102-030405`."""
    title: str
    """What it does, for people."""
    words: tuple[str, ...]
    """The sub-command and its arguments."""
    folder: Path
    """Its working directory."""
    root: Path | None = None
    """The folder it belongs to: sessions there and in parent folders list it. None for the folder of this session."""
    most: int = 3
    """The maximum number of tasks of this kind that run at a time, in all folders."""
    max_cost: float | None = None
    """The cost ceiling in USD; None for the one of this session alone."""


class Agents(Protocol):
    """Starts sub-agents. Tools get it as `ToolContext.agents`; other code uses the same interface."""

    async def run(self, task: AgentTask, progress: AgentProgress | None = None) -> AgentResult:
        """Run an agent to its end. Read-only agents may run in parallel; writing agents run one after the other.

        Writing agents with a fixed list of writable files run in parallel as well.

        Cancelling the awaiting task ends the agent and all its child processes.

        Raises:
            ToolError: it cannot be started: agents are nested too deep, a folder or a model does not exist, or the
                pipeline is not installed. A failure of the agent itself is a result.
        """
        ...

    async def start_apart(self, task: ApartTask) -> Job:
        """Start a background Marvin that outlives this one: with the same models, and in a sandbox of its own.

        It is listed among the jobs of this folder, also in later sessions, and is stopped like them.

        Raises:
            ToolError: it cannot be started: the caller is an agent, play mode is on, `task.most` tasks of its kind
                run already, or no model is configured.
        """
        ...
