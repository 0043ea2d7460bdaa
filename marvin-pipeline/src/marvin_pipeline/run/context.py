"""The context of a run, which all phases get, and the calls of its agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from marvin_core import (
    AgentResult,
    AgentTask,
    BudgetExceeded,
    MarvinError,
    Record,
    RunControl,
    ToolError,
    did_you_mean,
    near_names,
)

from ..prompts.loading import Prompts
from ..settings import PipelineSettings
from ..state import MEANINGS, PipelineState
from .checkpoints import Checkpoints
from .files import ProjectFiles
from .journal import Journal
from .limits import RunLimits
from .request import PipelineRequest
from .roles import ROLES, Role
from .tickets import Tickets

_NO_MOCKS = (
    "Tests of this project use real components: no mocks and no test doubles. A plan or a test that uses them is "
    "wrong.\n"
)

_SHOWN = 10
"""Files that a message names."""


class AgentFailed(MarvinError):
    """A required agent did not finish."""


class Run(Record):
    """One run of the pipeline."""

    control: RunControl
    """The session, and the connection to the user."""
    request: PipelineRequest
    settings: PipelineSettings
    files: ProjectFiles
    """The documents and logs below `.marvin`."""
    state: PipelineState
    prompts: Prompts
    git: Checkpoints
    tickets: Tickets
    journal: Journal
    limits: RunLimits
    carried: list[str]
    """The findings below the floor of earlier phases, one a line; phases add to it."""
    upstream: tuple[str, ...] = ()
    """The upstream documents, by name below the project's folder."""

    @property
    def folder(self) -> Path:
        """The project's folder, links resolved."""
        return self.files.root

    async def ask(
        self,
        role: str,
        values: Mapping[str, str],
        *,
        phase: str,
        prompt: str = "",
        read_only: bool = False,
        writable_files: Sequence[str] = (),
        ticket: str = "",
        tools: Sequence[str] = (),
    ) -> AgentResult:
        """Run an agent; the result says how it ended.

        Args:
            role: one of `ROLES`, which determines the tier of its model.
            values: values for its prompt, in addition to those of `standing`.
            phase: the phase that it works for.
            prompt: the name of its prompt, if not the role's.
            writable_files: the only files that it may write, relative to the project; none for any file.
            ticket: its ticket; without one, an agent that writes gets a new one, and others work
                on the epic.
            tools: its tools, as for `--tools`; none for the default ones.

        Raises:
            BudgetExceeded: no new agent may be started, or the agent reached the cost ceiling.
            MarvinError: it cannot be started, or its prompt is invalid.
        """
        self.limits.check()
        text = self.prompts.fill(prompt or role, {**self.standing(phase), **values})
        text = f"{text}\n{_NO_MOCKS}" if read_only else text  # the core tells this to those that write
        own = "" if ticket or read_only else await self._ticket(role, phase)
        task = AgentTask(
            prompt=text,
            model=_role(role).tier,
            ticket=ticket or own or self.tickets.epic,
            read_only=read_only,
            writable_files=tuple(writable_files) or None,
            tools=",".join(tools),
        )
        task = task.replace(timeout=self._timeout(task))
        result = await self._asked(task, role, phase)
        if own:
            await self._end_ticket(own, result)
        if result.ended == "budget":
            raise BudgetExceeded(f"The agent that was to {_role(role).words} reached the cost ceiling. {result.reason}")
        if result.ended == "timeout":
            self.limits.check_time()  # the whole run may have timed out
        return result

    async def ask_for(self, role: str, values: Mapping[str, str], *, phase: str, prompt: str = "") -> AgentResult:
        """The same for an agent that writes and that the phase requires.

        Raises:
            AgentFailed: it did not finish.
            TimeUp: the run's time is over.
        """
        result = await self.ask(role, values, phase=phase, prompt=prompt)
        if not result.answered:
            self.limits.check()
            raise AgentFailed(
                f"The agent that was to {_role(role).words} did not finish ({result.ended}): {result.reason} Run the "
                "pipeline again to continue."
            )
        return result

    def standing(self, phase: str) -> dict[str, str]:
        """The values for every prompt: request, phase, meaning, upstream, carried."""
        upstream = "\n".join(f"- {name}" for name in self.upstream)
        carried = "\n".join(f"- {finding}" for finding in self.carried)
        return {
            "request": self.request.prompt,
            "phase": phase,
            "meaning": MEANINGS.get(phase, phase),
            "upstream": upstream and f"Documents to read, which must not be changed:\n{upstream}",
            "carried": carried and f"Open findings of earlier phases; fix those that you come across:\n{carried}",
        }

    def tell(self, text: str) -> None:
        """Report the run's progress on one line."""
        from ..evidence.ci.github import harmless

        self.control.warn(harmless(text) if self.control.config.github else text)

    def tell_of_checkpoints(self) -> None:
        """Report what checkpoints left out, and what of staged files they have not committed, each once in a run."""
        while self.git.kept:
            kept = self.git.kept.pop(0)
            names = ", ".join(kept.files[:_SHOWN])
            names += f" and {len(kept.files) - _SHOWN} more" if kept.files[_SHOWN:] else ""
            self.tell(
                f"What is staged differs from the files: {names}. The pipeline commits the files; what was staged is "
                f"kept. See it with `git show {kept.ref}`."
            )
        if names := self.git.newly_left_out():
            self.tell(f"Not committed: {names}. The pipeline commits such a file if you stage it: git add -f FILE")

    async def _asked(self, task: AgentTask, role: str, phase: str) -> AgentResult:
        other = self.settings.fallback.get(_role(role).tier)
        try:
            result = await self._started(task, role, phase)
        except ToolError as error:  # such as no service for the tier's model
            if not other:
                raise
            reason = str(error)
        else:
            if result.ended != "failed" or not other:
                return result
            reason = result.reason
        self.tell(f"{phase}: the agent with the tier {task.model} failed, so {other} continues. {reason}")
        self.limits.check()
        return await self._started(task.replace(model=other, timeout=self._timeout(task)), role, phase)

    async def _started(self, task: AgentTask, role: str, phase: str) -> AgentResult:
        self.journal.note("agent_start", phase=phase, role=role, model=task.model, ticket=task.ticket)
        result = await self.control.session.agents.run(task)
        self.journal.agent(result, phase=phase, role=role, model=task.model, ticket=task.ticket)
        return result

    def _timeout(self, task: AgentTask) -> float | None:
        """The timeout of an agent in seconds: at most the rest of the run's time."""
        left, timeouts = self.limits.time_left, self.control.config.timeouts
        if left is None:
            return None
        return min(left, timeouts.agent_research if task.read_only else timeouts.agent_build)

    async def _ticket(self, role: str, phase: str) -> str:
        words = f"{phase}: {_role(role).words}"
        return await self.tickets.child(words, f"{words}.\n\n{MEANINGS.get(phase, '')}".strip())

    async def _end_ticket(self, ticket: str, result: AgentResult) -> None:
        if result.answered:
            await self.tickets.close(ticket)
        else:
            await self.tickets.note(ticket, f"The agent did not finish ({result.ended}): {result.reason}")


def _role(name: str) -> Role:
    if name not in ROLES:
        raise MarvinError(f"Unknown role {name!r}. {did_you_mean(near_names(name, ROLES))}")
    return ROLES[name]
