"""Sub-agents: further Marvins, each a process of its own, that do a part of the work under the same rules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from .processes import Job
from .record import Record

Isolation: TypeAlias = Literal["", "worktree"]
"""Where an agent that writes works: in the folder itself, or in a git worktree and a branch of its own."""
PipelinePhase: TypeAlias = Literal["", "1a", "2a"]
"""The phase of the pipeline that an agent begins with; without one it is no pipeline."""
AgentEnding: TypeAlias = Literal["answered", "failed", "timeout", "budget", "cancelled"]
"""How an agent ended.

answered: it came to its own end, with exit code 0. failed: any other exit code, a signal among them. timeout: its time
was up. budget: the cost ceiling was reached (exit code 3). cancelled: it was interrupted, but not by who awaits it.
"""
AgentProgress: TypeAlias = Callable[[str], None]
"""Is told in one line what an agent does while it runs."""


class AgentTask(Record):
    """What an agent is to do, and what binds it beyond that which binds whoever starts it."""

    prompt: str
    kind: str = "build"
    """build, research, search, or the name of an agent that a Markdown file defines."""
    model: str = "auto"
    """A tier, a model as `--model` takes it, or auto: what fits the kind."""
    working_dir: str = ""
    """The folder it works in, relative to that of the session, which it does not leave; empty for that itself."""
    ticket: str = ""
    """The ticket it works on; it writes nothing until it has created one below it. Empty for none."""
    read_only: bool = False
    """Whether it changes nothing: no tool that writes or runs programs exists for it."""
    writable_files: tuple[str, ...] | None = None
    """The only files that it may write, relative to its folder; None for any."""
    isolation: Isolation = ""
    timeout: float | None = None
    """Seconds; None for `timeouts.agent_build`, and where it is read-only `timeouts.agent_research`."""
    tools: str = ""
    """The tools it has, as `--tools` takes them; empty for those that agents have."""
    phase: PipelinePhase = ""
    instructions: str = ""
    """What stands before the prompt: how it is to work, whatever it is asked."""


class AgentResult(Record):
    """What became of an agent. Its text is for whoever asked; no file is ever made of it."""

    text: str
    """What it said, from its last tool call on; of a failed one perhaps a part."""
    ended: AgentEnding
    reason: str = ""
    """Why it did not answer, in one line or some more; empty where it did."""
    exit_code: int | None = None
    """Negative for a signal; None where it did not end by itself."""
    cost: float | None = None
    """USD, agents below it included; None where it did not come to tell."""
    session_id: str = ""
    """Its session, for `marvin sessions show`; empty where it had none yet."""
    log: Path | None = None
    """The file with a line of JSON for each of its tool calls; None where it made none."""
    seconds: float = 0.0
    worktree: str = ""
    """What became of its worktree, and of what it left uncommitted, in words; empty where there is nothing to tell."""

    @property
    def answered(self) -> bool:
        """Whether it came to its own end."""
        return self.ended == "answered"


class ApartTask(Record):
    """A sub-command that goes on by itself when the Marvin ends that starts it, and what bounds it."""

    name: str
    """Its id: a word that says of what kind it is, a dash, and letters and digits, as in `review-20260102-030405`."""
    title: str
    """What it does, for people."""
    words: tuple[str, ...]
    """The sub-command and its words."""
    folder: Path
    """Where it works."""
    root: Path | None = None
    """The folder that it is about: sessions of it and of folders above it list it. None for that of this session."""
    most: int = 3
    """How many of this kind may run at a time, those of other folders among them."""
    max_cost: float | None = None
    """USD; None for no other ceiling than that of this session."""


class Agents(Protocol):
    """The way to sub-agents: for tools as `ToolContext.agents`, and the same for whatever works without one."""

    async def run(self, task: AgentTask, progress: AgentProgress | None = None) -> AgentResult:
        """Run an agent to its end. Several that read may run side by side; those that write do one after the other.

        Writers that are held to files of their own run side by side as well.

        Where the awaiting of this is cancelled the agent ends, with all that it started.

        Raises:
            ToolError: where it cannot be started: agents nested too deep, a folder or a model that there is not, the
                pipeline not installed. How an agent ended is a result.
        """
        ...

    async def start_apart(self, task: ApartTask) -> Job:
        """Start a Marvin that goes on when this one ends: with its models, and in a sandbox of its own.

        It stands among the jobs of this folder, in later sessions as well, and is stopped as these are.

        Raises:
            ToolError: where it cannot be started: by an agent, in play mode, where `task.most` of its kind run, or
                without a model.
        """
        ...
